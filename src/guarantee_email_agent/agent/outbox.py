"""The outbox: a ticket and a reply, each recorded in the ledger before it leaves.

After a crash, the intent says where to look for proof. That a ticket was opened is recorded at once, and that a reply
left together with the outcome of its mail, which is the very next write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.services.ports import (
    Admission,
    Limit,
    Mailbox,
    Reply,
    Thread,
    TicketingSystem,
    parse_ticket_id,
)
from guarantee_email_agent.utils.errors import IntegrationError

NOT_WAITING: Final = "mail_not_waiting"


@dataclass(frozen=True, slots=True)
class MailInQueue:
    """The claimed mail in its mailbox, where people see it, too."""

    mailbox: Mailbox
    mail_id: str
    skip_seen: bool

    async def require_waiting(self) -> None:
        """Raises IntegrationError `mail_not_waiting` where a person has dealt with the mail since it was listed."""
        if not await self.mailbox.is_waiting(self.mail_id, self.skip_seen):
            raise IntegrationError(
                f"Mail {self.mail_id} was answered, flagged or deleted by a person meanwhile. It is left alone",
                NOT_WAITING,
            )


@dataclass(frozen=True, slots=True)
class OutboxTicketing:
    """Opens tickets for one claimed mail."""

    ticketing: TicketingSystem
    ledger: Ledger
    claim: Claim
    mail: MailInQueue

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """As the port's. Raises LeaseLostError, with nothing done, where the lease was lost."""
        await self.mail.require_waiting()
        # An earlier version that derived another key from the mail may have opened its ticket already.
        key = self.claim.ticket_key or str(ticket_data["idempotency_key"])
        await asyncio.to_thread(self.ledger.intend_ticket, self.claim, key)
        answer = await self.ticketing.create_ticket({**ticket_data, "idempotency_key": key})
        await asyncio.to_thread(self.ledger.ticket_created, self.claim, parse_ticket_id(answer))
        return answer

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """As the port's. Its key alone keeps a note from being added twice."""
        return await self.ticketing.add_note(ticket_id, note, idempotency_key)


@dataclass(frozen=True, slots=True)
class OutboxMailbox:
    """Sends the reply to one claimed mail, or stores it as a draft."""

    mailbox: Mailbox
    ledger: Ledger
    claim: Claim
    mail: MailInQueue

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        """As the port's. Where it is uncertain whether the reply was sent, the mailbox is asked.

        Raises LeaseLostError, with nothing sent, where the lease was lost, and IntegrationError where somebody else
        has dealt with the mail meanwhile (`mail_not_waiting`), and where the outcome stays unknown for now: the ledger
        keeps the mail as `sending`, so that nothing is sent before it is known.
        """
        await self.mail.require_waiting()
        await asyncio.to_thread(self.ledger.intend_send, self.claim, reply.message_id)
        try:
            return await self.mailbox.send(reply)
        except IntegrationError as error:
            if not error.uncertain:
                await asyncio.to_thread(self.ledger.not_sent, self.claim)
                raise
            return await self._verify_sent(reply.message_id, error)

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        """As the port's, and with the errors of `send`. Storing a draft again is harmless, so nothing is uncertain."""
        await self.mail.require_waiting()
        await asyncio.to_thread(self.ledger.intend_send, self.claim, reply.message_id, delivery="draft")
        try:
            return await self.mailbox.save_draft(reply)
        except IntegrationError as error:
            if not error.uncertain:
                await asyncio.to_thread(self.ledger.not_sent, self.claim)
            raise

    async def _verify_sent(self, message_id: str, error: IntegrationError) -> Mapping[str, Any]:
        """Ask the mailbox once, without waiting: a copy on its way is waited for at the mail's next try."""
        with suppress(IntegrationError):  # the next try asks again
            if await self.mailbox.find_sent(message_id) == "sent":
                return {"message_id": message_id, "status": "already_sent"}
        error.retryable = False
        raise error


@dataclass(frozen=True, slots=True)
class LedgerHistory:
    """A ReplyHistory for one claimed mail."""

    ledger: Ledger
    claim: Claim
    limits: ReplyLimits

    async def find_thread(self, reply_message_ids: Sequence[str]) -> Thread | None:
        return await asyncio.to_thread(self.ledger.find_thread, self.claim, reply_message_ids)

    async def admit(self, admission: Admission) -> Limit | None:
        return await asyncio.to_thread(self.ledger.admit, self.claim, admission, self.limits)

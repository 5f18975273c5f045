"""The outbox: a ticket and a reply, each recorded in the ledger before it leaves.

After a crash, the intent says where to look for proof. That a ticket was opened is recorded at once, and that a reply
left together with the outcome of its mail, which is the very next write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.tables import Delivery
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
class Outbox:
    """Opens the ticket of one claimed mail, sends its reply or stores it as a draft, and knows its conversation.

    mail_id: in the mailbox, where people see it, too.
    """

    mailbox: Mailbox
    ticketing: TicketingSystem
    ledger: Ledger
    claim: Claim
    mail_id: str
    settings: AgentSettings

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """As the port's. Raises LeaseLostError, with nothing done, where the lease was lost."""
        await self._require_waiting()
        # An earlier version that derived another key from the mail may have opened its ticket already.
        key = self.claim.ticket_key or str(ticket_data["idempotency_key"])
        await asyncio.to_thread(self.ledger.intend_ticket, self.claim, key)
        answer = await self.ticketing.create_ticket({**ticket_data, "idempotency_key": key})
        await asyncio.to_thread(self.ledger.ticket_created, self.claim, parse_ticket_id(answer))
        return answer

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """As the port's. Its key alone keeps a note from being added twice."""
        return await self.ticketing.add_note(ticket_id, note, idempotency_key)

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        """As the port's. Where it is uncertain whether the reply was sent, the mailbox is asked.

        Raises LeaseLostError, with nothing sent, where the lease was lost, and IntegrationError where somebody else
        has dealt with the mail meanwhile (`mail_not_waiting`), and where the outcome stays unknown for now: the ledger
        keeps the mail as `sending`, so that nothing is sent before it is known.
        """
        return await self._deliver(reply, "send", self.mailbox.send)

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        """As the port's, and with the errors of `send`. Storing a draft again is harmless, so nothing is uncertain."""
        return await self._deliver(reply, "draft", self.mailbox.save_draft)

    async def find_thread(self, reply_message_ids: Sequence[str]) -> Thread | None:
        return await asyncio.to_thread(self.ledger.find_thread, self.claim, reply_message_ids)

    async def admit(self, admission: Admission) -> Limit | None:
        return await asyncio.to_thread(self.ledger.admit, self.claim, admission, self.settings.limits)

    async def _deliver(
        self, reply: Reply, delivery: Delivery, deliver: Callable[[Reply], Awaitable[Mapping[str, Any]]]
    ) -> Mapping[str, Any]:
        await self._require_waiting()
        await asyncio.to_thread(self.ledger.intend_send, self.claim, reply.message_id, delivery=delivery)
        try:
            return await deliver(reply)
        except IntegrationError as error:
            if not error.uncertain:
                await asyncio.to_thread(self.ledger.not_sent, self.claim)
            elif delivery == "send":
                with suppress(IntegrationError):  # a copy on its way is waited for at the next try, which asks again
                    if await self.mailbox.find_sent(reply.message_id) == "sent":
                        return {"message_id": reply.message_id, "status": "already_sent"}
                error.retryable = False
            raise

    async def _require_waiting(self) -> None:
        """Raises IntegrationError `mail_not_waiting` where a person has dealt with the mail since it was listed."""
        if not await self.mailbox.is_waiting(self.mail_id, self.settings.skip_seen):
            raise IntegrationError(
                f"Mail {self.mail_id} was answered, flagged or deleted by a person meanwhile. It is left alone",
                NOT_WAITING,
            )

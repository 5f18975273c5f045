"""The mailbox as the agent calls it, whatever it is: with circuits, and one line for a sign-in that has expired."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from guarantee_email_agent.services.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    Mailbox,
    MailMark,
    MarkedMail,
    Reply,
    SentState,
)
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


class AgentMailbox(Mailbox, Protocol):
    """A Mailbox with what an agent needs that is not alone. What it cannot do is said, and never an error."""

    async def list_mails(self) -> list[MarkedMail] | None:
        """Every mail of the inbox, with its mark; None where none can tell."""

    async def unmark(self, mail_id: str) -> bool:
        """Take the mark off a mail, so that it is listed again. False where that cannot be done."""

    async def list_sent(self, since: float, most_bytes: int) -> list[bytes] | None:
        """The beginnings of the mails in the Sent folder, as they went out, since then; None where none can tell."""

    async def find_owner(self) -> str | None:
        """The ledger that the mailbox is served with; None where it has none, or bears no such mark."""

    async def claim(self, ledger: str, *, take_over: bool = False) -> str | None:
        """Mark the mailbox as served with a ledger, unless another has it; whose it is then. None: as above."""


class MailboxConnection(Protocol):
    """Where the mailbox comes from."""

    async def connected(self) -> AgentMailbox:
        """Raises MCPConnectionError."""

    async def close(self) -> None: ...


class MailClient:
    """A Mailbox. name: as error codes begin.

    Inbox and sending have a circuit each: the inbox may work while the SMTP server is down. An error of `send` is
    `sending`.
    """

    def __init__(self, name: str, connection: MailboxConnection, clock: Clock) -> None:
        self._name = name
        self._connection = connection
        self._inbox_circuit = CircuitBreaker(name, clock)
        self._sending_circuit = CircuitBreaker(name, clock)
        self._told_refusals: dict[CircuitBreaker, str] = {}

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        return await self._call(lambda mailbox: mailbox.list_unprocessed(limit, inbox_filter))

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        return await self._call(lambda mailbox: mailbox.read_raw(mail_id, max_bytes))

    async def find_mail(self, message_id: str) -> str | None:
        return await self._call(lambda mailbox: mailbox.find_mail(message_id))

    async def list_mails(self) -> list[MarkedMail]:
        """Every mail of the inbox, with its mark.

        Raises IntegrationError `mail_unsupported` where none can tell, MCPConnectionError where the mailbox fails.
        """
        try:
            found = await self._call(lambda mailbox: mailbox.list_mails())
        except IntegrationError as error:
            raise MCPConnectionError.of(error) from None
        if found is None:
            raise self._unsupported("list every mail of its inbox")
        return found

    async def list_sent(self, since: float, most_bytes: int) -> list[bytes]:
        """As AgentMailbox's. since: seconds since 1970. Raises as above."""
        found = await self._call(lambda mailbox: mailbox.list_sent(since, most_bytes))
        if found is None:
            raise self._unsupported("list what was sent")
        return found

    async def unmark(self, mail_id: str) -> None:
        """Take the mark off a mail. Raises as above."""
        if not await self._call(lambda mailbox: mailbox.unmark(mail_id)):
            raise self._unsupported("take a mark off")

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        return await self._call(lambda mailbox: mailbox.is_waiting(mail_id, skip_seen))

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        try:
            return await self._call(lambda mailbox: mailbox.send(reply), self._sending_circuit)
        except IntegrationError as error:
            error.sending = True
            raise

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        return await self._call(lambda mailbox: mailbox.find_sent(message_id, wait_s))

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        """Through the inbox's circuit: a draft goes where the inbox is."""
        return await self._call(lambda mailbox: mailbox.save_draft(reply))

    async def find_draft(self, message_id: str) -> DraftState:
        return await self._call(lambda mailbox: mailbox.find_draft(message_id))

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        await self._call(lambda mailbox: mailbox.mark(mail_id, outcome))

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        return await self._call(lambda mailbox: mailbox.count_by_outcome(inbox_filter))

    async def wait_for_mail(self, timeout_s: float) -> bool:
        """Not through the circuit: as the one probe of a service that was down it would hold up all the others."""
        return await (await self._connection.connected()).wait_for_mail(timeout_s)

    async def find_owner(self) -> str | None:
        """As AgentMailbox's."""
        return await (await self._connection.connected()).find_owner()

    async def claim(self, ledger: str, *, take_over: bool = False) -> str | None:
        """As AgentMailbox's."""
        return await (await self._connection.connected()).claim(ledger, take_over=take_over)

    async def test_connection(self, drafts: bool = False) -> bool:
        return await (await self._connection.connected()).test_connection(drafts)

    async def close(self) -> None:
        await self._connection.close()

    def _unsupported(self, what: str) -> IntegrationError:
        name = self._name
        return IntegrationError(
            f"{name}: this server cannot {what}. Do it in the mailbox itself", f"{name}_unsupported"
        )

    async def _call(
        self, method: Callable[[AgentMailbox], Awaitable[_Answer]], circuit: CircuitBreaker | None = None
    ) -> _Answer:
        async def call() -> _Answer:
            return await method(await self._connection.connected())

        circuit = circuit or self._inbox_circuit
        try:
            answer = await circuit.call(call)
        except IntegrationError as error:
            self._tell_refusal(circuit, error)
            raise
        self._told_refusals.pop(circuit, None)
        return answer

    def _tell_refusal(self, circuit: CircuitBreaker, error: IntegrationError) -> None:
        """Once until it works again: no waiting helps against an expired sign-in, so somebody has to know."""
        if error.code == f"{self._name}_auth" and self._told_refusals.get(circuit) != error.message:
            self._told_refusals[circuit] = error.message
            if list(self._told_refusals.values()).count(error.message) == 1:
                logger.error("%s; mails stay in the inbox until then", error.message)

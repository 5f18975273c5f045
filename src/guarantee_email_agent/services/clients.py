"""The services as the agent calls them, whatever they are: each with a circuit, and with answers that can be read."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.services.call_errors import forbid_repeat, readable
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.services.ports import (
    LookUpService,
    Mailbox,
    MarkedMail,
    TicketingSystem,
    parse_ticket_id,
)
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


class MailClient(Mailbox, ABC):
    """A Mailbox with what an agent needs that is not alone. What it cannot do is an error, `mail_unsupported`.

    Inbox and sending have a circuit each: the inbox may work while the SMTP server is down. Drafts go where the inbox
    is. An error of `send` is `sending`.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        """name: as error codes begin."""
        self._name = name
        self._clock = clock
        self._inbox_circuit = CircuitBreaker(name, clock)
        self._sending_circuit = CircuitBreaker(name, clock)
        self._told_refusals: dict[CircuitBreaker, str] = {}

    async def list_mails(self) -> list[MarkedMail]:
        try:
            return await self._list_mails()
        except IntegrationError as error:
            raise MCPConnectionError.of(error) from None

    @abstractmethod
    async def _list_mails(self) -> list[MarkedMail]: ...

    @abstractmethod
    async def list_sent(self, since: float, most_bytes: int, read: Callable[[bytes], _Answer]) -> list[_Answer]:
        """What is read of the beginning of each mail in the Sent folder, since then (seconds since 1970). Of the mails
        themselves, with what is attached, not all are held at a time.
        """

    @abstractmethod
    async def find_owner(self) -> str | None:
        """The ledger that the mailbox is served with; None where it has none, or bears no such mark."""

    @abstractmethod
    async def claim(self, ledger: str, *, take_over: bool = False) -> str | None:
        """Mark the mailbox as served with a ledger, unless another has it; whose it is then. None: as above."""

    @abstractmethod
    async def close(self) -> None: ...

    async def _guarded(self, call: Callable[[], Awaitable[_Answer]], circuit: CircuitBreaker | None = None) -> _Answer:
        """The result of a call, through the inbox's circuit or another."""
        circuit = circuit or self._inbox_circuit
        try:
            answer = await circuit.call(call)
        except IntegrationError as error:
            self._tell_refusal(circuit, error)
            raise
        self._told_refusals.pop(circuit, None)
        return answer

    @contextmanager
    def _sending(self) -> Iterator[CircuitBreaker]:
        try:
            with forbid_repeat():
                yield self._sending_circuit
        except IntegrationError as error:
            error.sending = True
            raise

    def _tell_refusal(self, circuit: CircuitBreaker, error: IntegrationError) -> None:
        """One line until it works again: no waiting helps against an expired sign-in, so somebody has to know."""
        if error.code == f"{self._name}_auth" and self._told_refusals.get(circuit) != error.message:
            self._told_refusals[circuit] = error.message
            if list(self._told_refusals.values()).count(error.message) == 1:
                logger.error("%s; mails stay in the inbox until then", error.message)


class _Client(ABC):
    """What answers look-ups or keeps tickets."""

    def __init__(self, name: str, tool: str, clock: Clock) -> None:
        """name: as error codes begin. tool: what errors call it."""
        self.name = name
        self.tool = tool
        self._circuit = CircuitBreaker(name, clock)

    @abstractmethod
    async def test_connection(self) -> bool:
        """True, or MCPConnectionError; IntegrationError where what is reached does not work."""

    async def test_answer(self) -> str:
        """What a sample call told, or why there was none: it might have had an effect. Empty where nothing is to tell.

        Raises IntegrationError for an answer that cannot be read.
        """
        return ""

    @abstractmethod
    async def close(self) -> None: ...


class LookUpClient(_Client, LookUpService):
    """Its answers can be read by the `look_up` that it is given."""

    def __init__(self, name: str, tool: str, clock: Clock, look_up: LookUp) -> None:
        super().__init__(name, tool, clock)
        self._look_up = look_up

    async def look_up(self, number: str) -> Mapping[str, Any]:
        """Raises `{name}_malformed` for what cannot be read."""
        return await self._circuit.call(
            lambda: readable(
                self.name, self.tool, lambda: self._ask(number), lambda raw: parse_look_up_answer(raw, self._look_up)
            )
        )

    @abstractmethod
    async def _ask(self, number: str) -> Mapping[str, Any]: ...


class TicketingClient(_Client, TicketingSystem):
    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """`{"ticket_id", "status": "created"|"existing"}`. Harmless to repeat: the key in the data sees to that.

        Raises `ticketing_malformed` for an answer without a usable number.
        """
        return await self._circuit.call(
            lambda: readable(self.name, self.tool, lambda: self._create(ticket_data), parse_ticket_id)
        )

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """False, and nothing happens, where the service takes no notes."""
        return await self._circuit.call(lambda: self._add_note(ticket_id, note, idempotency_key))

    @abstractmethod
    async def _create(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]: ...

    @abstractmethod
    async def _add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool: ...

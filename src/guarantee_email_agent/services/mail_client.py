"""The mailbox as the agent calls it, whatever it is: with circuits, and one line for a sign-in that has expired."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from guarantee_email_agent.services.call_errors import forbid_repeat
from guarantee_email_agent.services.ports import Mailbox, MarkedMail
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

    @property
    def circuits(self) -> dict[str, CircuitBreaker]:
        """That of the inbox, and that of sending."""
        return {self._name: self._inbox_circuit, f"{self._name}_sending": self._sending_circuit}

    async def list_mails(self) -> list[MarkedMail]:
        """Every mail of the inbox, with its mark. Raises MCPConnectionError where none can tell, or it fails."""
        try:
            return await self._list_mails()
        except IntegrationError as error:
            raise MCPConnectionError.of(error) from None

    @abstractmethod
    async def _list_mails(self) -> list[MarkedMail]: ...

    @abstractmethod
    async def unmark(self, mail_id: str) -> None:
        """Take the mark off a mail, so that it is listed again."""

    @abstractmethod
    async def list_sent(self, since: float, most_bytes: int) -> list[bytes]:
        """The beginnings of the mails in the Sent folder, as they went out, since then (seconds since 1970)."""

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
        """Once until it works again: no waiting helps against an expired sign-in, so somebody has to know."""
        if error.code == f"{self._name}_auth" and self._told_refusals.get(circuit) != error.message:
            self._told_refusals[circuit] = error.message
            if list(self._told_refusals.values()).count(error.message) == 1:
                logger.error("%s; mails stay in the inbox until then", error.message)

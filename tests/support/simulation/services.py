"""The inbox, the warranty system and the ticketing system, as one process of the agent reaches them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.services.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    MailMark,
    MarkedMail,
    Reply,
    SentState,
)
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from simulation.faults import service_error

if TYPE_CHECKING:
    from simulation.history import History

_LOOKS_FOR_COPY_EVERY_S: Final = 5.0


class SimulatedMailbox:
    """A Mailbox as one agent sees it; every agent sees the same inbox."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        return await self._history.call("mail", "list_unprocessed", self._list)

    def _list(self) -> list[InboxEntry]:
        waiting = [letter for letter in self._history.inbox.letters.values() if _is_waiting(letter)]
        entries = [InboxEntry(letter.id, len(letter.raw), letter.received) for letter in waiting]
        return self._history.inbox.as_listed(entries)

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        def look() -> bool:
            letter = self._history.inbox.letters.get(mail_id)
            return letter is not None and letter.mark is None and (_is_waiting(letter) or letter.is_too_old)

        return await self._history.call("mail", "is_waiting", look, about=mail_id)

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        def read() -> bytes:
            if (letter := self._letter(mail_id)).withheld:
                raise service_error("mail_unreadable")
            return letter.raw

        return await self._history.call("mail", "read_raw", read, about=mail_id)

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        def deliver() -> Mapping[str, Any]:
            if any(
                each.refused
                for each in self._history.inbox.letters.values()
                if reply.to == f"{each.content}@example.org"
            ):
                raise service_error("mail_recipient_deferred")
            # The agent asks for the proof itself; where its ledger forgot that a reply was due, only the server can.
            if not (self._history.conditions.restores and self._has_copy(reply.message_id)):
                self._history.deliver(reply)
            return {"message_id": reply.message_id}

        return await self._history.call("mail", "send", deliver, about=reply.message_id, repeatable=False, prompt=True)

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        waited_s = 0.0
        while not (found := await self._look_for_copy(message_id)):
            if waited_s >= wait_s:
                break
            await asyncio.sleep(_LOOKS_FOR_COPY_EVERY_S)
            waited_s += _LOOKS_FOR_COPY_EVERY_S
        return "sent" if found else "not_sent" if self._history.conditions.keeps_proof else "unknown"

    async def _look_for_copy(self, message_id: str) -> bool:
        return await self._history.call("mail", "find_sent", lambda: self._has_copy(message_id), about=message_id)

    def _has_copy(self, message_id: str) -> bool:
        now = self._history.loop.time()
        return self._history.conditions.keeps_proof and any(
            each.message_id == message_id and each.copy_at <= now for each in self._history.replies
        )

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        """As our mail server does, it stores no second one of that Message-ID."""

        def save() -> Mapping[str, Any]:
            self._history.drafts.setdefault(reply.message_id, self._history.loop.time())
            return {"message_id": reply.message_id}

        return await self._history.call("mail", "save_draft", save, about=reply.message_id, prompt=True)

    async def find_draft(self, message_id: str) -> DraftState:
        drafts = self._history.drafts
        found = await self._history.call("mail", "find_draft", lambda: message_id in drafts, about=message_id)
        if not self._history.conditions.keeps_proof:
            return "unknown"
        return "saved" if found else "not_saved"

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        def set_mark() -> None:
            self._history.inbox.set_mark(self._letter(mail_id), outcome)

        await self._history.call("mail", "mark", set_mark, about=mail_id)

    async def list_mails(self) -> list[MarkedMail]:
        def look() -> list[MarkedMail]:
            return [MarkedMail(letter.id, letter.mark) for letter in self._history.inbox.letters.values()]

        return await self._history.call("mail", "list_mails", look)

    async def unmark(self, mail_id: str) -> None:
        def take_off() -> None:
            self._history.inbox.take_mark_off(self._letter(mail_id))

        await self._history.call("mail", "unmark", take_off, about=mail_id, repeatable=False, prompt=True)

    async def find_mail(self, message_id: str) -> str | None:
        raise AssertionError("only `answer` and `capture` search")

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        raise AssertionError("only the start-up counts")

    async def wait_for_mail(self, timeout_s: float) -> bool:
        return await self._history.inbox.wait_for_arrival(timeout_s)

    async def test_connection(self, drafts: bool = False) -> bool:
        return True

    def _letter(self, mail_id: str) -> Any:
        if (letter := self._history.inbox.letters.get(mail_id)) is None:
            raise service_error("mail_not_found")
        return letter


class SimulatedWarranty:
    """A LookUpService behind the agent's own circuit breaker."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._circuit = CircuitBreaker("warranty_api", history.clock)

    async def look_up(self, number: str) -> Mapping[str, Any]:
        status, year = ("expired", 2020) if number == "SN54321" else ("valid", 2099)
        answer = {"status": status, "expiration_date": f"{year}-12-31", "coverage": "full"}
        return await self._circuit.call(lambda: self._history.call("warranty_api", "check_warranty", lambda: answer))


class SimulatedTicketing:
    """A TicketingSystem that opens one ticket for each idempotency key, behind the agent's own circuit breaker."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._circuit = CircuitBreaker("ticketing", history.clock)

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        key = str(ticket_data["idempotency_key"])

        def create() -> Mapping[str, Any]:
            tickets = self._history.tickets
            tickets.setdefault(key, f"TICKET-{len(tickets) + 1:06d}")
            return {"ticket_id": tickets[key]}

        return await self._circuit.call(lambda: self._history.call("ticketing", "create_ticket", create, about=key))

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        def add() -> bool:
            self._history.notes.setdefault(idempotency_key, ticket_id)
            return True

        return await self._circuit.call(lambda: self._history.call("ticketing", "add_note", add, about=ticket_id))


def _is_waiting(letter: Any) -> bool:
    return letter.mark is None and letter.taken_care_of_at is None

"""A mailbox that is a dictionary, so that what goes wrong with it can be chosen call by call; and an agent on it."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from shipped_instructions import shipped_interpreter

from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import ModelSettings
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.ledger.ledger import Ledger
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
from guarantee_email_agent.utils.clock import SkippingClock, count_wait
from guarantee_email_agent.utils.errors import IntegrationError

KEY = b"a key for tests"
INSTRUCTIONS = Path(__file__).parents[2] / "instructions"


def mail(name: str, text: str = "Is my dryer SN12345 still under warranty?") -> bytes:
    return (
        f"From: customer@example.org\r\nTo: support@example.com\r\nSubject: Dryer {name}\r\n"
        f"Date: Sun, 18 Jan 2026 10:00:00 +0000\r\nMessage-ID: <{name}@example.org>\r\n\r\n{text}\r\n"
    ).encode()


def integration_error(code: str, **flags: bool) -> IntegrationError:
    return IntegrationError(code, code, **flags)


class MailboxInMemory:
    """What the daemon asks of a Mailbox. `errors`: for each method by name, what its next calls raise, in order.

    `sent` has the Message-ID of every reply sent, `replies` the replies, `drafts` the drafts. lost_answers: so many
    replies are sent, or drafts stored, before the error is raised. taken_care_of: mails that people answered, flagged
    or deleted. withheld: mails that cannot be read. seen: mails that somebody has read. received: when a mail came, in
    seconds since 1970; now, unless it is named. `limits` has the limit of each list; `most_read_at_once` is the highest
    number of mails read concurrently.
    """

    def __init__(self, *names: str) -> None:
        self.mails = {name: mail(name) for name in names}
        self.marks: dict[str, MailMark] = {}
        self.sent: list[str] = []
        self.replies: list[Reply] = []
        self.drafts: list[Reply] = []
        self.taken_care_of: set[str] = set()
        self.seen: set[str] = set()
        self.received: dict[str, float] = {}
        self.errors: defaultdict[str, list[Exception]] = defaultdict(list)
        self.withheld: set[str] = set()
        self.lost_answers = 0
        self.limits: list[int] = []
        self.reading_s = 0.0
        self.most_read_at_once = 0
        self._being_read = 0
        self.hangs = asyncio.Event()
        self.hangs.set()

    def lose_proof(self, *, sent: bool) -> None:
        """Nobody can tell for now whether the next reply leaves; sent: it does."""
        self.lost_answers = int(sent)
        self.errors["send"] = [integration_error("mail_timeout", uncertain=True)]
        self.errors["find_sent"] = [integration_error("mail_timeout", retryable=True)]

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        await self._call("list_unprocessed")
        self.limits.append(limit)
        entries = [InboxEntry(name, len(raw), self._received(name)) for name, raw in self.mails.items()]
        return [entry for entry in entries if self._state(entry.id, inbox_filter) == "unprocessed"][:limit]

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        await self._call("is_waiting")
        return mail_id in self.mails and self._state(mail_id, InboxFilter(0.0, skip_seen)) == "unprocessed"

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        await self._call("count_by_outcome")
        states = Counter(self._state(name, inbox_filter) for name in self.mails)
        return {state: states[state] for state in ("unprocessed", "too_old", "left_alone", *get_args(MailMark))}

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        await self._call("read_raw")
        self._being_read += 1
        self.most_read_at_once = max(self.most_read_at_once, self._being_read)
        await asyncio.sleep(self.reading_s)
        self._being_read -= 1
        if mail_id not in self.mails:
            raise integration_error("mail_not_found")
        if mail_id in self.withheld:
            raise integration_error("mail_unreadable")
        return self.mails[mail_id]

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        if self.lost_answers:
            self.lost_answers -= 1
            self._deliver(reply)
        await self._call("send")
        self._deliver(reply)
        return {"message_id": reply.message_id, "status": "sent"}

    def _deliver(self, reply: Reply) -> None:
        self.sent.append(reply.message_id)
        self.replies.append(reply)

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        await self._call("find_sent")
        return "sent" if message_id in self.sent else "not_sent"

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        if self.lost_answers:
            self.lost_answers -= 1
            self.drafts.append(reply)
        await self._call("save_draft")
        if any(draft.message_id == reply.message_id for draft in self.drafts):
            return {"message_id": reply.message_id, "status": "already_saved"}
        self.drafts.append(reply)
        return {"message_id": reply.message_id, "status": "saved"}

    async def find_draft(self, message_id: str) -> DraftState:
        await self._call("find_draft")
        return "saved" if any(draft.message_id == message_id for draft in self.drafts) else "not_saved"

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        await self._call("mark")
        if mail_id not in self.mails:
            raise integration_error("mail_not_found")
        self.marks[mail_id] = outcome

    async def list_mails(self) -> list[MarkedMail]:
        await self._call("list_mails")
        return [MarkedMail(name, self.marks.get(name)) for name in self.mails]

    async def unmark(self, mail_id: str) -> None:
        await self._call("unmark")
        self.marks.pop(mail_id, None)

    async def wait_for_mail(self, timeout_s: float) -> bool:
        await asyncio.sleep(timeout_s)
        return False

    async def test_connection(self, drafts: bool = False) -> bool:
        await self._call("test_drafts" if drafts else "test_connection")
        return True

    def _received(self, name: str) -> float:
        return self.received.get(name, time.time())

    def _state(self, name: str, inbox_filter: InboxFilter) -> str:
        if name in self.marks:
            return self.marks[name]
        if name in self.taken_care_of or (inbox_filter.skip_seen and name in self.seen):
            return "left_alone"
        return "too_old" if self._received(name) < inbox_filter.received_since else "unprocessed"

    async def _call(self, name: str) -> None:
        await self.hangs.wait()
        if self.errors[name]:
            raise self.errors[name].pop(0)


class Warranties:
    """Everything has a warranty. `errors`: see above. `calls` counts them."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.hangs = False
        self.calls = 0
        self.held_back_s = 0.0  # as if a rate limit had held a call back for so long

    async def look_up(self, number: str) -> Mapping[str, Any]:
        self.calls += 1
        count_wait(self.held_back_s)
        if self.hangs:
            await asyncio.Event().wait()
        if self.errors:
            raise self.errors.pop(0)
        return {"status": "valid", "expiration_date": "2099-12-31", "coverage": "full"}


class Tickets:
    """`created` has the idempotency key of every ticket once, `notes` ticket and text by idempotency key."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.notes: dict[str, tuple[str, str]] = {}

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        self.notes.setdefault(idempotency_key, (ticket_id, note))
        return True

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        key = str(ticket_data["idempotency_key"])
        if key not in self.created:
            self.created.append(key)
        return {"ticket_id": f"TICKET-{self.created.index(key) + 1:06d}", "status": "created"}


def worker_on(mailbox: MailboxInMemory, ledger: Ledger, warranties: Warranties, tickets: Tickets) -> MailWorker:
    """An agent that answers offline; its retries of one call take no time."""
    processor = EmailProcessor(
        mail=mailbox,
        look_ups={"warranty_api": warranties},
        ticketing=tickets,
        llm=shipped_interpreter(),
        instructions=InstructionFiles(INSTRUCTIONS / "main.md", INSTRUCTIONS / "scenarios"),
        model=ModelSettings("offline"),
        clock=SkippingClock(),
        identity_key=KEY,
    )
    settings = AgentSettings(mail_budget_s=30, poll_interval_s=0.05)
    return MailWorker(mailbox, ledger, processor, settings, 0, "the inbox", "this:1")

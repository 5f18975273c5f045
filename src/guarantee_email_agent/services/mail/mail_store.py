"""The mailbox in this process, whichever kind it is: the port to a Maildir, or to IMAP and SMTP, and `LocalMailbox`.

A mailbox is the queue of mails to answer. A mail leaves the queue by a keyword that says what became of it; nothing is
ever marked as seen, so that people who read the same inbox notice no difference.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

from guarantee_email_agent.services.blocking import BlockingService
from guarantee_email_agent.services.call_errors import ToolError, forbid_repeat
from guarantee_email_agent.services.clients import MailClient
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
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.retry import Backoff

KEYWORDS: Final[Mapping[MailMark, str]] = {
    "answered": "$AgentAnswered",
    "drafted": "$AgentDrafted",
    "handed_over": "$AgentHandedOver",
    "not_answered": "$AgentNotAnswered",
    "quarantined": "$AgentQuarantined",
    "unknown": "$AgentUnknown",
}
WRONG: Final = "wrong"
"""The keyword that a person gives to a mail with which the agent went wrong, as the tag of a mail program."""

InboxState = MailMark | Literal["unprocessed", "too_old", "left_alone"]
"""What a mail of the inbox counts as: its mark, else `left_alone` if people took care of it, else by its age."""

INBOX_STATES: Final[tuple[InboxState, ...]] = ("unprocessed", "too_old", "left_alone", *KEYWORDS)


@dataclass(frozen=True, slots=True)
class MailListing:
    """The oldest mails of those to answer, and how many there are in all."""

    entries: tuple[InboxEntry, ...]
    total: int


class MailStore(Protocol):
    """What `Mailbox` promises, blocking; may be called from several threads at once.

    Every method raises ToolError with a code `mail_…`.
    """

    proof_lags: bool
    """Whether the proof of a sent reply may come later than the reply itself."""

    def list_unprocessed(self, limit: int, inbox_filter: InboxFilter = ANY_MAIL) -> MailListing: ...
    def read_raw(self, mail_id: str, max_bytes: int) -> bytes: ...
    def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool: ...
    def send(self, reply: Reply) -> Literal["sent", "already_sent"]: ...

    def find_sent(self, message_id: str, everywhere: bool = False) -> SentState:
        """Whether a reply was sent, as far as can be seen now.

        everywhere: look for its copy also where it does not belong, since others may have moved it. This takes a while.
        """

    def save_draft(self, reply: Reply) -> Literal["saved", "already_saved"]: ...
    def find_draft(self, message_id: str) -> DraftState: ...

    def mark(self, mail_id: str, outcome: MailMark) -> None:
        """Raises mail_not_found."""

    def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> Mapping[str, int]: ...

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        """Wait until the inbox may hold something new, for at most `timeout_s` or until `stop`."""

    def test_connection(self, drafts: bool = False) -> str:
        """Try what can be tried without a mail; in a few words, what was reached.

        The inbox; then the folder for sent mail and the way to send, or, for `drafts`, the folder for drafts instead.
        """

    def close(self) -> None: ...


@runtime_checkable
class OwnMailStore(MailStore, Protocol):
    """What a Maildir and an IMAP mailbox both are: it can be searched, marks come off, and it names its ledger."""

    def find_mail(self, message_id: str) -> str | None: ...
    def list_mails(self) -> Sequence[MarkedMail]: ...

    def unmark(self, mail_id: str) -> None:
        """Raises mail_not_found."""

    def find_owner(self) -> str | None: ...
    def claim_mailbox(self, ledger: str, take_over: bool = False) -> str: ...
    def list_sent(self, since: float, most_bytes: int, read: Callable[[bytes], _Answer]) -> Sequence[_Answer]: ...


def mail_not_found(mail_id: str) -> ToolError:
    return ToolError("mail_not_found", f"there is no mail {mail_id[:80]!r} in the inbox any more")


def mail_unreadable(mail_id: str, reason: str) -> ToolError:
    """It is in the inbox, and others can be read."""
    return ToolError("mail_unreadable", f"mail {mail_id[:80]} cannot be read: {reason}")


def check_size(mail_id: str, size: int, max_bytes: int) -> None:
    """Raises mail_too_large."""
    if size > max_bytes:
        raise ToolError("mail_too_large", f"mail {mail_id} has {size} bytes, over the limit of {max_bytes}")


_Answer = TypeVar("_Answer")
_PROOF_BACKOFF: Final = Backoff(0.25, growth=1.5, longest_s=2.0)


class LocalMailbox(MailClient):
    """copy_wait_s: after this many seconds the proof of a sent reply will not come. read_only: the connection test only
    counts the mails.
    """

    def __init__(
        self, service: BlockingService[OwnMailStore], clock: Clock, copy_wait_s: float, *, read_only: bool = False
    ) -> None:
        super().__init__(service.name, clock)
        self._service = service
        self._copy_wait_s = copy_wait_s
        self._read_only = read_only

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        listing = await self._call("list_unprocessed", lambda store: store.list_unprocessed(limit, inbox_filter))
        return list(listing.entries)

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        return await self._call("read_raw", lambda store: store.read_raw(mail_id, max_bytes))

    async def find_mail(self, message_id: str) -> str | None:
        return await self._call("find_mail", lambda store: store.find_mail(message_id))

    async def _list_mails(self) -> list[MarkedMail]:
        return list(await self._call("list_mails", lambda store: store.list_mails()))

    async def unmark(self, mail_id: str) -> None:
        await self._call("unmark", lambda store: store.unmark(mail_id))

    async def list_sent(self, since: float, most_bytes: int, read: Callable[[bytes], _Answer]) -> list[_Answer]:
        return list(await self._call("list_sent", lambda store: store.list_sent(since, most_bytes, read)))

    async def find_owner(self) -> str | None:
        return await self._service.call("find_owner", lambda store: store.find_owner())

    async def claim(self, ledger: str, *, take_over: bool = False) -> str | None:
        return await self._service.call("claim_mailbox", lambda store: store.claim_mailbox(ledger, take_over))

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        return await self._call("is_waiting", lambda store: store.is_waiting(mail_id, skip_seen))

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        with self._sending() as circuit:
            status = await self._call("send_reply", lambda store: store.send(reply), circuit)
        return {"message_id": reply.message_id, "status": status}

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        with forbid_repeat():
            status = await self._call("save_draft", lambda store: store.save_draft(reply))
        return {"message_id": reply.message_id, "status": status}

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        """The proof may take a while after the reply itself."""
        lags = await self._call("find_sent", lambda store: store.proof_lags)

        async def look(everywhere: bool) -> SentState:
            return await self._call("find_sent", lambda store: store.find_sent(message_id, everywhere))

        return await wait_for_proof(look, min(wait_s, self._copy_wait_s) if lags else 0, self._clock)

    async def find_draft(self, message_id: str) -> DraftState:
        return await self._call("find_draft", lambda store: store.find_draft(message_id))

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        await self._call("mark", lambda store: store.mark(mail_id, outcome))

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        return dict(await self._call("tally", lambda store: store.count_by_outcome(inbox_filter)))

    async def wait_for_mail(self, timeout_s: float) -> bool:
        stop = threading.Event()
        try:
            return await self._service.wait("wait_for_mail", lambda store: store.wait(timeout_s, stop))
        finally:
            stop.set()

    async def test_connection(self, drafts: bool = False) -> bool:
        if self._read_only:
            await self._service.call("tally", lambda store: store.count_by_outcome())
        else:
            await self._service.call("test_connection", lambda store: store.test_connection(drafts))
        return True

    async def close(self) -> None:
        await self._service.close()

    async def _call(
        self, tool: str, work: Callable[[OwnMailStore], _Answer], circuit: CircuitBreaker | None = None
    ) -> _Answer:
        return await self._guarded(lambda: self._service.call(tool, work), circuit)


async def wait_for_proof(look: Callable[[bool], Awaitable[SentState]], wait_s: float, clock: Clock) -> SentState:
    """What is found within so many seconds. look: whether to look everywhere, which takes a while, at the last try."""
    deadline = clock.monotonic() + wait_s
    for attempt in count(1):
        is_last = clock.monotonic() >= deadline
        state = await look(is_last)
        if state == "sent" or is_last:
            return state
        await clock.sleep(max(0.0, min(_PROOF_BACKOFF.delay_s(attempt), deadline - clock.monotonic())))
    raise AssertionError("a deadline passes")

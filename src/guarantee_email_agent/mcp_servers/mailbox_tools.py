"""The mailbox as MCP tools: calls in, results and errors out, and nothing decided here."""

from __future__ import annotations

import base64
import threading
from typing import Annotated, Final, Literal

from pydantic import Field

from guarantee_email_agent.email.parsing.email import MAX_MAIL_BYTES
from guarantee_email_agent.mcp_servers.server import ServerTool, ToolArguments, ToolOutput, in_thread
from guarantee_email_agent.services.blocking import in_daemon_thread
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.compose import MESSAGE_ID
from guarantee_email_agent.services.mail.mail_store import (
    MailStore,
    OwnMailStore,
    wait_for_proof,
)
from guarantee_email_agent.services.ports import DraftState, InboxFilter, MailMark, Reply, SentState
from guarantee_email_agent.utils.clock import SystemClock

MAX_READ_BYTES: Final = 100_000_000
_YEAR_3000: Final = 32_503_680_000  # beyond what calendars can hold there is no filter

INSTRUCTIONS: Final = (
    "An inbox whose mails are answered one by one. Take mails from list_unprocessed, read them with read_raw, answer "
    "with send_reply, and mark each with what became of it, so that it is not listed again."
)

_MailId = Annotated[str, Field(min_length=1, max_length=300, description="id from list_unprocessed")]
_MessageId = Annotated[
    str, Field(min_length=3, max_length=902, description="Message-ID of the reply, with its angle brackets")
]
_MailMessageId = Annotated[
    str, Field(min_length=3, max_length=902, description="Message-ID of the mail, with its angle brackets")
]
_Count = Annotated[int, Field(ge=0)]
_Bytes = Annotated[int, Field(ge=0, description="bytes")]


class Filter(ToolArguments):
    received_since: float = Field(
        0, ge=0, le=_YEAR_3000, description="seconds since 1970; mails delivered before are left out, with 0 none is"
    )
    skip_seen: bool = Field(False, description="leave out mails that somebody has read")


class ListUnprocessed(Filter):
    limit: int = Field(100, ge=1, le=100_000)


class ListedMail(ToolOutput):
    id: str
    size: _Bytes
    received: float = Field(description="when it was delivered, in seconds since 1970")


class UnprocessedMails(ToolOutput):
    messages: list[ListedMail]
    total: _Count


class RawMail(ToolOutput):
    raw: str = Field(description="the mail (RFC 5322), in base64")
    size: _Bytes


class FoundMail(ToolOutput):
    id: str | None = Field(
        description="as list_unprocessed has it; null where no mail of the inbox has this Message-ID"
    )


class SendReply(ToolArguments):
    to: str = Field(max_length=320, description="one bare address: customer@example.org")
    subject: str = Field(max_length=998)
    body: str = Field(max_length=200_000, description="plain text")
    message_id: _MessageId
    in_reply_to: str = Field(
        "", max_length=2_000, description="Message-ID of the mail answered; a malformed one is left out"
    )
    references: str = Field("", max_length=60_000, description="Message-IDs of the thread so far, with spaces between")
    headers: dict[str, Annotated[str, Field(max_length=2_000)]] = Field(
        {}, description="further headers: Precedence and X-…"
    )


class WaitingMail(ToolOutput):
    waiting: bool


class SavedDraft(ToolOutput):
    message_id: str
    status: Literal["saved", "already_saved"]


class FoundDraft(ToolOutput):
    state: DraftState


class SentReply(ToolOutput):
    message_id: str
    status: Literal["sent", "already_sent"]


class FoundSent(ToolOutput):
    state: SentState


class AnyMail(ToolOutput):
    id: str
    mark: MailMark | None = Field(description="what became of it; null where it bears no mark")
    wrong: bool | None = Field(description="whether a person gave it the keyword wrong; null where nobody can tell")


class AllMails(ToolOutput):
    messages: list[AnyMail]


class Tally(ToolOutput):
    unprocessed: _Count
    too_old: _Count
    left_alone: _Count
    answered: _Count
    drafted: _Count
    handed_over: _Count
    not_answered: _Count
    quarantined: _Count
    unknown: _Count


class MailboxOwner(ToolOutput):
    ledger: str | None = Field(description="id of the ledger; null where none has claimed the mailbox")


class InboxChange(ToolOutput):
    changed: bool


class TestedMailbox(ToolOutput):
    mailbox: str


class MailboxTools:
    """The tools over one mailbox. copy_wait_s: after this many seconds the proof of a sent reply will not come."""

    def __init__(self, store: MailStore, copy_wait_s: float) -> None:
        self._store = store
        self._copy_wait_s = copy_wait_s

    def tools(self) -> list[ServerTool]:
        own = [
            ServerTool(self.find_mail, read_only=True),
            ServerTool(self.find_owner, read_only=True),
            ServerTool(self.claim_mailbox, idempotent=True),
            ServerTool(self.list_mails, read_only=True),
            ServerTool(self.unmark, idempotent=True),
        ]
        return [
            ServerTool(self.list_unprocessed, read_only=True),
            ServerTool(self.read_raw, read_only=True),
            *(own if isinstance(self._store, OwnMailStore) else ()),
            ServerTool(self.is_waiting, read_only=True),
            ServerTool(self.send_reply, idempotent=True),
            ServerTool(self.find_sent, read_only=True),
            ServerTool(self.save_draft, idempotent=True),
            ServerTool(self.find_draft, read_only=True),
            ServerTool(self.mark, idempotent=True),
            ServerTool(self.tally, read_only=True),
            ServerTool(self.wait_for_mail, read_only=True),
            ServerTool(self.test_connection, read_only=True),
        ]

    @property
    def _own(self) -> OwnMailStore:
        assert isinstance(self._store, OwnMailStore)  # else what asks for it is no tool
        return self._store

    async def list_unprocessed(self, arguments: ListUnprocessed) -> UnprocessedMails:
        """The mails to answer, oldest first, and how many there are in all.

        Not those that were marked, and not those that people answered, flagged, deleted or wrote as a draft.
        """
        listing = await in_thread(self._store.list_unprocessed, arguments.limit, _inbox_filter(arguments))
        messages = [ListedMail(id=entry.id, size=entry.size, received=entry.received) for entry in listing.entries]
        return UnprocessedMails(messages=messages, total=listing.total)

    async def read_raw(
        self,
        id: _MailId,  # noqa: A002 - its name in the protocol, here and below
        max_bytes: Annotated[int, Field(ge=1, le=MAX_READ_BYTES, description="a larger mail is mail_too_large")] = (
            MAX_MAIL_BYTES
        ),
    ) -> RawMail:
        """One whole mail as it arrived, in base64. It stays unread and unmarked."""

        def read() -> RawMail:
            raw = self._store.read_raw(id, max_bytes)
            return RawMail(raw=base64.b64encode(raw).decode("ascii"), size=len(raw))

        return await in_thread(read)

    async def find_mail(self, message_id: _MailMessageId) -> FoundMail:
        """The inbox's mail with this Message-ID, whatever became of it. It stays unread and unmarked."""
        _check_message_id("find_mail", message_id)
        return FoundMail(id=await in_thread(self._own.find_mail, message_id))

    async def find_owner(self) -> MailboxOwner:
        """Which ledger this mailbox is served with: agents with different ones would answer each mail twice."""
        return MailboxOwner(ledger=await in_thread(self._own.find_owner))

    async def claim_mailbox(
        self,
        ledger: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", description="its id: 16 hexadecimal digits")],
        take_over: Annotated[bool, Field(description="claim it also where another ledger has it")] = False,
    ) -> MailboxOwner:
        """Mark this mailbox as served with a ledger, unless another has it; whose it is then."""
        return MailboxOwner(ledger=await in_thread(self._own.claim_mailbox, ledger, take_over))

    async def is_waiting(
        self,
        id: _MailId,  # noqa: A002
        skip_seen: Annotated[bool, Field(description="whether a mail that somebody has read waits no more")] = False,
    ) -> WaitingMail:
        """Whether a mail still waits for an answer: it is there, unmarked, and nobody took care of it meanwhile."""
        return WaitingMail(waiting=await in_thread(self._store.is_waiting, id, skip_seen))

    async def send_reply(self, arguments: SendReply) -> SentReply:
        """Send a reply in plain text to one address, from this mailbox's own address, marked as an automatic reply.

        A second call with the same message_id sends nothing: already_sent.
        """
        status = await in_thread(self._store.send, Reply(**dict(arguments)))
        return SentReply(message_id=arguments.message_id, status=status)

    async def find_sent(
        self, message_id: _MessageId, wait_s: Annotated[float, Field(ge=0, le=600, description="seconds")] = 0
    ) -> FoundSent:
        """Whether a reply was sent, by its Message-ID: sent, not_sent, or unknown where nothing proves either.

        The proof may take a while after the reply itself; wait_s waits for it.
        """
        _check_message_id("find_sent", message_id)

        async def look(everywhere: bool) -> SentState:
            return await in_thread(self._store.find_sent, message_id, everywhere)

        patience_s = min(wait_s, self._copy_wait_s) if self._store.proof_lags else 0
        return FoundSent(state=await wait_for_proof(look, patience_s, SystemClock()))

    async def save_draft(self, arguments: SendReply) -> SavedDraft:
        """Put a reply into the Drafts folder, for a person to look at and send. It is not marked as automatic.

        A second call with the same message_id stores nothing: already_saved.
        """
        status = await in_thread(self._store.save_draft, Reply(**dict(arguments)))
        return SavedDraft(message_id=arguments.message_id, status=status)

    async def find_draft(self, message_id: _MessageId) -> FoundDraft:
        """Whether a draft was stored, by its Message-ID: it is among the drafts, or a person sent it as it was."""
        _check_message_id("find_draft", message_id)
        return FoundDraft(state=await in_thread(self._store.find_draft, message_id))

    async def mark(self, id: _MailId, outcome: MailMark) -> ToolOutput:  # noqa: A002
        """Say what became of a mail. It is no longer listed; whether it was read stays as it is."""
        await in_thread(self._store.mark, id, outcome)
        return ToolOutput()

    async def list_mails(self) -> AllMails:
        """Every mail of the inbox with its mark, whatever became of it, in no order."""
        found = await in_thread(self._own.list_mails)
        return AllMails(messages=[AnyMail(id=each.id, mark=each.mark, wrong=each.is_wrong) for each in found])

    async def unmark(self, id: _MailId) -> ToolOutput:  # noqa: A002
        """Take the mark off a mail: it is listed among those to answer again, unless people took care of it."""
        await in_thread(self._own.unmark, id)
        return ToolOutput()

    async def tally(self, arguments: Filter) -> Tally:
        """How many mails of the inbox bear each mark, and of the others, how many were left alone or are too old."""
        return Tally(**await in_thread(self._store.count_by_outcome, _inbox_filter(arguments)))

    async def wait_for_mail(
        self, timeout_s: Annotated[float, Field(ge=0, le=3600, description="seconds")]
    ) -> InboxChange:
        """Wait until the inbox may hold something new, at most timeout_s. List it then."""
        stop = threading.Event()
        try:
            return InboxChange(changed=await in_daemon_thread(lambda: self._store.wait(timeout_s, stop)))
        finally:
            stop.set()

    async def test_connection(
        self,
        drafts: Annotated[bool, Field(description="whether replies are stored as drafts")] = False,
    ) -> TestedMailbox:
        """Try the inbox, the folder for sent mail and the way to send, or the folder for drafts; nothing is sent."""
        return TestedMailbox(mailbox=await in_thread(self._store.test_connection, drafts))


def _inbox_filter(arguments: Filter) -> InboxFilter:
    return InboxFilter(arguments.received_since, arguments.skip_seen)


def _check_message_id(tool: str, message_id: str) -> None:
    if not MESSAGE_ID.fullmatch(message_id):
        raise ToolError("mail_invalid_argument", f"{tool}: message_id is no Message-ID of the form <text@domain>")

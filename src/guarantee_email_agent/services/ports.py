"""What the agent needs of the outside world: a mailbox, what it looks numbers up in, a ticketing system.

A failure is an IntegrationError with code `{port}_{timeout|unavailable|malformed|...}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args

from guarantee_email_agent.services.call_errors import MalformedAnswerError

MailMark = Literal["answered", "drafted", "handed_over", "not_answered", "quarantined", "unknown"]
"""What became of a mail, as the mailbox keeps it. `drafted`: a reply to it waits for a person to send it."""

Outcome = MailMark | Literal["observed"]
"""The same as the ledger keeps it. `observed`: it was only said what would have been done, so the mail has no mark."""

OUTCOMES: Final[tuple[Outcome, ...]] = (*get_args(MailMark), "observed")

PARKED: Final[tuple[Outcome, ...]] = ("handed_over", "quarantined", "unknown")
"""The outcomes of mails that wait for a person, who may give them back."""

SentState = Literal["sent", "not_sent", "unknown"]
"""What can be proved about a reply; `unknown` where the mailbox keeps no proof."""

DraftState = Literal["saved", "not_saved", "unknown"]
"""The same of a draft."""

Comparison = Literal["as_it_was", "edited", "another", "not_answered", "unknown"]
"""Of a draft, or a reply that was observed, with what people sent. `not_answered`: nothing so far, as the Sent folder
tells. `unknown`: nobody has looked, or it cannot be compared."""

TICKET_ID: Final = re.compile(r"[A-Za-z0-9._/#-]{1,64}")


class InboxEntry(NamedTuple):
    """A mail in the inbox. id: opaque, the same as long as the mail is there. size: bytes; 0 where it is not known.

    received: when it was delivered, in seconds since 1970, whatever its own Date says; 0 where it is not known.
    """

    id: str
    size: int
    received: float = 0.0


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Which mails of the inbox may be answered, beside those that people took care of.

    received_since: seconds since 1970; mails delivered before are left alone. 0: none is.
    skip_seen: leave alone what somebody has read.
    """

    received_since: float = 0.0
    skip_seen: bool = False


ANY_MAIL: Final = InboxFilter()


class MarkedMail(NamedTuple):
    """A mail of the inbox, whatever became of it. mark: None where it bears none.

    is_wrong: whether a person gave it the keyword `wrong`; None where nobody can tell.
    """

    id: str
    mark: MailMark | None
    is_wrong: bool | None = None


class WrittenReply(NamedTuple):
    """What is kept of a reply until a person's is compared with it.

    message_key: of the mail that it answers; None where no answer can name that. reply_words: a hash of each.
    """

    message_key: str | None
    reply_words: str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """to: one bare address. message_id: follows from the mail answered, so that a reply sent twice can be recognised.

    in_reply_to: Message-ID of the mail answered; empty where it has none. references: Message-IDs of the thread so far,
    with spaces between. thread_id: the mailbox's own id of the thread, where it has one.
    """

    to: str
    subject: str
    body: str
    message_id: str
    in_reply_to: str = ""
    references: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    thread_id: str | None = None


class ReplySender(Protocol):
    """The part of a mailbox that answers a mail."""

    async def send(self, reply: Reply) -> Mapping[str, Any]:
        """`{"message_id": …}`. An `uncertain` error is not `retryable`."""

    async def save_draft(self, reply: Reply) -> Mapping[str, Any]:
        """Put a reply into the Drafts folder, for a person to send; a second one with its Message-ID is not stored.

        `{"message_id": …, "status": "saved"|"already_saved"}`. An `uncertain` error is not `retryable`.
        """


class Mailbox(ReplySender, Protocol):
    """The mailbox as the place where mail comes in, is kept, and is answered."""

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        """At most `limit` mails to answer, oldest first.

        Those that bear no mark, that people did not answer, flag, delete or write as a draft, and that pass the filter.
        """

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        """The mail as it came (RFC 5322). Raises `mail_not_found`, `mail_unreadable`, `mail_too_large`."""

    async def find_mail(self, message_id: str) -> str | None:
        """The id of the inbox's mail with this Message-ID, whatever became of it; None where none has it.

        Raises `mail_unsupported` where the mailbox cannot be searched.
        """

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        """Whether a mail would be listed still, whenever it came: somebody may have answered or deleted it meanwhile.

        True where the mailbox cannot tell.
        """

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        """Whether a reply went out. wait_s: how long its copy may take to come before it counts as not sent."""

    async def find_draft(self, message_id: str) -> DraftState:
        """Whether a draft was stored: it is among the drafts, or, where a person sent it as it was, among the sent."""

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        """Keep what became of a mail. It stays where it is, read or unread, and is listed no more."""

    async def list_mails(self) -> list[MarkedMail]:
        """Every mail of the inbox, with its mark. Raises MCPConnectionError where none can tell, or it fails."""

    async def unmark(self, mail_id: str) -> None:
        """Take the mark off a mail, so that it is listed again. Raises `mail_not_found`."""

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        """How many mails of the inbox bear which mark, and how many of the others what keeps from being answered.

        `left_alone`: people took care of them, or have read them and `skip_seen` is set. `too_old`: they came before
        `received_since`. `unprocessed`: nothing, so they are listed.
        """

    async def wait_for_mail(self, timeout_s: float) -> bool:
        """Wait at most so long; True as soon as the inbox may hold something new."""

    async def test_connection(self, drafts: bool = False) -> bool:
        """True, or MCPConnectionError; IntegrationError where the server answers but the mailbox behind it does not.

        drafts: whether replies are stored as drafts, so that the folder for them is tried and sending is not.
        """


class LookUpService(Protocol):
    """What a look-up asks: the warranty system, or one that is configured."""

    async def look_up(self, number: str) -> Mapping[str, Any]:
        """The status and the facts by their keys; the caller checks them by `parse_look_up_answer`."""


class TicketingSystem(Protocol):
    """The ticketing system."""

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """`{"ticket_id": …}`. The same `idempotency_key` gives the same ticket, so a repeated call is harmless.

        The caller checks the answer by `parse_ticket_id`.
        """

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """Add a note to a ticket; the same key adds nothing twice. False where the system takes no notes."""


class Thread(NamedTuple):
    """A conversation that a mail goes on with, by a reply of ours that it answers.

    key: names the thread. scenario: of that reply, as a code; `proved` where the agent was stopped while it was sent.
    ticket_id: the latest ticket of the thread. replied_at: when that reply was about to leave, in seconds since 1970 on
    the ledger's clock. replies: of ours in the thread. follow_ups: mails of the thread besides its first, this one,
    and those that needed no answer.
    """

    key: str
    scenario: str
    ticket_id: str | None
    reply_message_id: str
    replied_at: float
    replies: int
    follow_ups: int


Limit = Literal["copy", "address", "thread", "hour", "text"]
"""Of replies: to one mail however it was altered on its way, to one address and in one thread in a day, in all in an
hour, to the same words in a day."""


class Admission(NamedTuple):
    """What a mail that is to be answered counts as, in keyed hashes (32 to 128 lower-case hexadecimal digits).

    sender_key: of its sender's address. text_key: of its new text; None where that says too little to be compared.
    thread_key: of the Thread that it belongs to; None where it begins one. copy_key: of it and its altered copies; None
    where nothing tells them.
    """

    sender_key: str
    text_key: str | None = None
    thread_key: str | None = None
    copy_key: str | None = None


class ReplyHistory(Protocol):
    """What is known of replies so far, for one mail that is being processed."""

    async def find_thread(self, reply_message_ids: Sequence[str]) -> Thread | None:
        """The thread in which one of these Message-IDs was a reply of ours. From then on the mail belongs to it.

        The last 100 ids are looked at, so the most telling one stands last.
        """

    async def admit(self, admission: Admission) -> Limit | None:
        """The limit that this mail's reply would go beyond; None: it counts from now on, and may be answered.

        Harmless to repeat: a mail never counts against itself.
        """


def parse_ticket_id(raw: object) -> str:
    """Raises IntegrationError `ticketing_malformed` for an answer without a usable ticket number."""
    value = raw.get("ticket_id") if isinstance(raw, Mapping) else None
    if not isinstance(value, str) or not TICKET_ID.fullmatch(value):
        raise MalformedAnswerError("ticketing", "create_ticket", "has no usable ticket_id")
    return value

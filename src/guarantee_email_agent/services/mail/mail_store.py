"""What the tools need of a mailbox, whichever kind it is: the port to a Maildir, or to IMAP and SMTP.

A mailbox is the queue of mails to answer. A mail leaves the queue by a keyword that says what became of it; nothing is
ever marked as seen, so that people who read the same inbox notice no difference.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

from guarantee_email_agent.services.call_errors import ToolError
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
    def list_sent(self, since: float, most_bytes: int) -> Sequence[bytes]: ...


def mail_not_found(mail_id: str) -> ToolError:
    return ToolError("mail_not_found", f"there is no mail {mail_id[:80]!r} in the inbox any more")


def mail_unreadable(mail_id: str, reason: str) -> ToolError:
    """It is in the inbox, and others can be read."""
    return ToolError("mail_unreadable", f"mail {mail_id[:80]} cannot be read: {reason}")


def check_size(mail_id: str, size: int, max_bytes: int) -> None:
    """Raises mail_too_large."""
    if size > max_bytes:
        raise ToolError("mail_too_large", f"mail {mail_id} has {size} bytes, over the limit of {max_bytes}")

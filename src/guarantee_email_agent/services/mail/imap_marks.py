"""What became of a mail, kept on an IMAP server: by a keyword on it, or by the folder that it lies in.

`imap_mark_folders.py` has the folders, for servers that keep no keywords. Both ways are asked on the connection that
has the inbox selected, and both give a mail an id that stays the same whatever its mark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from imapclient import IMAPClient

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.imap_session import fetch_each
from guarantee_email_agent.services.mail.mail_store import KEYWORDS, WRONG, check_size, mail_not_found, mail_unreadable
from guarantee_email_agent.services.mail.special_folder import find_copies
from guarantee_email_agent.services.ports import MailMark, MarkedMail

UNTOUCHED: Final = [b"UNANSWERED", b"UNDRAFT", b"UNDELETED", b"UNFLAGGED"]
"""The criteria of mails that people did not take care of."""

_UNMARKED: Final = [part for name in KEYWORDS.values() for part in (b"UNKEYWORD", name.encode())]
_KEYWORD_ID: Final = re.compile(r"(\d{1,10})-(\d{1,10})", re.ASCII)


class ImapMarks(Protocol):
    """Every method but `read_moved` is asked with the inbox selected. Raises ToolError."""

    def opened(self, selected: Mapping[bytes, Any]) -> None:
        """The inbox was selected on a new connection, with this response."""

    def unmarked(self) -> list[bytes]:
        """The criteria of mails in the inbox that bear no mark."""

    def ids(self, client: IMAPClient, uids: Sequence[int]) -> dict[int, str]:
        """The id of each mail that is there still; two of the same id are copies of one mail."""

    def uids(self, client: IMAPClient, mail_id: str) -> list[int]:
        """Where the mail with this id lies in the inbox; none for one that does not."""

    def find(self, client: IMAPClient, message_id: str) -> str | None:
        """The id of the mail with exactly this Message-ID, whatever became of it."""

    def mark(self, client: IMAPClient, mail_id: str, outcome: MailMark) -> list[int]:
        """Instead of any other mark; where it lies in the inbox, or lay before. Raises mail_not_found."""

    def unmark(self, client: IMAPClient, mail_id: str) -> None:
        """Raises mail_not_found."""

    def list_mails(self, client: IMAPClient) -> list[MarkedMail]:
        """Every mail, whatever became of it."""

    def count(self, client: IMAPClient, unmarked: set[int]) -> dict[MailMark, int]:
        """How many mails bear which mark; those of the inbox that do are taken out of `unmarked`."""

    def read_moved(self, mail_id: str, max_bytes: int) -> bytes | None:  # noqa: ARG002 - a mark may move none
        """The whole mail where its mark took it out of the inbox. Raises mail_too_large."""
        return None

    def test(self, client: IMAPClient) -> None:  # noqa: ARG002 - keywords need no folder
        """Raises ToolError where no mail could be marked."""
        return

    def describe(self) -> str:
        """For people, what follows the name of the inbox."""
        return ""

    def close(self) -> None:
        """Let go of connections."""
        return


class KeywordMarks(ImapMarks):
    """A keyword on the mail, which stays where it is (RFC 3501 §2.3.2). Its id is its UID with the UIDVALIDITY."""

    def __init__(self) -> None:
        self._validity = 0

    @staticmethod
    def are_kept(selected: Mapping[bytes, Any]) -> bool:
        """Whether the server says that it keeps them (RFC 3501 §7.1, PERMANENTFLAGS)."""
        allowed = _lowered(selected.get(b"PERMANENTFLAGS", ()))
        return "\\*" in allowed or allowed.issuperset(name.lower() for name in KEYWORDS.values())

    @staticmethod
    def are_known(selected: Mapping[bytes, Any]) -> bool:
        """Whether one of ours was ever set in the folder, as far as the server says."""
        return not _lowered(selected.get(b"FLAGS", ())).isdisjoint(name.lower() for name in KEYWORDS.values())

    def opened(self, selected: Mapping[bytes, Any]) -> None:
        self._validity = int(selected.get(b"UIDVALIDITY", 0))

    def unmarked(self) -> list[bytes]:
        return _UNMARKED

    def ids(self, client: IMAPClient, uids: Sequence[int]) -> dict[int, str]:  # noqa: ARG002 - needs no server
        return {uid: keyword_id(self._validity, uid) for uid in uids}

    def uids(self, client: IMAPClient, mail_id: str) -> list[int]:  # noqa: ARG002 - whether it is there, others ask
        return uid_of_keyword_id(mail_id, self._validity)

    def find(self, client: IMAPClient, message_id: str) -> str | None:
        uids = find_copies(client, message_id)
        return keyword_id(self._validity, uids[-1]) if uids else None

    def mark(self, client: IMAPClient, mail_id: str, outcome: MailMark) -> list[int]:
        (uid,) = self._uid(client, mail_id)
        flags = client.add_flags([uid], [KEYWORDS[outcome]]).get(uid)
        if flags is None:  # the server tells the flags of mails that it changed, and does not mind a missing one
            flags = client.get_flags([uid]).get(uid)
        if flags is None:
            raise mail_not_found(mail_id)
        lowered = _lowered(flags)
        if KEYWORDS[outcome].lower() not in lowered:
            text = "the IMAP server did not keep the keyword that was set. Use --marks folders"
            raise ToolError("mail_unsupported", text)
        if others := [name for kind, name in KEYWORDS.items() if kind != outcome and name.lower() in lowered]:
            client.remove_flags([uid], others, silent=True)
        return [uid]

    def unmark(self, client: IMAPClient, mail_id: str) -> None:
        uids = self._uid(client, mail_id)
        client.noop()  # makes the server tell of mails that others removed
        if client.get_flags(uids).get(uids[0]) is None:
            raise mail_not_found(mail_id)
        client.remove_flags(uids, list(KEYWORDS.values()), silent=True)

    def list_mails(self, client: IMAPClient) -> list[MarkedMail]:
        client.noop()  # makes the server look for what others changed
        marks: dict[int, MailMark] = {}
        for outcome, keyword in KEYWORDS.items():
            marks.update(dict.fromkeys(client.search([b"KEYWORD", keyword.encode()]), outcome))
        uids, wrong = client.search([b"UNDELETED"]), set(client.search([b"KEYWORD", WRONG.encode()]))
        return [MarkedMail(keyword_id(self._validity, uid), marks.get(uid), uid in wrong) for uid in uids]

    def count(self, client: IMAPClient, unmarked: set[int]) -> dict[MailMark, int]:
        counts: dict[MailMark, int] = {}
        for outcome, keyword in KEYWORDS.items():
            # Each mail once, also one that is marked meanwhile or has two keywords.
            marked = unmarked.intersection(client.search([b"KEYWORD", keyword.encode()]))
            counts[outcome] = len(marked)
            unmarked -= marked
        return counts

    def _uid(self, client: IMAPClient, mail_id: str) -> list[int]:
        if not (uids := self.uids(client, mail_id)):
            raise mail_not_found(mail_id)
        return uids


def keyword_id(validity: int, uid: int) -> str:
    """What a mail is called that stays where it is, so that keywords can mark it."""
    return f"{validity}-{uid}"


def uid_of_keyword_id(mail_id: str, validity: int) -> list[int]:
    """None for an id of another kind, or of before the folder was made anew."""
    match = _KEYWORD_ID.fullmatch(mail_id)
    return [int(match[2])] if match is not None and int(match[1]) == validity else []


def fetch_body(client: IMAPClient, uid: int, mail_id: str, size: int, max_bytes: int) -> bytes | None:
    """The whole mail in the selected folder, left unread; None if it is gone. size: 0 if unknown. Raises ToolError."""
    if not size:  # it may be of any size
        raise mail_unreadable(mail_id, "the IMAP server does not tell its size")
    check_size(mail_id, size, max_bytes)
    parts = fetch_each(client, [uid], [b"BODY.PEEK[]"]).get(uid)
    if parts is None:
        return None
    if raw := parts.get(b"BODY[]"):
        return bytes(raw)
    raise mail_unreadable(mail_id, "the IMAP server does not hand it out")


def uid_set(uids: Sequence[int]) -> bytes:
    """As a search names them (RFC 3501 §9, sequence-set)."""
    return ",".join(map(str, uids)).encode()


def _lowered(flags: Sequence[bytes]) -> set[str]:
    return {flag.decode("ascii", "replace").lower() for flag in flags}

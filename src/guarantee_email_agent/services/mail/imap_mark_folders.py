"""Marks as folders, for IMAP servers that keep no keywords, as Exchange: a mail is moved to the folder of its outcome.

A UID ends with a move, so a mail is known by its headers instead, wherever it lies (`MailIds`). A person who puts a
mail back into the inbox thereby takes its mark off, and the agent finds it under the id that it had before.
"""

from __future__ import annotations

import email
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from typing import Any, Final, TypeVar

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.imap_marks import ImapMarks, fetch_body, keyword_id, uid_of_keyword_id, uid_set
from guarantee_email_agent.services.mail.imap_session import ImapSession, fetch_each, fetched_part, in_pages, is_passing
from guarantee_email_agent.services.mail.mail_server import MailServer, format_response
from guarantee_email_agent.services.mail.mail_store import KEYWORDS, mail_not_found
from guarantee_email_agent.services.mail.special_folder import (
    find_copies,
    folder_prefix,
    make_folder,
    search_term,
    single_header,
)
from guarantee_email_agent.services.ports import MailMark, MarkedMail

_IDENTIFYING: Final = ("Received", "Message-ID", "Date", "From", "To", "Subject")
_HEADERS: Final = f"BODY.PEEK[HEADER.FIELDS ({' '.join(_IDENTIFYING).upper()})]".encode()
_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
FOLDERS: Final[Mapping[MailMark, str]] = {kind: kind.replace("_", " ").capitalize() for kind in KEYWORDS}
"""By outcome: `Answered`, `Drafted`, `Handed over` and so on."""

_TEXT: Final = b"BODY.PEEK[TEXT]<0.100000>"
_PAGE: Final = 200  # mails whose headers are fetched at a time
_IDS_KEPT: Final = 200_000
_Result = TypeVar("_Result")


class MailIds:
    """The ids of the mails of one folder, by their UIDs; methods that take a client are asked with it selected.

    An id is a hash of headers that nothing changes on the way from one folder to another. The uppermost Received line
    is the mail server's own, with a time and mostly a number that no sender can choose; so a sender who knows all of
    another mail's headers can at worst have their own mail taken for its copy. A mail without one, which did not come
    over SMTP, is told from others by its text as well.
    """

    def __init__(self) -> None:
        self.validity = 0
        self._ids: dict[int, str] = {}
        self._uids: dict[str, list[int]] = {}
        self._search_terms: dict[str, str] = {}  # also of mails that were moved since

    def opened(self, selected: Mapping[bytes, Any]) -> None:
        validity = int(selected.get(b"UIDVALIDITY", 0))
        if validity != self.validity:
            self._forget_all()
        self.validity = validity

    def of(self, client: IMAPClient, uids: Sequence[int]) -> dict[int, str]:
        """Of those that are there, in the order of `uids`; a UID names one whose headers the server withholds."""
        withheld: dict[int, str] = {}
        if len(self._search_terms) >= _IDS_KEPT:
            self._forget_all()
        unknown = [uid for uid in uids if uid not in self._ids]
        for page in in_pages(unknown, _PAGE):
            headers = {
                uid: fetched_part(parts, b"BODY[HEADER") for uid, parts in fetch_each(client, page, [_HEADERS]).items()
            }
            mails = {uid: email.message_from_bytes(raw) for uid, raw in headers.items() if raw is not None}
            local = [uid for uid, mail in mails.items() if "Received" not in mail]
            texts = fetch_each(client, local, [_TEXT]) if local else {}
            withheld |= {uid: keyword_id(self.validity, uid) for uid, raw in headers.items() if raw is None}
            for uid, mail in mails.items():
                text = fetched_part(texts.get(uid, {}), b"BODY[TEXT]")
                if uid in local and text is None:
                    if uid in texts:  # else another session moved it
                        withheld[uid] = keyword_id(self.validity, uid)
                    continue
                mail_id = _mail_id(mail, text or b"")
                self._ids[uid] = mail_id
                self._uids.setdefault(mail_id, []).append(uid)
                self._search_terms[mail_id] = search_term(single_header(mail, "Message-ID"))
        return {uid: known for uid in uids if (known := self._ids.get(uid) or withheld.get(uid))}

    def search_term(self, mail_id: str) -> str:
        """A part of its Message-ID; empty where that is not known, or has none that servers search for."""
        return self._search_terms.get(mail_id, "")

    def find(self, client: IMAPClient, mail_id: str, term: str = "") -> list[int]:
        """The UIDs of the mails with this id that are there, in order.

        term: a part of its Message-ID, where that is known. Without one a mail that was not seen before takes a look at
        the headers of all, which takes a while.
        """
        if not _ID.fullmatch(mail_id):
            named = uid_of_keyword_id(mail_id, self.validity)
            return sorted(client.search([b"UID", uid_set(named), b"UNDELETED"])) if named else []
        if (known := self._uids.get(mail_id)) and (present := client.search([b"UID", uid_set(known), b"UNDELETED"])):
            return sorted(present)
        if term := term or self.search_term(mail_id):
            named = client.search([b"UNDELETED", b"HEADER", b"Message-ID", term.encode()])
            return sorted(uid for uid, each in self.of(client, named).items() if each == mail_id)
        unknown = sorted(set(client.search([b"UNDELETED"])) - self._ids.keys(), reverse=True)
        for page in in_pages(unknown, _PAGE):
            found = self.of(client, page)
            if uids := [uid for uid, each in found.items() if each == mail_id]:
                return sorted(uids)
        return []

    def forget(self, uids: Sequence[int]) -> None:
        """They were moved away."""
        for uid in uids:
            if (mail_id := self._ids.pop(uid, None)) is not None:
                self._uids[mail_id].remove(uid)
                if not self._uids[mail_id]:
                    del self._uids[mail_id]

    def _forget_all(self) -> None:
        for known in (self._ids, self._uids, self._search_terms):
            known.clear()


class FolderMarks(ImapMarks):
    """What lies in the folders is asked for on a connection of its own, made when first needed."""

    def __init__(self, server: MailServer, inbox: str, parent: str) -> None:
        self._session = ImapSession(server, lambda _: None)
        self._inbox = inbox
        self._parent = parent
        self._ids = MailIds()
        self._moved: dict[MailMark, MailIds] = {outcome: MailIds() for outcome in KEYWORDS}
        self._paths: dict[MailMark, str] = {}

    def opened(self, selected: Mapping[bytes, Any]) -> None:
        self._ids.opened(selected)

    def exist(self, client: IMAPClient) -> bool:
        """Whether there is one of the folders. Asked on any connection."""
        return any(client.folder_exists(path) for path in self._all_paths(client).values())

    def unmarked(self) -> list[bytes]:
        return []

    def ids(self, client: IMAPClient, uids: Sequence[int]) -> dict[int, str]:
        return self._ids.of(client, uids)

    def uids(self, client: IMAPClient, mail_id: str) -> list[int]:
        return self._ids.find(client, mail_id)

    def find(self, client: IMAPClient, message_id: str) -> str | None:
        client.noop()
        if uids := find_copies(client, message_id):
            return self._ids.of(client, uids[-1:]).get(uids[-1])

        def look(moved: IMAPClient, outcome: MailMark) -> str | None:
            uids = find_copies(moved, message_id)
            return self._moved[outcome].of(moved, uids[-1:]).get(uids[-1]) if uids else None

        return self._first_of_folders(look)

    def mark(self, client: IMAPClient, mail_id: str, outcome: MailMark) -> list[int]:
        for is_last in (False, True):
            client.noop()  # makes the server tell of mails that others moved
            if not (uids := self._ids.find(client, mail_id)):
                break
            try:
                self._move(client, uids, self._path(client, outcome))
            except IMAPClientError as error:
                if is_last or "[EXPUNGEISSUED]" not in format_response(error):  # another agent moved it just now
                    raise
            else:
                self._ids.forget(uids)
                return uids
        self._mark_moved(mail_id, outcome)  # an earlier try, another agent or a person has moved it
        return []

    def unmark(self, client: IMAPClient, mail_id: str) -> None:
        client.noop()
        if self._ids.find(client, mail_id):
            return

        def put_back(moved: IMAPClient, outcome: MailMark) -> None:
            if uids := self._moved[outcome].find(moved, mail_id):
                moved.move(uids, self._inbox)
                self._moved[outcome].forget(uids)

        self._first_of_folders(put_back, readonly=False)  # of all: a person may have copied it
        client.noop()
        if not self._ids.find(client, mail_id):
            raise mail_not_found(mail_id)

    def list_mails(self, client: IMAPClient) -> list[MarkedMail]:
        client.noop()
        marks: dict[str, MailMark | None] = {}

        def collect(moved: IMAPClient, outcome: MailMark) -> None:
            found = self._moved[outcome].of(moved, moved.search([b"UNDELETED"]))
            marks.update(dict.fromkeys(found.values(), outcome))

        self._first_of_folders(collect)
        ids = self._ids.of(client, client.search([b"UNDELETED"]))
        marks.update(dict.fromkeys(ids.values()))
        return [MarkedMail(mail_id, mark) for mail_id, mark in marks.items()]

    def count(self, client: IMAPClient, unmarked: set[int]) -> dict[MailMark, int]:  # noqa: ARG002 - none is there
        counts: dict[MailMark, int] = dict.fromkeys(KEYWORDS, 0)

        def count(moved: IMAPClient, outcome: MailMark) -> None:
            counts[outcome] = len(moved.search([b"UNDELETED"]))

        self._first_of_folders(count)
        return counts

    def read_moved(self, mail_id: str, max_bytes: int) -> bytes | None:
        def read(moved: IMAPClient, outcome: MailMark) -> bytes | None:
            uids = self._moved[outcome].find(moved, mail_id)
            if not uids:
                return None
            size = fetch_each(moved, uids[:1], [b"RFC822.SIZE"]).get(uids[0], {}).get(b"RFC822.SIZE", 0)
            return fetch_body(moved, uids[0], mail_id, size, max_bytes)

        return self._first_of_folders(read)

    def test(self, client: IMAPClient) -> None:
        """Make the folders that are missing. Raises mail_folder_missing."""
        for path in self._all_paths(client).values():
            if path.lower() == self._inbox.lower():
                text = f"mails with a mark cannot be put into {path}, which is the inbox itself"
                raise ToolError("mail_folder_missing", f"{text}. Name another parent with mailbox.imap.mark_folder")
            self._create(client, path)

    def describe(self) -> str:
        return f", marks in folders below {self._parent}"

    def close(self) -> None:
        self._session.close()

    def _mark_moved(self, mail_id: str, outcome: MailMark) -> None:
        term = self._ids.search_term(mail_id)
        found: list[MailMark] = []

        def move_on(moved: IMAPClient, found_in: MailMark) -> None:
            if uids := self._moved[found_in].find(moved, mail_id, term):
                found.append(found_in)
                if found_in != outcome:
                    self._move(moved, uids, self._path(moved, outcome))
                    self._moved[found_in].forget(uids)

        self._first_of_folders(move_on, readonly=False)  # of all: a person may have copied it
        if not found:
            raise mail_not_found(mail_id)

    def _first_of_folders(
        self, look: Callable[[IMAPClient, MailMark], _Result], *, readonly: bool = True
    ) -> _Result | None:
        """The first result that counts as true, of looking into each folder that there is."""

        def work(client: IMAPClient) -> _Result | None:
            for outcome, path in self._all_paths(client).items():
                try:
                    selected = client.select_folder(path, readonly=readonly)
                except IMAPClientError as error:
                    if is_passing(error):
                        raise
                    continue  # there is none yet, or people removed it
                self._moved[outcome].opened(selected)
                if found := look(client, outcome):
                    return found
            return None

        return self._session.run(work)

    def _move(self, client: IMAPClient, uids: Sequence[int], path: str) -> None:
        try:
            client.move(uids, path)
        except IMAPClientError as error:
            if "[TRYCREATE]" not in format_response(error) and client.folder_exists(path):
                raise
            self._create(client, path)  # people removed or renamed it
            client.move(uids, path)

    @staticmethod
    def _create(client: IMAPClient, path: str) -> None:
        try:
            make_folder(client, path)
        except IMAPClientError as error:
            if is_passing(error):
                raise
            text = f"there is no folder {path} to put mails into, and the server refused to make it"
            remedy = "Make it, allow it, or name another parent with mailbox.imap.mark_folder"
            raise ToolError("mail_folder_missing", f"{text}: {format_response(error)}. {remedy}") from None

    def _path(self, client: IMAPClient, outcome: MailMark) -> str:
        return self._all_paths(client)[outcome]

    def _all_paths(self, client: IMAPClient) -> dict[MailMark, str]:
        if not self._paths:
            delimiter = next((found for _, found, _ in client.list_folders("", "")), None)
            separator = delimiter.decode("ascii", "replace") if delimiter else " "
            prefix = folder_prefix(client)
            parent = self._parent if self._parent.startswith(prefix) else f"{prefix}{self._parent}"
            self._paths = {outcome: f"{parent}{separator}{FOLDERS[outcome]}" for outcome in KEYWORDS}
        return self._paths


def _mail_id(headers: Message, text: bytes) -> str:
    lines = [f"{name}: {' '.join(str(value).split())}" for name in _IDENTIFYING for value in headers.get_all(name, [])]
    content = "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n\n" + text
    return hashlib.blake2b(content, digest_size=16).hexdigest()

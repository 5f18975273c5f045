"""The folders of an IMAP server for what was sent and for drafts (RFC 6154), which we look into and add to.

Copies of our replies are found by their Message-ID. Servers search headers for a part of a value, in any case; so what
they find is fetched and compared.
"""

from __future__ import annotations

import email
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Final, TypeVar

from imapclient import DELETED, DRAFT, SEEN, IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, IMAPClientReadOnlyError
from imapclient.imapclient import DRAFTS, SENT

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.compose import PROOF_HEADER, verify_proof
from guarantee_email_agent.services.mail.imap_session import ImapSession, fetch_each, fetched_part, in_pages, is_passing
from guarantee_email_agent.services.mail.mail_server import MailServer, format_response
from guarantee_email_agent.utils.addresses import parse_address

_UNUSABLE: Final = frozenset({rb"\noselect", rb"\nonexistent", rb"\drafts"})
MAX_TEXT_BYTES: Final = 400_000  # of a copy; a reply is much shorter
_HEADERS: Final = f"BODY.PEEK[HEADER.FIELDS (FROM TO MESSAGE-ID {PROOF_HEADER.upper()})]".encode()
_TEXT: Final = f"BODY.PEEK[TEXT]<0.{MAX_TEXT_BYTES}>".encode()
_COPIES_PAGE: Final = 50
_SEEN: Final = [SEEN]
_ATOMS: Final = re.compile(r"[-A-Za-z0-9!#$&'+,./:;<=>?@^_`|~]+")  # RFC 3501 §9; the library quotes no bracket or brace
_DAMAGED: Final = re.compile(r"\[(?:SERVERBUG|CORRUPTION)\]")  # RFC 5530 §3
_MAX_TERM_CHARS: Final = 500
SEARCH_S: Final = 10.0
"""Seconds that a look into every folder may take."""

_PAGE: Final = 200
_LOST: Final = frozenset({"mail_unavailable", "mail_timeout"})
_Result = TypeVar("_Result")


class SpecialFolder:
    """A folder with a purpose, on a connection of its own; selected anew for each look, since people take it away."""

    purpose: bytes
    default_name: str
    setting: str
    """What names the folder on the command line."""
    flags: tuple[bytes, ...]
    """Of what is added."""

    def __init__(self, server: MailServer, name: str | None) -> None:
        """name: None for the folder that the server names."""
        self._session = ImapSession(server, lambda _: None)
        self._configured_name = name
        self._name: str | None = None

    def name(self, client: IMAPClient) -> str:
        """The folder's name, which is made where there is none. To be asked on any connection."""
        if self._name is None:
            found = self._configured_name or client.find_special_folder(self.purpose)
            name = found or f"{folder_prefix(client)}{self.default_name}"
            self._make(client, name)
            self._name = name
        return self._name

    def contains(self, message_id: str) -> bool:
        """Whether a mail with exactly this Message-ID is in the folder. Raises ToolError."""

        def search(client: IMAPClient) -> bool:
            self._select(client)
            return bool(find_copies(client, message_id))

        return self._session.run(search)

    def read_since(self, since: float, most_bytes: int, read: Callable[[bytes], _Result]) -> list[_Result]:
        """What is read of the beginning of each mail that came here since then, to the day. Raises ToolError."""

        def read_all(client: IMAPClient) -> list[_Result]:
            self._select(client)
            day = (datetime.fromtimestamp(since, UTC) - timedelta(days=1)).date()
            uids, found = client.search([b"SINCE", day]), list[_Result]()
            for page in in_pages(uids, _PAGE):
                mails = fetch_each(client, page, [f"BODY.PEEK[]<0.{most_bytes}>".encode()])
                found += [read(bytes(parts.get(b"BODY[]<0>") or b"")) for parts in mails.values()]  # b"": not to be had
            return found

        return self._session.run(read_all)

    def append(self, message: bytes) -> None:
        """Put a mail into the folder. Raises ToolError."""

        def append(client: IMAPClient) -> None:
            self._with_name(client, lambda name: client.append(name, message, self.flags))

        self._session.run(append, repeat=False)

    def close(self) -> None:
        self._session.close()

    def _select(self, client: IMAPClient) -> None:
        self._with_name(client, lambda name: client.select_folder(name, readonly=True))

    def _with_name(self, client: IMAPClient, work: Callable[[str], _Result]) -> _Result:
        """The result of `work` with the folder's name; where it is refused, once more with the name found anew."""
        try:
            return work(self.name(client))
        except IMAPClientAbortError:
            raise
        except IMAPClientError:
            self._name = None  # people may have removed or renamed it since its name was found
            return work(self.name(client))

    def _make(self, client: IMAPClient, name: str) -> None:
        try:
            make_folder(client, name)
        except IMAPClientError as error:
            if is_passing(error):
                raise
            text = f"there is no folder {name}, and the server refused to make it: {format_response(error)}"
            raise ToolError("mail_folder_missing", f"{text}. Make it, or name another with {self.setting}") from None


class SentFolder(SpecialFolder):
    """What was sent."""

    purpose = SENT
    default_name = "Sent"
    setting = "mailbox.imap.sent_folder"
    flags = (SEEN,)

    def file(self, client: IMAPClient, uids: Sequence[int]) -> None:
        """Move our own copies here, from the folder that is selected on this connection."""
        self._with_name(client, lambda name: file_as_seen(client, uids, name))

    def is_elsewhere(self, message_id: str, address: str) -> bool | None:
        """Whether such a mail is in any folder at all, where a person or a program may have moved it.

        Drafts do not count. None where not every folder could be looked into, or not in time. Raises ToolError.
        """
        deadline = time.monotonic() + SEARCH_S

        def search(client: IMAPClient) -> bool | None:
            found: bool | None = False
            for flags, _, name in client.list_folders():
                if not _UNUSABLE.isdisjoint(flag.lower() for flag in flags):
                    continue
                if time.monotonic() > deadline:
                    return None
                match self._can_select(client, name):
                    case True if find_copies(client, message_id, address, drafts=False):
                        return True
                    case None:
                        found = None
            return found

        return self._session.run(search)

    @staticmethod
    def _can_select(client: IMAPClient, name: str | None) -> bool | None:
        """None for a damaged folder, or of no proper name: it may hold the copy."""
        if name is None:
            return None
        try:
            client.select_folder(name, readonly=True)
        except IMAPClientError as error:
            if is_passing(error):  # it may hold the copy
                raise
            return None if _DAMAGED.search(str(error)) else False  # somebody else's, or just removed
        return True

    def test(self) -> None:
        """Raises ToolError where the folder cannot be used."""
        self._session.run(self._select)


class DraftsFolder(SpecialFolder):
    """What a person is to send."""

    purpose = DRAFTS
    default_name = "Drafts"
    setting = "mailbox.imap.drafts_folder"
    flags = (DRAFT, SEEN)

    def test(self) -> None:
        """Raises ToolError where drafts cannot be put into the folder."""

        def select(client: IMAPClient) -> None:
            try:
                client.select_folder(self.name(client))
            except IMAPClientReadOnlyError:
                raise self._unusable("may only be read") from None

        self._session.run(select)

    def add(self, message: bytes, message_id: str) -> bool:
        """Put a draft into the folder unless there is one with its Message-ID; whether there was none.

        Raises ToolError, `uncertain` where the connection was lost before the server confirmed the draft.
        """
        if self.contains(message_id):
            return False
        began = False

        def append(client: IMAPClient) -> bool:
            nonlocal began
            began = True
            try:
                client.append(self.name(client), message, self.flags)
            except IMAPClientError as error:
                began = isinstance(error, IMAPClientAbortError)
                if is_passing(error) or "[OVERQUOTA]" in (refusal := format_response(error)):
                    raise
                raise self._unusable(f"took no draft: {refusal}") from None
            return True

        try:
            return self._session.run(append, repeat=False)
        except ToolError as error:
            if began and error.code in _LOST:
                raise ToolError(error.code, error.message, error.retryable, uncertain=True) from None
            raise

    def _unusable(self, problem: str) -> ToolError:
        text = f"the folder {self._name} for drafts {problem}"
        return ToolError("mail_unsupported", f"{text}. Allow its user to, or name another with {self.setting}")


def folder_prefix(client: IMAPClient) -> str:
    """What stands before the names of our own folders, `INBOX.` on some servers (RFC 2342)."""
    return str(client.namespace().personal[0][0]) if client.has_capability("NAMESPACE") else ""


def make_folder(client: IMAPClient, name: str) -> None:
    """Make it unless it is there, or another agent makes it meanwhile. Raises IMAPClientError."""
    if is_there(client, name):
        return
    try:
        client.create_folder(name)
    except IMAPClientError:
        if not is_there(client, name):
            raise
    with suppress(IMAPClientError):  # a courtesy to mail programs
        client.subscribe_folder(name)


def is_there(client: IMAPClient, name: str) -> bool:
    """Not where it is but the name that other folders lie below (RFC 3501 §7.2.2)."""
    missing = {rb"\noselect", rb"\nonexistent"}
    return any(missing.isdisjoint(flag.lower() for flag in flags) for flags, _, _ in client.list_folders("", name))


@dataclass(frozen=True, slots=True)
class CopyCandidate:
    """A mail that may be a copy of a reply of ours."""

    uid: int
    sender: str | None
    recipient: str
    message_id: str
    proof: str
    text: bytes
    withheld: bool

    def is_from(self, address: str) -> bool:
        return self.sender is not None and self.sender.casefold() == address.casefold()


def find_copies(client: IMAPClient, message_id: str, sender: str | None = None, *, drafts: bool = True) -> list[int]:
    """The UIDs of the mails with exactly this Message-ID, and from this sender if one is given, in order.

    Those that are marked as deleted count: they can still be taken back.

    Where the server withholds the header, its own search has to do: our ids are too long to be a part of another.

    drafts: whether those count that were never sent.
    """
    term = search_term(message_id).encode()
    uids = client.search([b"HEADER", b"Message-ID", term, *(() if drafts else (b"UNDRAFT",))])
    found = (mail for mail in _fetch(client, uids, text=False) if mail.withheld or mail.message_id == message_id)
    return sorted(mail.uid for mail in found if sender is None or mail.withheld or mail.is_from(sender))


def search_term(message_id: str) -> str:
    """The longest part of a Message-ID that stands in a search as it is, for what may come from any sender.

    Empty, which every Message-ID matches, where there is none: servers decode an encoded word before they compare.
    """
    parts = [] if "=?" in message_id else _ATOMS.findall(message_id)
    return str(max(parts, key=len, default=""))[:_MAX_TERM_CHARS]


def _fetch(client: IMAPClient, uids: Sequence[int], *, text: bool) -> Iterator[CopyCandidate]:
    """What decides whether these mails are copies; `text` only where asked for."""
    asked = [_HEADERS, _TEXT] if text else [_HEADERS]
    for page in in_pages(uids, _COPIES_PAGE):
        for uid, parts in fetch_each(client, page, asked).items():
            raw = fetched_part(parts, b"BODY[HEADER")
            header = email.message_from_bytes(raw or b"")
            names = ("From", "To", "Message-ID", PROOF_HEADER)
            sender, recipient, message_id, proof = (single_header(header, name) for name in names)
            body = parts.get(b"BODY[TEXT]<0>") or b""
            yield CopyCandidate(uid, parse_address(sender), recipient, message_id, proof, body, raw is None)


def find_own_copies(client: IMAPClient, uids: Sequence[int], address: str, key: bytes) -> dict[int, str]:
    """Those of these mails that we wrote, with their Message-IDs; `uids` in order.

    They are from our address, with a proof that nobody else can make. The text, which may be long, is fetched only
    where a proof is claimed.
    """
    claim = [b"UID", f"{uids[0]}:{uids[-1]}".encode(), b"UNDELETED", b"FROM", address.encode()]
    from_us = sorted(set(client.search(claim)) & set(uids))
    claimed = [mail.uid for mail in _fetch(client, from_us, text=False) if mail.proof and mail.is_from(address)]
    return {
        mail.uid: mail.message_id
        for mail in _fetch(client, claimed, text=True)
        if verify_proof(key, mail.message_id, mail.recipient, mail.text, mail.proof)
    }


def file_as_seen(client: IMAPClient, uids: Sequence[int], folder: str) -> None:
    """Move mails of the selected folder that people sent themselves, which are no news to them.

    Where the server cannot move (RFC 6851), they may stay behind as deleted.
    """
    client.add_flags(uids, _SEEN, silent=True)
    if client.has_capability("MOVE"):
        client.move(uids, folder)
        return
    client.copy(uids, folder)
    client.add_flags(uids, [DELETED], silent=True)
    if client.has_capability("UIDPLUS"):  # without it (RFC 4315), mails that others marked as deleted would go too
        client.uid_expunge(uids)


def single_header(header: Message, name: str) -> str:
    """The value of a header that is there once, else nothing: a second From would leave open which one counts."""
    values = header.get_all(name, [])
    return re.sub(r"\s+", " ", str(values[0])).strip() if len(values) == 1 else ""

"""Copies of our replies in IMAP folders: finding them by their Message-ID, and filing those in the inbox.

Servers search headers for a part of a value, in any case; so what they find is fetched and compared.
"""

from __future__ import annotations

import email
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from functools import partial
from typing import Any, Final

from imapclient import DELETED, SEEN, IMAPClient

from guarantee_email_agent.services.mail.compose import PROOF_HEADER, verify_proof
from guarantee_email_agent.services.mail.imap_session import fetch_each
from guarantee_email_agent.utils.addresses import parse_address

MAX_TEXT_BYTES: Final = 400_000  # of a copy; a reply is much shorter
_HEADERS: Final = f"BODY.PEEK[HEADER.FIELDS (FROM TO MESSAGE-ID {PROOF_HEADER.upper()})]".encode()
_TEXT: Final = f"BODY.PEEK[TEXT]<0.{MAX_TEXT_BYTES}>".encode()
_PAGE: Final = 50
_SEEN: Final = [SEEN]
_ATOMS: Final = re.compile(r"[-A-Za-z0-9!#$&'+,./:;<=>?@^_`|~]+")  # RFC 3501 §9; the library quotes no bracket or brace
_MAX_TERM_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class CopyCandidate:
    """A mail that may be a copy of a reply of ours."""

    uid: int
    sender: str | None
    recipient: str
    message_id: str
    proof: str
    text: bytes

    def is_from(self, address: str) -> bool:
        return self.sender is not None and self.sender.casefold() == address.casefold()


def has_copy(client: IMAPClient, message_id: str, sender: str | None = None, *, drafts: bool = True) -> bool:
    """Whether the selected folder has a mail with exactly this Message-ID, and from this sender if one is given."""
    return bool(find_copies(client, message_id, sender, drafts=drafts))


def find_copies(client: IMAPClient, message_id: str, sender: str | None = None, *, drafts: bool = True) -> list[int]:
    """The UIDs of such mails, in order. Those that are marked as deleted count: they can still be taken back.

    drafts: whether those count that were never sent.
    """
    term = search_term(message_id).encode()
    uids = client.search([b"HEADER", b"Message-ID", term, *(() if drafts else (b"UNDRAFT",))])
    found = (mail for mail in _fetch(client.fetch, uids, text=False) if mail.message_id == message_id)
    return sorted(mail.uid for mail in found if sender is None or mail.is_from(sender))


def search_term(message_id: str) -> str:
    """The longest part of a Message-ID that stands in a search as it is, for what may come from any sender.

    Empty, which every Message-ID matches, where there is none: servers decode an encoded word before they compare.
    """
    parts = [] if "=?" in message_id else _ATOMS.findall(message_id)
    return str(max(parts, key=len, default=""))[:_MAX_TERM_CHARS]


def _fetch(
    fetch: Callable[..., Mapping[int, Mapping[bytes, Any]]], uids: Sequence[int], *, text: bool
) -> Iterator[CopyCandidate]:
    """What decides whether these mails are copies; `text` only where asked for."""
    for start in range(0, len(uids), _PAGE):
        asked = [_HEADERS, _TEXT] if text else [_HEADERS]
        for uid, parts in fetch(uids[start : start + _PAGE], asked).items():
            # A part of a mail that another session moved meanwhile is NIL.
            raw = next((part for key, part in parts.items() if key.startswith(b"BODY[HEADER")), None)
            header = email.message_from_bytes(raw or b"")
            names = ("From", "To", "Message-ID", PROOF_HEADER)
            sender, recipient, message_id, proof = (single_header(header, name) for name in names)
            body = parts.get(b"BODY[TEXT]<0>") or b""
            yield CopyCandidate(uid, parse_address(sender), recipient, message_id, proof, body)


def find_own_copies(client: IMAPClient, uids: Sequence[int], address: str, key: bytes) -> dict[int, str]:
    """Those of these mails that we wrote, with their Message-IDs; `uids` in order.

    They are from our address, with a proof that nobody else can make. The text, which may be long, is fetched only
    where a proof is claimed.
    """
    claim = [b"UID", f"{uids[0]}:{uids[-1]}".encode(), b"UNDELETED", b"FROM", address.encode()]
    fetch = partial(fetch_each, client)
    from_us = sorted(set(client.search(claim)) & set(uids))
    claimed = [mail.uid for mail in _fetch(fetch, from_us, text=False) if mail.proof and mail.is_from(address)]
    return {
        mail.uid: mail.message_id
        for mail in _fetch(fetch, claimed, text=True)
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

"""A reply as the bytes that are sent: every header is written here, and none can be smuggled in.

Written by hand rather than with `email.parsing.email`: that one folds long Message-IDs into encoded words, which breaks
threads, and what must never happen here (a header that is not ours) is easier to see in one page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.header import Header
from email.utils import format_datetime
from typing import Final

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.ports import Reply
from guarantee_email_agent.utils.addresses import ascii_domain, parse_address

MAX_HEADERS: Final = 20
MAX_REFERENCES: Final = 50
PROOF_HEADER: Final = "X-Sent-Proof"
MESSAGE_ID: Final = re.compile(r"<[!-;=?-~]{1,900}>")  # RFC 5322 §3.6.4, and the forms that real senders use
_HEADER_NAME: Final = re.compile(r"X-[A-Za-z0-9-]{1,70}", re.IGNORECASE)
_HEADER_BREAK: Final = re.compile(r"[\r\n\0]")
_PLAIN: Final = re.compile(r"[!-~]{1,900}(?: [!-~]{1,900})*")


class MessageError(ToolError):
    """Why there can be no such reply. Names the field, and never its value."""

    def __init__(self, problem: str) -> None:
        super().__init__("mail_invalid_argument", problem)


def compose(
    reply: Reply, sender: str, date: datetime, proof_key: bytes | None = None, *, automatic: bool = True
) -> bytes:
    """The reply with CRLF line ends, in ASCII.

    A malformed Message-ID in `in_reply_to` or `references` is left out: a customer whose mail program writes bad ones
    still gets an answer. With `proof_key` the reply carries a proof that this mailbox wrote it (see `verify_proof`).
    automatic: whether no person sees the reply before it goes; a draft says nothing of the kind.

    Raises MessageError, and ToolError `mail_rejected` for an address that few servers take (RFC 6531).
    """
    for name in ("to", "subject", "message_id", "in_reply_to", "references"):
        if _HEADER_BREAK.search(getattr(reply, name)):
            raise MessageError(f"{name} holds a line break or NUL, which no header may hold")
    if "\0" in reply.body:
        raise MessageError("body holds NUL, which no mail may hold")
    recipient = envelope_address(reply.to)
    if not MESSAGE_ID.fullmatch(reply.message_id):
        raise MessageError("message_id is no Message-ID of the form <text@domain>")
    body = _encoded_body(reply.body)
    lines = [
        f"From: {sender}",
        f"To: {recipient}",
        f"Subject: {_unstructured(reply.subject, 'Subject')}",
        f"Date: {format_datetime(date)}",
        f"Message-ID: {reply.message_id}",
    ]
    if answered := MESSAGE_ID.search(reply.in_reply_to):
        lines.append(f"In-Reply-To: {answered[0]}")
    if thread := MESSAGE_ID.findall(reply.references)[-MAX_REFERENCES:]:
        lines.append("References: " + "\r\n ".join(thread))
    if automatic:
        lines.append("Auto-Submitted: auto-replied")  # RFC 3834 §5: no automatic system is to answer it
    lines += [f"{name}: {_unstructured(value, name)}" for name, value in _checked_headers(reply.headers)]
    if proof_key is not None:
        lines.append(f"{PROOF_HEADER}: {_proof(proof_key, reply.message_id, recipient, body)}")
    lines += [
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Transfer-Encoding: quoted-printable",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def envelope_address(address: str) -> str:
    """The address as SMTP takes it: its domain in ASCII (IDNA). Raises MessageError unless it is one bare address."""
    if parse_address(address) != address:
        raise MessageError("to is not one bare address like customer@example.org")
    local, _, domain = address.rpartition("@")
    if not domain.isascii():
        domain = ascii_domain(domain) or ""
        if not domain:
            raise MessageError("the domain of to is none that can exist")
    if not local.isascii():
        raise ToolError(
            "mail_rejected", "the address of the recipient has letters beyond ASCII before its @. Answer by hand"
        )
    return f"{local}@{domain}"


def verify_proof(key: bytes, message_id: str, recipient: str, body: bytes, proof: str) -> bool:
    """Whether a mail is a reply that `compose` wrote with this key, to this recipient, with this very body.

    Anybody may write our address into From, and a customer knows the Message-ID of the reply to them. Nobody without
    the key can make the proof for another recipient or text; to send our own words again is all that it is good for.
    """
    return hmac.compare_digest(_proof(key, message_id, recipient, body).encode(), proof.encode())


def _proof(key: bytes, message_id: str, recipient: str, body: bytes) -> str:
    canonical = body.replace(b"\r\n", b"\n").rstrip(b"\n")  # mailboxes differ in line ends
    text = b"\0".join([message_id.encode(), recipient.encode(), canonical])
    return base64.urlsafe_b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode().rstrip("=")


def _checked_headers(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if len(headers) > MAX_HEADERS:
        raise MessageError(f"headers holds more than {MAX_HEADERS} headers")
    seen: set[str] = set()
    for name, value in headers.items():
        lowered = name.lower()
        if lowered in seen:
            raise MessageError(f"headers holds {lowered!r} twice")
        seen.add(lowered)
        if _HEADER_BREAK.search(value):
            raise MessageError(f"the header {name[:80]!r} holds a line break or NUL, which no header may hold")
        if lowered == "auto-submitted":
            if value != "auto-replied":
                raise MessageError("the header Auto-Submitted is always auto-replied (RFC 3834 §5)")
        elif lowered == "precedence":
            if not re.fullmatch(r"[A-Za-z_-]{1,40}", value):
                raise MessageError("the header Precedence is one word")
            yield "Precedence", value
        elif not _HEADER_NAME.fullmatch(name) or lowered == PROOF_HEADER.lower():
            raise MessageError(f"headers may hold Auto-Submitted, Precedence and X-…, not {name[:80]!r}")
        else:
            yield name, value


def _unstructured(text: str, name: str) -> str:
    """A header's text, folded; in encoded words (RFC 2047) where it is not plain ASCII with single spaces."""
    text = "".join(" " if sign < " " or "\x7f" <= sign <= "\x9f" else sign for sign in text).strip()
    is_plain = "=?" not in text and _PLAIN.fullmatch(text)
    return Header(text, "us-ascii" if is_plain else "utf-8", header_name=name).encode(linesep="\r\n")


def _encoded_body(text: str) -> bytes:
    lines = re.sub(r"\r\n?", "\n", text).rstrip("\n") + "\n"
    encoded = binascii.b2a_qp(lines.encode(), istext=True)
    # Some mailbox formats would turn it into ">From " (RFC 4155, appendix A).
    encoded = re.sub(rb"^From ", b"=46rom ", encoded, flags=re.MULTILINE)
    return encoded.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")

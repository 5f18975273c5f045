"""The identity of a mail, and the ids derived from it: its reply's Message-ID and its ticket's idempotency key.

Message-IDs alone do not do: some senders leave them out, some form mailers use one for every mail, and anybody can
write somebody else's.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_date

DEFAULT_DOMAIN: Final = "guarantee-email-agent.invalid"
_MESSAGE_ID: Final = r"<[^<>\s]{1,996}>"


def mail_identity(email: Email, key: bytes = b"") -> str:
    """32 hexadecimal digits, the same for every copy of one mail, whichever way it was delivered.

    key: up to 64 bytes (BLAKE2b, RFC 7693 §2.1). Without it nobody can tell from the digits whether they stand for a
    mail that they know.
    """
    # What the sender dated it, since `received` differs with the way that a copy took.
    date = "".join(email.headers.get("date", ())) or email.received
    body = "".join(span.text for span in email.spans)  # however a later version tells new text from quoted text
    # Not the id derived for a mail without one: that follows from all of its bytes, the way that it took among them.
    parts = (email.original_message_id or "", email.sender, email.subject, date, body)
    return content_identity("\x1f".join(parts).encode("utf-8", "surrogatepass"), key)


def content_identity(content: bytes, key: bytes = b"") -> str:
    """The same for what cannot be read as a mail."""
    return hashlib.blake2b(content, digest_size=16, key=key).hexdigest()


def reply_message_id(identity: str, domain: str = DEFAULT_DOMAIN) -> str:
    """The one Message-ID that a reply to this mail can have, so that a reply sent before a crash is found again."""
    return f"<reply-{identity}@{domain}>"


def admission_key(kind: str, value: str, key: bytes) -> str:
    """What a mail is counted under: its sender, or its words. kind: keeps the two apart."""
    return content_identity(f"{kind} {value}".encode("utf-8", "surrogatepass"), key)


def copy_key(email: Email, key: bytes) -> str | None:
    """What altered copies of one mail have in common: its Message-ID, or that of the mail which Exchange redirected,
    and the moment of its Date. None without a Message-ID.
    """
    parents = email.headers.get("x-ms-exchange-parent-message-id", ())
    named = (re.search(_MESSAGE_ID, parent) for parent in parents)
    message_id = next((found[0] for found in named if found), email.original_message_id)
    if message_id is None:
        return None
    written = "".join(email.headers.get("date", ())[:1])
    return admission_key("copy", f"{message_id} {parse_date(written) or ' '.join(written.split())}", key)


def note_key(identity: str) -> str:
    """The idempotency key of the one note that a mail may add to a ticket."""
    return f"note-{identity}"


def ticket_key(identity: str) -> str:
    """The idempotency key of the one ticket that a mail may open."""
    return f"mail-{identity}"

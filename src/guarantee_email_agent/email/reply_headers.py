"""The parts of a reply that code alone decides: subject, threading and identity."""

from __future__ import annotations

import hashlib

from guarantee_email_agent.email.parse import Email

MAX_SUBJECT = 200
MAX_REFERENCES = 20
_ANSWERED = ("re:", "aw:", "odp:", "sv:", "antw:")


def reply_subject(subject: str) -> str:
    """`Re: ` and the customer's own subject, once (RFC 5322 §3.6.5)."""
    subject = subject.strip()[:MAX_SUBJECT]
    if not subject:
        return "Re: your message"
    return subject if subject.casefold().startswith(_ANSWERED) else f"Re: {subject}"


def reply_message_id(message_id: str) -> str:
    """Follows from the mail answered, so that a reply sent before a crash can be found again."""
    return f"<reply-{_digest(message_id)}@guarantee-email-agent.invalid>"


def ticket_key(message_id: str) -> str:
    """The idempotency key of the one ticket that a mail may open."""
    return f"mail-{_digest(message_id)}"


def reply_references(email: Email) -> str:
    """The thread so far and the mail answered (RFC 5322 §3.6.4); the oldest and the latest where it grows long."""
    thread = " ".join(email.headers.get("references", ())).split()
    if len(thread) > MAX_REFERENCES:
        thread = [thread[0], *thread[1 - MAX_REFERENCES :]]
    return " ".join([*thread, email.message_id])


def _digest(message_id: str) -> str:
    return hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""The parts of a reply that code alone decides: recipient, subject, threading and headers."""

from __future__ import annotations

from guarantee_email_agent.email.parsing.email import REPLY_PREFIXES, Email
from guarantee_email_agent.integrations.ports import Reply

MAX_SUBJECT = 200
MAX_REFERENCES = 20


def compose_reply(email: Email, body: str, message_id: str) -> Reply:
    """The reply to the sender alone, marked as written by a program (RFC 3834 §5)."""
    return Reply(
        to=email.sender,
        subject=reply_subject(email.subject),
        body=body,
        message_id=message_id,
        in_reply_to=email.original_message_id or "",
        references=reply_references(email),
        headers={"Auto-Submitted": "auto-replied"},
        thread_id=email.thread_id,
    )


def reply_subject(subject: str) -> str:
    """`Re: ` and the customer's own subject, once (RFC 5322 §3.6.5)."""
    subject = subject.strip()[:MAX_SUBJECT]
    if not subject:
        return "Re: your message"
    return subject if subject.casefold().startswith(REPLY_PREFIXES) else f"Re: {subject}"


def reply_references(email: Email) -> str:
    """The thread so far and the original mail (RFC 5322 §3.6.4); the oldest and the latest where it grows long.

    Empty where the original mail began the thread and has no Message-ID.
    """
    thread = " ".join(email.headers.get("references", ())).split()
    if len(thread) > MAX_REFERENCES:
        thread = [thread[0], *thread[1 - MAX_REFERENCES :]]
    return " ".join([*thread, email.original_message_id] if email.original_message_id else thread)

"""The parts of a reply that code alone decides: subject and threading."""

from __future__ import annotations

from guarantee_email_agent.email.parsing.email import REPLY_PREFIXES, Email

MAX_SUBJECT = 200
MAX_REFERENCES = 20


def reply_subject(subject: str) -> str:
    """`Re: ` and the customer's own subject, once (RFC 5322 §3.6.5)."""
    subject = subject.strip()[:MAX_SUBJECT]
    if not subject:
        return "Re: your message"
    return subject if subject.casefold().startswith(REPLY_PREFIXES) else f"Re: {subject}"


def reply_references(email: Email) -> str:
    """The thread so far and the mail answered (RFC 5322 §3.6.4); the oldest and the latest where it grows long.

    Empty where the mail answered began the thread and has no Message-ID.
    """
    thread = " ".join(email.headers.get("references", ())).split()
    if len(thread) > MAX_REFERENCES:
        thread = [thread[0], *thread[1 - MAX_REFERENCES :]]
    return " ".join([*thread, email.id_to_answer] if email.id_to_answer else thread)

"""The parts of a reply that code alone decides: subject, threading, headers and language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.phrases import phrases_of
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.reading.language import read_language
from guarantee_email_agent.services.ports import Reply

MAX_SUBJECT = 200
MAX_UNPROVED_SUBJECT = 60
MAX_REFERENCES = 20
_YOUR_MESSAGE = {
    "en": "your message",
    "de": "Ihre Nachricht",
    "es": "su mensaje",
    "fr": "votre message",
    "it": "il suo messaggio",
    "nl": "uw bericht",
    "pl": "Państwa wiadomość",
}
# A reply is ours in the eyes of who gets it: nobody who is not proved has it carry a link, an address or much text.
_LINK = r"(?i:\S*(?://|@)|www\.|(?:[\w-]+\.)+[^\W\d_]{2,}(?=/|\b(?!\.\w))|(?:\d{1,3}\.){3}\d{1,3}[/:])\S*"


def compose_reply(
    email: Email, recipient: str, body: str, message_id: str, *, subject: str | None = None, language: str = "en"
) -> Reply:
    """The reply to one address alone, marked as written by a program (RFC 3834 §5).

    subject: which the reply repeats; the mail's own where it is None.
    language: of a subject that is ours.
    """
    return Reply(
        to=recipient,
        subject=reply_subject(email.subject if subject is None else subject, language),
        body=body,
        message_id=message_id,
        in_reply_to=email.original_message_id or "",
        references=reply_references(email),
        headers={"Auto-Submitted": "auto-replied"},
        thread_id=email.thread_id,
    )


def as_draft(reply: Reply, scenario: str, ticket_fields: Mapping[str, str]) -> Reply:
    """The reply for a person to look at and send, with what that person has to know in headers of its own."""
    headers = {"X-Agent-Scenario": scenario}
    if ticket_fields:
        headers["X-Agent-Ticket"] = json.dumps(dict(ticket_fields))
    return replace(reply, headers=headers)


def reply_subject(subject: str, language: str = "en") -> str:
    """`Re: ` and the customer's own subject, once (RFC 5322 §3.6.5); in the reply's language where there is none."""
    subject = subject.strip()[:MAX_SUBJECT]
    if not subject:
        return f"Re: {_YOUR_MESSAGE.get(language, _YOUR_MESSAGE['en'])}"
    return subject if subject.casefold().startswith(phrases_of("reply prefixes")) else f"Re: {subject}"


def unproved_subject(subject: str) -> str:
    """What a reply repeats of the subject of a sender who may be anybody: its first 60 characters, without links."""
    if "." in subject or "@" in subject or "/" in subject:  # as every link has
        subject = re.sub(_LINK, " ", subject)
    return " ".join(subject.split())[:MAX_UNPROVED_SUBJECT]


def reply_references(email: Email) -> str:
    """The thread so far and the original mail (RFC 5322 §3.6.4); the oldest and the latest where it grows long.

    Empty where the original mail began the thread and has no Message-ID.
    """
    thread = " ".join(email.headers.get("references", ())).split()
    if len(thread) > MAX_REFERENCES:
        thread = [thread[0], *thread[1 - MAX_REFERENCES :]]
    return " ".join([*thread, email.original_message_id] if email.original_message_id else thread)


MIN_CERTAINTY: Final = 75
"""Percent of a text that have to be in one language; what is more mixed is in no language."""

LanguageReason = Literal["only", "read", "quoted", "unclear"]
"""What decided: there is but one; the text; where that does not tell, what it quotes of ours; nothing."""


class LanguageChoice(NamedTuple):
    """language: of the reply. found: the one that was read, in which there may be no reply; None where none was."""

    language: str
    reason: LanguageReason
    found: str | None = None


def choose_language(email: Email, instructions: Instructions, *, quotes_us: bool) -> LanguageChoice:
    """One of the languages that the instructions have: that of the new text, whatever a mail or a model asks for.

    Where it is too short to tell, or mixed, a mail that answers us gets the language of what it quotes, any other the
    default one. quotes_us: whether the mail answers a reply of ours.
    """
    default = instructions.default_language
    if len(instructions.languages) == 1:
        return LanguageChoice(default, "only")
    # What a subject says is a line of anybody's; it counts where the text does not tell.
    texts: list[tuple[LanguageReason, str]] = [
        ("read", email.new_text),
        ("read", f"{email.own_subject}\n\n{email.new_text}"),
        ("quoted", email.quoted_text if quotes_us else ""),
    ]
    for reason, text in texts:
        read, certainty = read_language(text)
        if read is not None and certainty >= MIN_CERTAINTY:
            return LanguageChoice(read if read in instructions.languages else default, reason, read)
    return LanguageChoice(default, "unclear")

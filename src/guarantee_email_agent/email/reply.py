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
from guarantee_email_agent.instructions.language import clear_language, is_too_short
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
_LINK = re.compile(r"(?:\S*(?://|@)|www\.|(?:[\w-]+\.)+[a-z]{2,}(?=/|\b(?!\.)))\S*", re.IGNORECASE)


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
    return " ".join(_LINK.sub(" ", subject).split())[:MAX_UNPROVED_SUBJECT]


def reply_references(email: Email) -> str:
    """The thread so far and the original mail (RFC 5322 §3.6.4); the oldest and the latest where it grows long.

    Empty where the original mail began the thread and has no Message-ID.
    """
    thread = " ".join(email.headers.get("references", ())).split()
    if len(thread) > MAX_REFERENCES:
        thread = [thread[0], *thread[1 - MAX_REFERENCES :]]
    return " ".join([*thread, email.original_message_id] if email.original_message_id else thread)


MIN_CERTAINTY: Final = 75
"""Percent of a text that have to be in one language; what is more mixed is judged by its words."""

LanguageReason = Literal["only", "read", "words", "quoted", "picked", "short", "mixed"]
"""What decided: there is but one; the text; where that does not tell, the small words in the new text, or in the quoted
one; the model, whom a word supports; too few words to tell; as much evidence for a second language."""


class LanguageChoice(NamedTuple):
    """language: of the reply. found: the one that was read, in which there may be no reply; None where none was."""

    language: str
    reason: LanguageReason
    found: str | None = None


def choose_language(picked: object, email: Email, instructions: Instructions, *, quotes_us: bool) -> LanguageChoice:
    """One of the languages that the instructions have.

    Where the language of the new text cannot be told, its small words decide, then in a conversation with us those that
    it quotes. What a model picked counts only where they are too few to tell and none of them speaks for another
    language; a mixed mail gets the default language. So no request in a mail can change the language that it is in.

    picked: by the model, and anything at all. quotes_us: whether the mail answers a reply of ours.
    """
    words, default = instructions.lexicon.function_words, instructions.default_language
    if len(instructions.languages) == 1:
        return LanguageChoice(default, "only")
    # What a subject says is a line of anybody's; it counts where the text does not tell.
    for text in (email.new_text, f"{email.own_subject}\n\n{email.new_text}"):
        read, certainty = read_language(text)
        if read is not None and certainty >= MIN_CERTAINTY:
            return LanguageChoice(read if read in instructions.languages else default, "read", read)
    reason: LanguageReason = "words"
    scores = words.score(email.new_text, "" if email.is_answer else email.subject)
    language = clear_language(scores)
    if language is None:
        reason = "short" if is_too_short(scores) else "mixed"
    if reason == "short":
        if quotes_us and (language := clear_language(words.score(email.quoted_text))):
            reason = "quoted"
        others = (score for language, score in scores.items() if language != picked)
        if language is None and isinstance(picked, str) and scores.get(picked, 0) > max(others, default=0):
            language, reason = picked, "picked"
    known = language is not None and language in instructions.languages
    return LanguageChoice(language if known and language else default, reason, language)

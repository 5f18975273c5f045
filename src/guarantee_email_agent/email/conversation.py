"""Mail that comes back: which of our replies it answers, whether a machine wrote it, and what its ticket says of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.text import has_letters

MAX_THREAD_IDS: Final = 100
MACHINE_DELAY_S: Final = 20.0
"""A reply to our reply that comes faster was not written by a person, who would not have read it yet."""

MIN_WORDS: Final = 4
"""From so many on, a part of one of our sentences is taken for ours; fewer are what everybody writes."""

MAX_CLOCK_SKEW_S: Final = 5.0
MIN_FINGERPRINT_LETTERS: Final = 40
"""Shorter texts ("see the photo") are what different people write, too."""

_MESSAGE_ID: Final = r"<[^<>\s]{3,900}>"
_BARE_MESSAGE_ID: Final = r'(?<![^>\s"(),;])[^<>\s"(),;@]{1,450}@[^<>\s"(),;@]{1,450}'
_PLAIN_MESSAGE_ID: Final = r"<?[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,150}(?:@[A-Za-z0-9.:\[\]-]{1,150})?>?"
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_DIGIT: Final = re.compile(r"\d")
_PART_END: Final = re.compile(r"[.!?:;\n]")


def answered_message_ids(email: Email) -> tuple[str, ...]:
    """The Message-IDs of the mails that this one answers, the nearest last (RFC 5322 §3.6.4)."""
    if not email.headers:
        return ()
    found: list[str] = []
    for name in ("references", "in-reply-to"):
        for value in email.headers.get(name, ()):
            bare = () if "<" in value else re.findall(_BARE_MESSAGE_ID, value)  # as some programs write it
            found.extend([f"<{each}>" for each in bare] or re.findall(_MESSAGE_ID, value))
    return tuple(reversed(dict.fromkeys(reversed(found))))[-MAX_THREAD_IDS:]


def machine_reply_reason(
    email: Email,
    thread: Thread,
    arrived_at: float | None,
    approved_texts: Iterable[str],
    *,
    asked: bool,
    wants_person: bool = False,
) -> str | None:
    """Why a mail that answers our reply was written by a machine, in a few words; None if a person may have.

    arrived_at: seconds since 1970, on the clock of `thread.replied_at`. approved_texts: what our replies may say.
    asked: whether our reply asked for a number, so that a number alone is an answer. wants_person: whether it says what
    a person has to read, which two mails that crossed may do however fast the second one came.
    """
    delay_s = None if arrived_at is None else arrived_at - thread.replied_at
    if delay_s is not None and -MAX_CLOCK_SKEW_S <= delay_s < MACHINE_DELAY_S and not wants_person:
        return f"answers our reply within {MACHINE_DELAY_S:.0f} seconds"
    # Some write all they have to say, such as the number, into the subject.
    text = email.new_text or email.own_subject
    if not email.attachments and not adds_words(text, approved_texts, with_numbers=asked):
        return "answers our reply with our own words"
    return None


def adds_words(text: str, known_texts: Iterable[str], *, with_numbers: bool = False) -> bool:
    """Whether any sentence of `text` holds words that stand in none of `known_texts`.

    with_numbers: whether words with a digit count; those of our texts were filled in.
    """
    if with_numbers and _DIGIT.search(text):
        return True
    if not (parts := _parts(text)):
        return False
    known_parts, known = _known_words(tuple(known_texts))
    # "Thank you" begins a sentence of ours and is a sentence of everybody's.
    return any(part not in known_parts and (part.count(" ") < MIN_WORDS - 1 or part not in known) for part in parts)


@lru_cache(maxsize=4)  # five milliseconds, and the approved texts are the same for mail after mail
def _known_words(texts: tuple[str, ...]) -> tuple[frozenset[str], str]:
    """The sentences of our texts, and all their words in one string."""
    return frozenset(part for text in texts for part in _parts(text)), "\n".join(map(_without_numbers, texts))


def text_fingerprint(email: Email) -> str | None:
    """What is the same for the same words, however they are laid out; None for a text too short to tell."""
    text = _plain(email.new_text)
    return text if has_letters(text, MIN_FINGERPRINT_LETTERS) else None


def follow_up_note(email: Email, reasons: Iterable[str]) -> str:
    """What a ticket says of a mail that goes on with its conversation: where to find it, and none of its words.

    A Message-ID counts where it has the signs of one (RFC 5322 §3.6.4); anything else may be a sentence to the reader.
    """
    found = email.original_message_id
    place = found if found and re.fullmatch(_PLAIN_MESSAGE_ID, found) else "a mail without a usable Message-ID"
    return f"The customer wrote again ({', '.join(reasons)}): {place}"


def _parts(text: str) -> list[str]:
    parts = (_without_numbers(part).strip(" ,") for part in _PART_END.split(text))
    return [part for part in parts if _WORD.search(part)]


def _without_numbers(text: str) -> str:
    return " ".join([word for word in _plain(text).lstrip("> ").split(" ") if not _DIGIT.search(word)])


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()

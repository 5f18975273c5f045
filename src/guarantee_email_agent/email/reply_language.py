"""The language of a reply: that of the customer's own words, as far as they tell."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.language import clear_language, is_too_short
from guarantee_email_agent.reading.language import read_language

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

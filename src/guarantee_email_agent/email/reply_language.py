"""The language of a reply: a model picks it, and the mail's own words confirm it."""

from __future__ import annotations

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.language import clear_language, is_too_short


def choose_language(picked: object, email: Email, instructions: Instructions, *, quotes_us: bool) -> str:
    """One of the languages that the instructions have.

    The words that the customer newly wrote decide, then in a conversation with us those they quote. What a model picked
    counts only where they are too few to tell and none of them speaks for another language; a mixed mail gets the
    default language. So no request in a mail can change the language that the mail is written in.

    picked: by the model, and anything at all. quotes_us: whether the mail answers a reply of ours.
    """
    words, default = instructions.lexicon.function_words, instructions.default_language
    if len(instructions.languages) == 1:
        return default
    scores = words.score(email.new_text, "" if email.is_answer else email.subject)
    language = clear_language(scores)
    if language is None and is_too_short(scores):
        if quotes_us:
            language = clear_language(words.score(email.quoted_text))
        others = (score for language, score in scores.items() if language != picked)
        if language is None and isinstance(picked, str) and scores.get(picked, 0) > max(others, default=0):
            language = picked
    return language if language in instructions.languages else default

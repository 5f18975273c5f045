"""Tell what a mail is about, by the weighted phrases of the main instruction file."""

from __future__ import annotations

from guarantee_email_agent.instructions.lexicon import Lexicon, Topic
from guarantee_email_agent.instructions.phrases import TokenizedText
from guarantee_email_agent.instructions.router import Intent

WEIGHT_OF_SERIAL_NUMBER = 3
MIN_TELLING_WORDS = 4


def tell_intent(written: TokenizedText, quoted: TokenizedText, has_serial_number: bool, rules: Lexicon) -> Intent:
    """`written` is what the customer newly wrote, subject included; `quoted` counts only where that says nothing.

    Each phrase counts once, so that repetition does not outweigh meaning.
    """
    scores = _scores(written, rules)
    if not any(scores.values()) and quoted.folded:
        scores = _scores(quoted, rules)
    if has_serial_number:
        scores["warranty"] += WEIGHT_OF_SERIAL_NUMBER
    if not any(scores.values()):
        telling = {word for word in written.folded if word.isalpha() and word not in rules.stop_words}
        return "other" if len(telling) >= MIN_TELLING_WORDS else "unclear"
    return "warranty" if scores["warranty"] >= scores["other"] else "other"


def _scores(words: TokenizedText, rules: Lexicon) -> dict[Topic, int]:
    found = {hit.payload.phrase: hit.payload for hit in rules.topics.find(words)}
    scores: dict[Topic, int] = {"warranty": 0, "other": 0}
    for phrase in found.values():
        scores[phrase.topic] += phrase.weight
    return scores

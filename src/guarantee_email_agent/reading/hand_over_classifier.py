"""How much a mail resembles those that a person has to read, by its words and parts of words.

What is dangerous or a matter of law cannot be listed to its end, but people's ways of telling it resemble each other. A
linear classifier over hashed n-grams, as spam filters use it (Weinberger et al., "Feature Hashing", 2009), trained by
scripts/train_hand_over on the labelled mails in evals/training. It only ever adds to what a lexicon finds. Answers to
our question have weights of their own: people tell in them of grandchildren, torches and the weather.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from guarantee_email_agent.instructions.phrases import TokenizedText

BUCKETS: Final = 1 << 16
MIN_PART: Final = 3
MAX_PART: Final = 5
MAX_WORD: Final = 40
MAX_WORDS: Final = 5_000
MIN_WORDS: Final = 8
"""Fewer prove nothing: 1 of 100 mails for a person has fewer, and 5 of 100 others."""
SHORTNESS: Final = 14.0
"""Divided by the number of words it is taken off the score: a few words say little, and say it loudly."""
WEIGHTS_FILES: Final = {False: "hand_over_weights.bin", True: "hand_over_weights_of_answers.bin"}
"""By whether a text answers our question for a number."""
HEADER: Final = struct.Struct("<fff")
"""The intercept, and what one step of a weight and of a rarity stands for; then a byte for each of both, by bucket."""


class Resemblance(NamedTuple):
    """percent: how likely a person has to read a mail, 0 to 100. sentence: the one that says so most, from 1."""

    percent: int
    sentence: int


class Weights(NamedTuple):
    """steps, rarities: a small number for each bucket. weight_step: what a step stands for. masses: by rarity."""

    intercept: float
    weight_step: float
    steps: Sequence[int]
    rarities: Sequence[int]
    masses: Sequence[float]


def is_plain(word: str) -> bool:
    """Whether a word counts."""
    return word.isalpha() and len(word) <= MAX_WORD


def features_of_word(word: str) -> Iterator[int]:
    """The buckets of a word and of its parts. word: folded."""
    yield crc32(word.encode()) % BUCKETS
    padded = f" {word} "
    for length in range(MIN_PART, MAX_PART + 1):
        for start in range(len(padded) - length + 1):
            yield crc32(b"_" + padded[start : start + length].encode()) % BUCKETS


def feature_of_pair(first: str, second: str) -> int:
    """The bucket of two words, one behind the other."""
    return crc32(f"{first} {second}".encode()) % BUCKETS


def measure_resemblance(words: TokenizedText, *, is_answer: bool = False) -> Resemblance:
    """How much a text, or one that answers our question, resembles those for a person. Time is linear in its length."""
    weight = mass = of_sentence = most = 0.0
    count, sentence, telling, before = 0, 1, 1, ""
    for index, word in enumerate(words.folded[:MAX_WORDS]):
        if index and words.starts_sentence[index]:
            sentence, of_sentence = sentence + 1, 0.0
        if is_plain(word):
            found, of_word = _evidence_of_word(word, is_answer)
            pair, of_pair = _evidence_of_pair(before, word, is_answer) if before else (0.0, 0.0)
            weight, mass, before = weight + found + pair, mass + of_word + of_pair, word
            of_sentence += found + pair
            count += 1
            if of_sentence > most:
                telling, most = sentence, of_sentence
    if count < MIN_WORDS:
        return Resemblance(0, 1)
    score = _weights(is_answer).intercept + weight / math.sqrt(mass) - SHORTNESS / count
    likelihood = 1 / (1 + math.exp(-score))
    return Resemblance(round(100 * likelihood), telling)


@lru_cache(maxsize=20_000)
def _evidence_of_word(word: str, is_answer: bool) -> tuple[float, float]:
    return _evidence(features_of_word(word), is_answer)


@lru_cache(maxsize=20_000)
def _evidence_of_pair(first: str, second: str, is_answer: bool) -> tuple[float, float]:
    return _evidence((feature_of_pair(first, second),), is_answer)


def _evidence(features: Iterable[int], is_answer: bool) -> tuple[float, float]:
    """The sum of their weights, and of their squared rarities."""
    _, weight_step, steps, rarities, masses = _weights(is_answer)
    buckets = tuple(features)
    mass = math.fsum(map(masses.__getitem__, map(rarities.__getitem__, buckets)))
    return weight_step * sum(map(steps.__getitem__, buckets)), mass


@cache
def _weights(is_answer: bool) -> Weights:
    content = Path(__file__).with_name(WEIGHTS_FILES[is_answer]).read_bytes()
    intercept, weight_step, rarity_step = HEADER.unpack_from(content)
    steps, rarities = array("b", content[HEADER.size : HEADER.size + BUCKETS]), content[HEADER.size + BUCKETS :]
    return Weights(intercept, weight_step, steps, rarities, [(step * rarity_step) ** 2 for step in range(256)])

"""How much a mail resembles those that a person has to read, by its words and parts of words.

What is dangerous or a matter of law cannot be listed to its end, but people's ways of telling it resemble each other. A
linear classifier over hashed n-grams, as spam filters use it (Weinberger et al., "Feature Hashing", 2009), trained by
scripts/train_hand_over on the labelled mails in evals/training. It only ever adds to what a lexicon finds. Answers to
our question have weights of their own: people tell in them of grandchildren, torches and the weather.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, compress, repeat
from operator import add
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
    """steps, rarities: a byte for each bucket. weights, masses: what each value of a byte stands for."""

    intercept: float
    steps: bytes
    weights: Sequence[float]
    rarities: bytes
    masses: Sequence[float]


def plain_words(words: TokenizedText) -> list[int]:
    """Those that count, of letters alone."""
    of_letters = compress(range(MAX_WORDS), map(str.isalpha, words.folded))
    return [index for index in of_letters if len(words.folded[index]) <= MAX_WORD]


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
    places = plain_words(words)
    if len(places) < MIN_WORDS:
        return Resemblance(0, 1)
    plain = [words.folded[index] for index in places]
    weights, masses = zip(*map(_evidence_of_word, plain, repeat(is_answer)), strict=True)
    of_pairs, masses_of_pairs = _evidence(list(map(feature_of_pair, plain, plain[1:])), is_answer)
    weights = tuple(map(add, weights, chain((0.0,), of_pairs)))
    mass = math.fsum(chain(masses, masses_of_pairs))
    score = _weights(is_answer).intercept + math.fsum(weights) / math.sqrt(mass) - SHORTNESS / len(plain)
    likelihood = 1 / (1 + math.exp(-score))
    return Resemblance(round(100 * likelihood), _most_telling_sentence(words, places, weights))


def _most_telling_sentence(words: TokenizedText, places: Sequence[int], weights: Sequence[float]) -> int:
    """The one in which the weights of the words at `places` reach the largest sum, from 1."""
    telling, most, first = 1, 0.0, 0
    ends = compress(range(1, MAX_WORDS), words.starts_sentence[1:MAX_WORDS])
    for sentence, end in enumerate(chain(ends, (MAX_WORDS,)), 1):
        last = bisect_left(places, end)
        largest = max(accumulate(weights[first:last]), default=0.0)
        if largest > most:
            telling, most = sentence, largest
        first = last
    return telling


@lru_cache(maxsize=20_000)
def _evidence_of_word(word: str, is_answer: bool) -> tuple[float, float]:
    weights, masses = _evidence(list(features_of_word(word)), is_answer)
    return math.fsum(weights), math.fsum(masses)


def _evidence(buckets: Sequence[int], is_answer: bool) -> tuple[list[float], list[float]]:
    """Their weights, and their squared rarities."""
    _, steps, weights, rarities, masses = _weights(is_answer)
    return [weights[steps[bucket]] for bucket in buckets], [masses[rarities[bucket]] for bucket in buckets]


@cache
def _weights(is_answer: bool) -> Weights:
    content = Path(__file__).with_name(WEIGHTS_FILES[is_answer]).read_bytes()
    intercept, weight_step, rarity_step = HEADER.unpack_from(content)
    steps, rarities = content[HEADER.size : HEADER.size + BUCKETS], content[HEADER.size + BUCKETS :]
    weights = [weight_step * step for step in (*range(128), *range(-128, 0))]  # two's complement
    return Weights(intercept, steps, weights, rarities, [(step * rarity_step) ** 2 for step in range(256)])

"""What helps to read failures: the reply, what it says in place of a missing phrase, and causes that many share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from guarantee_email_agent.email.normalize import normalize_phrase
from guarantee_email_agent.eval.checks import find_phrase
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.reporting.word_diff import diff_words

_PARAGRAPH_BREAK: Final = re.compile(r"\n\s*\n|\n(?=\s*[-*•])")
_SENTENCE_BREAK: Final = re.compile(r"(?<=[.!?])\s+")
_PUNCTUATION: Final = ".,:;!?\"'()"
_MAX_REPLY_CHARS: Final = 4_000
_MANY: Final = 3
_MAX_IDS: Final = 8
_MAX_CAUSES: Final = 1_000


@dataclass(frozen=True, slots=True)
class NearestSentence:
    """The sentence of a reply that comes nearest to a missing phrase.

    diff: the sentence with `[-words of the phrase that it lacks-]` and `{+words in their place+}`.
    """

    phrase: str
    sentence: str
    diff: str


def nearest_sentences(result: EvalResult) -> list[NearestSentence]:
    """One for each missing phrase that has most of its words in common with a sentence of the reply."""
    scenario, reply = result.test_case, result.actual_output.get("response_body")
    if not isinstance(scenario, EvalTestCase) or not isinstance(reply, str):
        return []
    missing = [
        check.phrase
        for check in result.failed_checks
        if check.phrase is not None and check.name.endswith("response_body_contains")
    ]
    paragraphs = _PARAGRAPH_BREAK.split(reply[:_MAX_REPLY_CHARS])
    sentences = [sentence for text in paragraphs for sentence in _SENTENCE_BREAK.split(" ".join(text.split()))]
    found = [_nearest(phrase, sentences) for phrase in missing]
    return [each for each in found if each is not None]


def explain(result: EvalResult) -> Iterator[str]:
    """Lines below a failed scenario's misses; none where its reply is not what failed."""
    scenario, reply = result.test_case, result.actual_output.get("response_body")
    if not isinstance(scenario, EvalTestCase) or not isinstance(reply, str):
        return
    if not any(failure.startswith("response_body_") for failure in result.failures):
        return
    for nearest in nearest_sentences(result):
        yield describe_nearest(nearest)
    yield "reply:"
    marked = _mark(reply[:_MAX_REPLY_CHARS].strip(), scenario.expected_output.response_body_excludes)
    yield from (f"  {line.rstrip()}" for line in marked.split("\n") if line.strip())
    if len(reply) > _MAX_REPLY_CHARS:
        yield f"  … and {len(reply) - _MAX_REPLY_CHARS} more characters"


def describe_nearest(nearest: NearestSentence) -> str:
    """One line for people."""
    return f"nearest to {nearest.phrase!r}: {nearest.diff}"


class SharedCauses:
    """Which scenarios fail for one and the same cause: the first line of a failure, check and reason."""

    def __init__(self, *, summary: bool = False) -> None:
        """summary: keep no more than `lines` shows, so that memory does not grow with the run."""
        self._summary = summary
        self._scenarios: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, result: EvalResult) -> bool:
        """Whether each of the result's causes was seen twice before, so that its details would say nothing new."""
        causes = dict.fromkeys(failure.partition("\n")[0] for failure in result.failures)
        is_new = False
        for cause in causes:
            count = self._counts.get(cause, 0)
            is_new = is_new or count < _MANY - 1
            if not count and self._summary and len(self._counts) >= _MAX_CAUSES:
                continue
            self._counts[cause] = count + 1
            if not self._summary or count < _MAX_IDS:
                self._scenarios.setdefault(cause, []).append(result.test_case.scenario_id)
        return bool(causes) and not is_new

    def counts(self) -> list[tuple[str, Sequence[str]]]:
        """Causes with the ids of their scenarios, the most frequent first."""
        return sorted(self._scenarios.items(), key=lambda item: -self._counts[item[0]])

    def lines(self) -> Iterator[str]:
        """For people: every cause that many scenarios share, with their ids."""
        for cause, ids in self.counts():
            if (count := self._counts[cause]) >= _MANY:
                yield f"Same cause in {count} scenarios: {cause}"
                more = f" and {count - _MAX_IDS} more" if count > _MAX_IDS else ""
                yield f"    {', '.join(ids[:_MAX_IDS])}{more}"


def _nearest(phrase: str, sentences: Sequence[str]) -> NearestSentence | None:
    from difflib import SequenceMatcher  # start-up: only for a failure

    wanted = phrase.split()
    folded = [_fold(word) for word in wanted]
    best: tuple[int, str, str] | None = None
    for sentence in sentences:
        words = sentence.split()
        matcher = SequenceMatcher(None, folded, [_fold(word) for word in words], autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        common = sum(block.size for block in blocks)
        if 2 * common <= len(folded) or (best is not None and common <= best[0]):
            continue
        first, last = blocks[0], blocks[-1]
        start = max(0, first.b - first.a)
        end = min(len(words), last.b + last.size + len(folded) - last.a - last.size)
        best = (common, sentence, _diff(wanted, words, start, end))
    return None if best is None else NearestSentence(phrase, best[1], best[2])


def _diff(wanted: Sequence[str], words: Sequence[str], start: int, end: int) -> str:
    """`words` with the part from `start` to `end` compared with `wanted`, word by word."""
    return " ".join([*words[:start], *diff_words(wanted, words[start:end], _fold), *words[end:]])


def _fold(word: str) -> str:
    return normalize_phrase(word).strip(_PUNCTUATION)


def _mark(reply: str, phrases: Sequence[str]) -> str:
    """The reply with every phrase that must not be there between `>>` and `<<`."""
    spans = sorted(span for phrase in phrases if (span := find_phrase(phrase, reply)) is not None)
    marked, end = "", 0
    for first, last in spans:
        if first >= end:
            marked += f"{reply[end:first]}>>{reply[first:last]}<<"
            end = last
    return marked + reply[end:]

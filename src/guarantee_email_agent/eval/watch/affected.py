"""Which scenarios a changed file affects, and which of them most likely differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import PurePath
from typing import Final

from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.watch.watched_files import WatchedFile
from guarantee_email_agent.runlog.records import Input

_BETWEEN_PHRASES: Final = re.compile(r"[,;:\n]")
_WORDS: Final = re.compile(r"[^\W_]+")
_MAX_PHRASES: Final = 100


def affected_files(
    changed: Mapping[str, WatchedFile],
    inputs: Iterable[tuple[str, str, str]],
    files: Sequence[str],
    results: Mapping[str, EvalResult],
) -> set[str]:
    """The scenario files whose verdicts may not hold any more.

    changed: by their paths. inputs: as `changed_inputs` has them. files: of the suite now. results: by their files.
    An instruction or lexicon file, a setting and the agent count for every scenario: a trigger in any file can route
    any mail. A judge counts for all that have one, since judges import each other.
    """
    kinds = {kind for _, kind, _ in inputs}
    if kinds - {"judge"}:
        return set(files)
    beside = {file.name for file in changed.values()}
    folders = {file.name for file in changed.values() if file.kind == "recording"}
    return {
        file
        for file in files
        if file in changed
        or file not in results
        or PurePath(file).stem in folders
        or _depends(results[file], beside, judges="judge" in kinds)
    }


def _depends(result: EvalResult, beside: Collection[str], *, judges: bool) -> bool:
    """beside: names of changed files in the suite's folder."""
    case = result.test_case
    if isinstance(case, EvalTestCase):
        return case.input.email.raw_file in beside or (judges and case.test is not None)
    return any(name in case.problem for name in beside)  # it is missing, unreadable, or bears the id of this one


def changed_phrases(before: Iterable[Input], after: Iterable[Input]) -> set[str]:
    """The words of the lexicon files that came or went, without the signs for any beginning and ending.

    Empty where there are too many for a hint, as of a new file.
    """
    old, new = (_phrases(inputs) for inputs in (before, after))
    nothing: Counter[str] = Counter()
    changed = [
        phrase
        for name in old.keys() | new.keys()
        for one, other in permutations((old.get(name, nothing), new.get(name, nothing)))
        for phrase in one - other
    ]
    words = {" ".join(_WORDS.findall(phrase)).casefold() for phrase in changed}
    return words - {""} if len(words) <= _MAX_PHRASES else set()


def _phrases(inputs: Iterable[Input]) -> dict[str, Counter[str]]:
    """By file, how often each stands in it: an entry of several lists may leave one of them."""
    return {
        each.name: Counter(map(str.strip, _BETWEEN_PHRASES.split((each.content or b"").decode(errors="replace"))))
        for each in inputs
        if each.kind == "lexicon"
    }


def likely_first(
    waiting: Collection[str],
    files: Iterable[str],
    changed: Collection[str],
    inputs: Iterable[tuple[str, str, str]],
    results: Mapping[str, EvalResult],
    phrases: Collection[str] = (),
) -> list[str]:
    """The files that wait, as they are to run: what was saved itself, what failed, what holds one of the lexicon's
    changed `phrases`, what used the instruction or language that changed, and then the rest; in each part one of every
    instruction in turn, since what one save breaks mostly has one in common.
    """
    names = {PurePath(name).name.partition(".")[0] for _, kind, name in inputs if kind in ("instruction", "lexicon")}

    def rank(file: str) -> int:
        result = results.get(file)
        if file in changed or result is None:
            return 0
        if not result.passed:
            return 1
        if phrases and _holds_any(result, phrases):
            return 2
        return 3 if result.actual_output.get("scenario_used") in names or result.language in names else 4

    seen: Counter[tuple[int, str]] = Counter()
    places: dict[str, tuple[int, int]] = {}
    for file in files:
        if file in waiting:
            result = results.get(file)
            part = rank(file), str(result and result.actual_output.get("scenario_used"))
            places[file] = part[0], seen[part]
            seen[part] += 1
    return sorted(places, key=places.__getitem__)


def _holds_any(result: EvalResult, phrases: Collection[str]) -> bool:
    """Whether the mail has one of the phrases, as far as its letters show: what is read of it takes longer to find."""
    if not isinstance(case := result.test_case, EvalTestCase):
        return False
    email = case.input.email
    text = " ".join(_WORDS.findall(f"{email.subject} {email.body}")).casefold()
    return any(phrase in text for phrase in phrases)

"""Compile regular expressions that a person edits, unless they could backtrack for ever on hostile text (ReDoS)."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from math import log
from typing import Any

MAX_PATHS = 20_000
MAX_WIDTH = 100
MAX_STEPS = 1_000_000_000
"""Of one search, at the worst: some ten seconds."""


class UnsafeRegexError(ValueError):
    """A pattern that does not compile, or whose matching could take unbounded time. The message says which and why."""


def compile_safe_regex(source: str) -> re.Pattern[str]:
    """Compile `source` for full matches, ignoring case. Raises UnsafeRegexError."""
    check_safe_regex(source)
    try:
        # In a group of its own, as it will be used: flags for the whole pattern are refused there.
        return re.compile(f"(?:{source})", re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnsafeRegexError(f"does not compile ({error})") from None


def check_safe_regex(source: str) -> None:
    """Refuse a `source` that could hang; that it compiles, which takes as long again, is not proved by this.

    A backtracking engine tries, from one starting point, at most as many paths as there are ways to choose every
    repeat count and every branch. That number is an upper bound on the work for one token, so a pattern is accepted
    only while the bound stays below MAX_PATHS and the pattern matches at most MAX_WIDTH characters.

    Raises UnsafeRegexError.
    """
    # The parser module behind `re` is the only place that knows the structure of a pattern.
    from re import _parser  # type: ignore[attr-defined]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # `[[A]`: will mean something else in a later Python
            tree = _parser.parse(source, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:
        raise UnsafeRegexError(f"does not compile ({error})") from None
    if tree.state.groupdict:
        raise UnsafeRegexError("names a group. Write (?:…) instead of (?P<name>…)")
    if tree.getwidth()[1] > MAX_WIDTH:
        raise UnsafeRegexError(
            f"can match more than {MAX_WIDTH} characters. Use {{m,n}} with small numbers instead of * and +"
        )
    if _ways(tree, MAX_PATHS) > MAX_PATHS:
        raise UnsafeRegexError("can be matched in too many ways and may hang. Repeat fewer parts, or shorter ones")
    if tree.getwidth()[0] == 0:
        raise UnsafeRegexError("matches nothing at all. Make at least one character mandatory")


def may_search(source: str, length: int) -> bool:
    """Whether looking for a pattern that compiles in a text of so many characters takes MAX_STEPS at most."""
    tree, length = _parsed(source), max(length, 1)
    is_anchored = len(tree) and str(tree[0][1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING")
    return (1 if is_anchored else length) * _ways(tree, length, is_last=True) <= MAX_STEPS


@lru_cache(maxsize=256)
def _parsed(source: str) -> Any:
    from re import _parser  # type: ignore[attr-defined]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parser.parse(source)


def _ways(tree: Any, length: int, *, is_last: bool = False) -> int:
    """Upper bound on the ways to match `tree` in a text. is_last: nothing comes after it that could fail."""
    total = 1
    for index, (operation, argument) in enumerate(tree):
        total *= _ways_of(str(operation), argument, length, is_last=is_last and index == len(tree) - 1)
        if total > MAX_STEPS:
            break
    return total


def _ways_of(operation: str, argument: Any, length: int, *, is_last: bool) -> int:
    match operation:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = int(argument[0]), min(int(argument[1]), length), argument[2]
            each = _ways(inner, length)
            if each == 1:
                return 1 if is_last or operation == "POSSESSIVE_REPEAT" else max(high - low, 0) + 1
            return MAX_STEPS + 1 if high * log(each) > log(MAX_STEPS) else each ** max(high, low) * 2
        case "BRANCH":
            return sum(_ways(branch, length, is_last=is_last) for branch in argument[1])
        case "SUBPATTERN":
            return _ways(argument[-1], length, is_last=is_last)
        case "ASSERT" | "ASSERT_NOT":
            return _ways(argument[1], length)
        case "ATOMIC_GROUP":
            return _ways(argument, length)
        case "GROUPREF" | "GROUPREF_EXISTS":  # where exponential time lives
            return length + 1
    return 1

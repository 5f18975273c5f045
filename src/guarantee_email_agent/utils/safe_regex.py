"""Compile regular expressions that a person edits, unless they could backtrack for ever on hostile text (ReDoS)."""

from __future__ import annotations

import re
import warnings
from typing import Any

MAX_PATHS = 20_000
MAX_WIDTH = 100


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
    if _paths(tree) > MAX_PATHS:
        raise UnsafeRegexError("can be matched in too many ways and may hang. Repeat fewer parts, or shorter ones")
    if tree.getwidth()[0] == 0:
        raise UnsafeRegexError("matches nothing at all. Make at least one character mandatory")


def _paths(tree: Any) -> int:
    """Upper bound on the ways to match `tree`, a list of (operation, argument) of the standard library's parser."""
    total = 1
    for operation, argument in tree:
        total *= _paths_of(str(operation), argument)
        if total > MAX_PATHS:
            return total
    return total


def _paths_of(operation: str, argument: Any) -> int:
    if operation in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        low, high, inner = argument
        each = _paths(inner)
        # Every repetition may take any of the inner ways. What takes no character may be repeated for ever: (?=A|BC)*.
        counts = range(int(low), min(int(high), int(low) + MAX_PATHS) + 1)
        return int(min(sum(each ** min(count, 20) for count in counts), MAX_PATHS + 1))
    if operation == "BRANCH":
        return sum(_paths(branch) for branch in argument[1])
    if operation == "SUBPATTERN":
        return _paths(argument[-1])
    if operation in {"ASSERT", "ASSERT_NOT"}:
        return _paths(argument[1])
    if operation == "ATOMIC_GROUP":
        return _paths(argument)
    if operation in {"GROUPREF", "GROUPREF_EXISTS"}:
        return MAX_PATHS + 1  # back-references are where exponential time lives
    return 1

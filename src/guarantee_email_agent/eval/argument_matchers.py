"""How a scenario names an argument of a call: its value, or a mapping with one of the words below.

`{contains: text}`, `{matches: regular expression}`, `{any: true}` for whatever was given, `{number: 10, within: 0.5}`,
`{sql: text}` without regard to letter case and blanks outside of quotes, and `{equals: value}` for a value that would
read as one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from guarantee_email_agent.files.problems import KeyPath, Problem

_KEYS: Final = {
    "contains": {"contains"},
    "matches": {"matches"},
    "any": {"any"},
    "number": {"number", "within"},
    "sql": {"sql"},
    "equals": {"equals"},
}
_SQL_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|[^\w\s]")

Read = Callable[[object], object]


def has_arguments(actual: Mapping[str, Any], wanted: Mapping[str, object], read: Read = lambda value: value) -> bool:
    """Whether a call's arguments are as wanted; others are free. `true` is not 1. read: what of both to compare."""
    return all(name in actual and _fits(actual[name], value, read) for name, value in wanted.items())


def find_matcher_problems(arguments: Mapping[str, object] | None, path: KeyPath) -> Iterator[Problem]:
    """What is wrong with the matchers among a scenario's arguments."""
    for name, value in (arguments or {}).items():
        if (kind := _kind(value)) is None or not isinstance(value, dict):
            continue
        given, within = value[kind], value.get("within", 0)
        problem = None
        if kind in ("contains", "matches", "sql") and not (isinstance(given, str) and given):
            problem = "must be text"
        elif kind == "any" and given is not True:
            problem = "must be true"
        elif kind == "number" and not (_is_number(given) and _is_number(within) and within >= 0):
            problem = "must be a number, and within one that is not negative"
        elif kind == "matches":
            try:
                re.compile(str(given))
            except (re.error, OverflowError, RecursionError) as error:
                problem = f"is no regular expression ({error})"
        if problem is not None:
            wrong = f"{problem}; an argument that is such a mapping is written {{equals: {{{kind}: …}}}}"
            yield Problem((*path, name, kind), "value", wrong)


def _kind(value: object) -> str | None:
    """Which matcher a value is; None for one that is compared as it stands."""
    if not isinstance(value, Mapping):
        return None
    return next((kind for kind, keys in _KEYS.items() if kind in value and keys.issuperset(value)), None)


def _fits(actual: object, wanted: object, read: Read) -> bool:
    if (kind := _kind(wanted)) is None or not isinstance(wanted, Mapping):
        return _is_same(read(actual), read(wanted))
    value = wanted[kind]
    if kind == "any":
        return True
    if kind == "equals":
        return _is_same(read(actual), read(value))
    if kind == "number":
        return _is_number(actual) and abs(actual - value) <= wanted.get("within", 0)
    if not isinstance(actual, str):
        return False
    if kind == "contains":
        return str(read(value)) in str(read(actual))
    return re.search(value, actual) is not None if kind == "matches" else _sql(value) == _sql(actual)


def _is_same(actual: object, wanted: object) -> bool:
    if isinstance(actual, bool) or isinstance(wanted, bool):
        return actual is wanted
    return actual == wanted


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sql(text: str) -> list[str]:
    """Its tokens; a `;` at the end says nothing."""
    tokens = [token if token[0] in "'\"" else token.casefold() for token in _SQL_TOKEN.findall(text)]
    return tokens[:-1] if tokens[-1:] == [";"] else tokens

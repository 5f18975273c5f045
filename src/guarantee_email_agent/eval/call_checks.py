"""Which tools an agent must call and must not: what a scenario expects against the calls that the mocks captured.

Arguments are equal to a value, or as a matcher in its place says: a mapping with one of the keys `MATCHERS`, at any
depth, such as `{id: {matches: "A-[0-9]+"}}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import takewhile
from math import isfinite
from typing import Any, Final, TypeVar, cast

from guarantee_email_agent.files.problems import KeyPath, Problem, mismatch, non_text_key
from guarantee_email_agent.files.validation import not_blank, number, setting
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.safe_regex import may_search
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import and_more, normalize_phrase, printable, truncate

_A = TypeVar("_A")
_B = TypeVar("_B")
_SHORT_TEXT: Final = 200  # characters in which any pattern must be found in bounded time
_SQL_TOKEN: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\w\s]""")


def has_arguments(actual: Mapping[str, Any], wanted: Mapping[str, object], *, loosely: bool = False) -> bool:
    """Whether a call's arguments are as wanted; others are free.

    `true` is not 1 and `"1"` is not 1, unless `loosely`: on the safe side, for what must not be. Then texts are
    compared as phrases are, and a value and the text of it are the same.
    """
    return all(name in actual and _fits(actual[name], value, loosely) for name, value in wanted.items())


def pair_up(wanted: Sequence[_A], found: Sequence[_B], fits: Callable[[_A, _B], bool]) -> set[int]:
    """Which of `wanted` get one of `found` for their own, where as many as can do (Kuhn's algorithm)."""
    owners: dict[int, int] = {}

    def find(index: int, tried: set[int]) -> bool:
        for place, each in enumerate(found):
            if place not in tried and fits(wanted[index], each):
                tried.add(place)
                if place not in owners or find(owners[place], tried):
                    owners[place] = index
                    return True
        return False

    return {index for index in range(len(wanted)) if find(index, set())}


def is_matcher(value: object) -> bool:
    return isinstance(value, Mapping) and not MATCHERS.keys().isdisjoint(value)


def has_matcher(value: object) -> bool:
    """Whether it is one, or holds one."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return is_matcher(value) or any(map(has_matcher, items))


def _fits(actual: object, wanted: object, loosely: bool) -> bool:
    if is_matcher(wanted):
        matcher = cast("Mapping[str, object]", wanted)
        if "approx" in matcher:
            return _is_near(actual, matcher["approx"], matcher["tolerance"], loosely)
        return all(MATCHERS[name](actual, value, loosely) for name, value in matcher.items())
    return _equals(actual, wanted, loosely, _fits)


def _equals(
    actual: object, wanted: object, loosely: bool, fits: Callable[[object, object, bool], bool] | None = None
) -> bool:
    """fits: compares what is inside; _equals itself where no matcher counts."""
    fits = fits or _equals
    if loosely:
        actual, wanted = _unspelled(actual), _unspelled(wanted)
    if isinstance(actual, Mapping) and isinstance(wanted, Mapping):
        return actual.keys() == wanted.keys() and all(fits(actual[name], wanted[name], loosely) for name in wanted)
    if isinstance(actual, list | tuple) and isinstance(wanted, list | tuple):
        return len(actual) == len(wanted) and all(map(fits, actual, wanted, [loosely] * len(wanted)))
    if isinstance(actual, bool) or isinstance(wanted, bool):
        return actual is wanted
    return actual == wanted


def _unspelled(value: object) -> object:
    """What a text spells, such as the number of "12345"; of any other the text as phrases are compared."""
    if not isinstance(value, str):
        return value
    folded = normalize_phrase(value).strip()
    for text in (value, folded):
        with suppress(ValueError, RecursionError):
            return _unspelled(json.loads(text, parse_constant=int))  # which raises ValueError for NaN
    return folded


def _contains(actual: object, wanted: object, loosely: bool) -> bool:
    if isinstance(actual, Mapping) and isinstance(wanted, Mapping):
        return has_arguments(actual, wanted, loosely=loosely)
    if isinstance(actual, list | tuple):
        return any(_fits(item, wanted, loosely) for item in actual)
    if loosely and isinstance(wanted, str):
        return normalize_phrase(wanted).strip() in normalize_phrase(_as_text(actual))
    return isinstance(actual, str) and isinstance(wanted, str) and wanted in actual


def _matches(actual: object, pattern: object, loosely: bool) -> bool:
    text = _as_text(actual) if loosely else actual
    if not isinstance(text, str):
        return False
    if not may_search(str(pattern), len(text)):
        return loosely  # nobody knows
    return re.search(str(pattern), text, re.IGNORECASE if loosely else 0) is not None


def _is_near(actual: object, wanted: Any, tolerance: Any, loosely: bool) -> bool:
    number = _unspelled(actual) if loosely else actual
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    # As written: 0.4 is within 0.1 of 0.3, and no whole number is too large.
    exact, middle, most = (
        Decimal(each if isinstance(each, int) else repr(each)) for each in (number, wanted, tolerance)
    )
    return abs(exact - middle) <= most


def _is_same_sql(actual: object, wanted: object, loosely: bool) -> bool:
    return isinstance(actual, str) and _sql_tokens(actual, loosely) == _sql_tokens(str(wanted), loosely)


def _sql_tokens(text: str, loosely: bool) -> list[str]:
    """What is in quotes keeps its case, unless `loosely`; a semicolon at the end is none."""
    tokens = _SQL_TOKEN.findall(text)
    while tokens and tokens[-1] == ";":
        tokens.pop()
    return [token if token[0] in "'\"" and not loosely else token.casefold() for token in tokens]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


MATCHERS: Final[Mapping[str, Callable[[object, object, bool], bool]]] = {
    "equals": _equals,
    "contains": _contains,
    "matches": _matches,
    "any": lambda _actual, _wanted, _loosely: True,
    "sql": _is_same_sql,
    "approx": _equals,  # with `tolerance`, which no other takes
    "tolerance": _equals,
}


def find_argument_problems(arguments: Mapping[str, object], path: KeyPath) -> Iterator[Problem]:
    """What arguments in a file say wrongly: what JSON cannot hold, and matchers that would fit nothing or all."""
    for name, value in arguments.items():  # which may themselves be called as matchers are, such as sql
        yield from find_json_problems(value, (*path, name), matchers=True)


def _matcher_problems(matcher: Mapping[str, object], path: KeyPath) -> Iterator[Problem]:
    if others := [name for name in matcher if name not in MATCHERS]:
        wrong = f"has {others[0]!r} beside a matcher ({', '.join(MATCHERS)}); a value itself stands under equals"
        yield Problem(path, "value", wrong)
        return
    if ("approx" in matcher or "tolerance" in matcher) and matcher.keys() != {"approx", "tolerance"}:
        yield Problem(
            path, "value", "must be approx and tolerance together, and no more: {approx: 9.99, tolerance: 0.01}"
        )
        return
    for name, value in matcher.items():
        place = (*path, name)
        if name in ("approx", "tolerance"):
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield mismatch(place, "a number", value)
            elif name == "tolerance" and value < 0:
                yield Problem(place, "value", "must not be below 0")
        elif name == "any" and value is not True:
            yield mismatch(place, "true, which fits any value", value)
        elif name in ("matches", "sql") and (not isinstance(value, str) or not value.strip()):
            yield mismatch(place, "text that is not blank", value)
        elif name == "matches" and (problem := check_pattern(str(value))):
            yield Problem(place, "value", problem)
        elif name == "contains" and value in ("", {}):
            yield Problem(place, "value", "is empty, which anything contains; write any: true")
        yield from find_json_problems(value, place, matchers=name == "contains")


def check_pattern(value: str) -> str | None:
    """What is wrong with a regular expression of a file, by which an agent's text could keep a run for ever."""
    try:
        re.compile(value)
        if not may_search(value, _SHORT_TEXT):
            return "can be matched in too many ways and may hang. Repeat fewer parts, or bound them with {m,n}"
    except (re.error, RecursionError, OverflowError) as error:
        return f"is no regular expression ({error})"
    return not_blank(value)


def find_json_problems(value: object, path: KeyPath, *, matchers: bool = False) -> Iterator[Problem]:
    """What YAML can hold and JSON, in which calls and answers travel, cannot. matchers: may stand in it, too."""
    if matchers and is_matcher(value):
        yield from _matcher_problems(cast("Mapping[str, object]", value), path)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                yield from find_json_problems(item, (*path, key), matchers=matchers)
            else:
                yield non_text_key(key, path)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from find_json_problems(item, (*path, index), matchers=matchers)
    elif isinstance(value, float) and not isfinite(value):
        yield Problem(path, "value", "is a number that JSON does not have; write a finite one, or text")


_MAX_CHARACTERS: Final = 200
_MAX_CALLS: Final = 10
_MAX_VALUE: Final = 60
_CHARACTERS_BEFORE: Final = 30
"""How much of a long text is shown before the place where it differs from what was wanted."""

_NOTHING: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call of a tool that must be among those that the mocks captured."""

    server: str = field(metadata={"doc": "mail, warranty, ticketing, or a name under mock_responses."})
    tool: str = field(metadata={"doc": "The tool's name, such as send_reply."})
    arguments: Mapping[str, object] = setting(
        {}, "Arguments with exactly these values, or as matchers say; others are free."
    )
    times: int | None = number(None, "How often exactly; at least once if left out.", minimum=0)


@dataclass(frozen=True, slots=True)
class ForbiddenCall:
    """A call of a tool that must not be among them."""

    server: str = field(metadata={"doc": "mail, warranty, ticketing, or a name under mock_responses."})
    tool: str | None = setting(None, "The tool's name; any of the server's if left out.")
    arguments: Mapping[str, object] = setting(
        {}, "Only calls with these values, however spelled, or as matchers say; others are free."
    )


def check_calls(expected: Sequence[ExpectedCall], actual: Mapping[str, Any], *, ordered: bool) -> Iterator[Check]:
    """Each call that is expected is among those that were made, as often as the scenario says and in its order.

    Each entry wants a call of its own. One that was refused fulfils nothing, and is none of no calls.
    """
    if not expected:
        return
    made = actual.get("calls", ())
    answered = [call for call in made if "refused" not in call]
    fulfilled = _fulfilled(expected, answered)
    complete = True
    for index, call in enumerate(expected):
        times = sum(_is_call_of(call, other) for other in (made if call.times == 0 else answered))
        if index in fulfilled if call.times is None else times == _times(call, expected):
            yield Check("calls", "", _format_expected(call), "it was called", passed=True)
            continue
        complete = False
        name = f"{call.server}.{call.tool}"
        reason = f"{name} was called {pluralize(times, 'time')}" if times else f"{name} was not called"
        if times == 0 and any(_is_call_of(call, other) for other in made):
            reason = f"{name} was refused"
        elif times == 0 and any((other["server"], other["tool"]) == (call.server, call.tool) for other in made):
            reason += " with these arguments"
        elif call.times is None and times:
            reason += ", too few for all entries that it fits"
        same = [other for other in made if (other["server"], other["tool"]) == (call.server, call.tool)]
        differs_from = max(same, key=lambda other: _similarity(call, other))["arguments"] if same else {}
        found = _format_calls(same, call.arguments) if same else _format_calls(made, None)
        yield Check("calls", reason, _format_expected(call, differs_from), found)
    if ordered and complete and len(expected) > 1:
        if _in_order(expected, answered):
            yield Check("calls", "", "in this order", "in this order", passed=True)
        else:
            wanted = ", ".join(map(_format_expected, expected))
            yield Check("calls", "made in another order", wanted, _format_calls(made))


def _times(call: ExpectedCall, expected: Sequence[ExpectedCall]) -> int:
    """How often it is wanted by all entries that are the same but for `times`."""
    same = [each for each in expected if replace(each, times=None) == replace(call, times=None)]
    return sum(1 if each.times is None else each.times for each in same)


def _fulfilled(expected: Sequence[ExpectedCall], made: Sequence[Mapping[str, Any]]) -> set[int]:
    """Which entries without `times` get a call of their own."""
    single = [index for index, call in enumerate(expected) if call.times is None]
    return {single[each] for each in pair_up(single, made, lambda index, call: _is_call_of(expected[index], call))}


def check_never_called(forbidden: Sequence[ForbiddenCall], actual: Mapping[str, Any]) -> Iterator[Check]:
    """On the safe side: another spelling of a value, such as other capitals or a number as text, is the same call."""
    for call in forbidden:
        made = [other for other in actual.get("calls", ()) if _is_call_of(call, other, loosely=True)]
        made += [
            {"server": call.server, "tool": f"{other['tool']} (in its spans)", "arguments": other["arguments"] or {}}
            for other in actual.get("other_calls", ())
            if may_be_call_of(other["tool"], call.server, call.tool)
            and (other["arguments"] is None or has_arguments(other["arguments"], call.arguments, loosely=True))
        ]
        reason = f"{made[0]['server']}.{made[0]['tool']} was called" if made else ""
        found = _format_calls(made) if made else "it was not called"
        yield Check("never_called", reason, f"never {_format_expected(call)}", found, passed=not made)


def may_be_call_of(name: str, server: str, tool: str | None) -> bool:
    """Whether a tool's name in the spans of an agent may stand for this one: frameworks put the server's before it."""
    rest = ".*" if tool is None else re.escape(tool)
    return name == tool or re.fullmatch(rf"(mcp[\W_]+)?{re.escape(server)}[\W_]+{rest}", name, re.DOTALL) is not None


def _is_call_of(wanted: ExpectedCall | ForbiddenCall, call: Mapping[str, Any], *, loosely: bool = False) -> bool:
    return (
        call["server"] == wanted.server
        and wanted.tool in (None, call["tool"])
        and has_arguments(call["arguments"], wanted.arguments, loosely=loosely)
    )


def _in_order(expected: Sequence[ExpectedCall], made: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the calls stand among those that were made, one after the other; what stands between them is free."""
    rest = iter(made)
    wanted = (call for call in expected for _ in range(1 if call.times is None else call.times))
    return all(any(_is_call_of(call, other) for other in rest) for call in wanted)


def _similarity(wanted: ExpectedCall, call: Mapping[str, Any]) -> int:
    return sum(has_arguments(call["arguments"], {name: value}) for name, value in wanted.arguments.items())


def _format_expected(call: ExpectedCall | ForbiddenCall, differs_from: Mapping[str, object] = _NOTHING) -> str:
    times = getattr(call, "times", None)
    often = "" if times is None else f", {pluralize(times, 'time')}"
    return f"{call.server}.{call.tool or '*'}{_format_arguments(call.arguments, differs_from)}{often}"


def _format_calls(made: Sequence[Mapping[str, Any]], differs_from: Mapping[str, object] | None = _NOTHING) -> str:
    """The calls with their arguments; differs_from: with what was wanted of them, or by their names if None."""
    texts = [
        f"{call['server']}.{call['tool']}"
        f"{'' if differs_from is None else _format_arguments(call['arguments'], differs_from)}{_format_refusal(call)}"
        for call in made
    ]
    return and_more(texts, _MAX_CALLS) or "(no call)"


def _format_refusal(call: Mapping[str, Any]) -> str:
    return f" (refused: {truncate(printable(str(call['refused'])), _MAX_CHARACTERS)})" if "refused" in call else ""


def _format_arguments(arguments: Mapping[str, object], differs_from: Mapping[str, object]) -> str:
    return f"({', '.join(f'{name}={_excerpt(value, differs_from.get(name))}' for name, value in arguments.items())})"


def _excerpt(value: object, other: object) -> str:
    """The beginning of a long value, or the place where two long texts part."""
    text = repr(value)
    same = (
        0
        if value == other
        else sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, repr(other), strict=False)))
    )
    start = same - _CHARACTERS_BEFORE if same > _CHARACTERS_BEFORE and len(text) > _MAX_VALUE else 0
    return f"{'…' if start else ''}{truncate(text[start:], _MAX_VALUE)}"

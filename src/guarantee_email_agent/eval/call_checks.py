"""Which tools an agent must call and must not: what a scenario expects against the calls that the mocks captured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

from guarantee_email_agent.eval.argument_matching import has_arguments, pair_up
from guarantee_email_agent.files.validation import number, setting
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import and_more, printable, truncate

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
        times = sum(_fits(call, other) for other in (made if call.times == 0 else answered))
        if index in fulfilled if call.times is None else times == _times(call, expected):
            yield Check("calls", "", _format_expected(call), "it was called", passed=True)
            continue
        complete = False
        name = f"{call.server}.{call.tool}"
        reason = f"{name} was called {pluralize(times, 'time')}" if times else f"{name} was not called"
        if times == 0 and any(_fits(call, other) for other in made):
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
    return {single[each] for each in pair_up(single, made, lambda index, call: _fits(expected[index], call))}


def check_never_called(forbidden: Sequence[ForbiddenCall], actual: Mapping[str, Any]) -> Iterator[Check]:
    """On the safe side: another spelling of a value, such as other capitals or a number as text, is the same call."""
    for call in forbidden:
        made = [other for other in actual.get("calls", ()) if _fits(call, other, loosely=True)]
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


def _fits(wanted: ExpectedCall | ForbiddenCall, call: Mapping[str, Any], *, loosely: bool = False) -> bool:
    return (
        call["server"] == wanted.server
        and wanted.tool in (None, call["tool"])
        and has_arguments(call["arguments"], wanted.arguments, loosely=loosely)
    )


def _in_order(expected: Sequence[ExpectedCall], made: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the calls stand among those that were made, one after the other; what stands between them is free."""
    rest = iter(made)
    wanted = (call for call in expected for _ in range(1 if call.times is None else call.times))
    return all(any(_fits(call, other) for other in rest) for call in wanted)


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

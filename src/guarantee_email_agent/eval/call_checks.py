"""Which tools an agent must call and must not: what a scenario expects against the calls that the mocks captured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guarantee_email_agent.eval.argument_matching import has_arguments, pair_up
from guarantee_email_agent.files.fields import number, setting
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import and_more, printable, truncate

_MAX_CHARACTERS: Final = 200
_MAX_CALLS: Final = 10


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
        yield Check("calls", reason, _format_expected(call), _format_calls(made, call))
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
        reason = f"{made[0]['server']}.{made[0]['tool']} was called" if made else ""
        found = _format_calls(made) if made else "it was not called"
        yield Check("never_called", reason, f"never {_format_expected(call)}", found, passed=not made)


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


def _format_expected(call: ExpectedCall | ForbiddenCall) -> str:
    times = getattr(call, "times", None)
    often = "" if times is None else f", {pluralize(times, 'time')}"
    return f"{call.server}.{call.tool or '*'}{_format_arguments(call.arguments)}{often}"


def _format_calls(made: Sequence[Mapping[str, Any]], nearest: ExpectedCall | None = None) -> str:
    """What was called instead: the calls of the same tool with their arguments, else all by their names."""
    same = made
    if nearest is not None:
        same = [call for call in made if (call["server"], call["tool"]) == (nearest.server, nearest.tool)]
    texts = [
        f"{call['server']}.{call['tool']}{_format_arguments(call['arguments']) if same else ''}{_format_refusal(call)}"
        for call in same or made
    ]
    return and_more(texts, _MAX_CALLS) or "(no call)"


def _format_refusal(call: Mapping[str, Any]) -> str:
    return f" (refused: {truncate(printable(str(call['refused'])), _MAX_CHARACTERS)})" if "refused" in call else ""


def _format_arguments(arguments: Mapping[str, object]) -> str:
    return f"({', '.join(f'{name}={truncate(repr(value), 60)}' for name, value in arguments.items())})"

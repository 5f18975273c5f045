"""What a judge says, and what is said of one that says nothing."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from guarantee_email_agent.judging.judge_protocol import JudgeLimits

_NOT_STARTED, _CHANNEL_CLOSED, _IN_THE_WAY = 70, 71, 72
_DEEPEST = 110  # a little more than a judge's own details may have
_NO_NETWORK = ("Network is unreachable", "gaierror")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's word. An error never counts as a pass.

    error: why there is no word, to follow the name of the judge's file; None where there is one. output: what the judge
    printed, cut to its limit. duration_ms: wall time, from the start of its process until nothing of it was left.
    """

    verdict: Literal["passed", "failed", "error"]
    feedback: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    output: str = ""
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Graded:
    """The verdict on the work on one task."""

    task_name: str
    verdict: Verdict


def verdict_of(
    reply: Mapping[str, Any], answer: bytes, timeout_s: float, limits: JudgeLimits, *, network: bool
) -> Verdict:
    """The verdict in what the judge's server replied."""
    output: str = reply["output"]
    if reply["dropped"]:
        output += f"\n[… and {reply['dropped']:,} bytes more, which were dropped]"
    said = _understood(answer) if answer else _why_none(reply, timeout_s, limits)
    if isinstance(said, str):
        if said.startswith("raised MemoryError"):
            said += f": a judge may take {limits.memory_mb} MB of memory"
        elif not network and any(sign in said for sign in _NO_NETWORK):
            said += ": a judge has no network unless its task asks for it"
        return Verdict("error", error=said, output=output, duration_ms=reply["duration_ms"])
    passed, feedback, details = said
    return Verdict("passed" if passed else "failed", feedback, details, None, output, reply["duration_ms"])


def _understood(answer: bytes) -> tuple[bool, str, dict[str, Any]] | str:
    """What a judge returned, or why it returned nothing. A judge can write to its channel itself, so all is checked."""
    try:
        received = json.loads(answer, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        received = None
    match received:
        case {"error": str(error)} if error:
            return error
        case {"returned": {"passed": bool(passed), "feedback": str(feedback), "details": dict(details)}}:
            if _is_flat_enough(details):
                return passed, feedback, details
    return "wrote to the channel of its verdict what is no verdict"


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("JSON has no such number")
    return number


def _is_flat_enough(details: dict[str, Any]) -> bool:
    level: list[Any] = [details]
    for _ in range(_DEEPEST):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return not level


def _why_none(reply: Mapping[str, Any], timeout_s: float, limits: JudgeLimits) -> str:
    match reply["end"]:
        case "timeout":
            return f"gave no verdict within {timeout_s:g} s"
        case "memory":
            return f"took more than {limits.memory_mb} MB of memory, all its processes together"
        case "disk":
            return f"wrote more than {limits.temp_mb} MB to its temporary folder"
        case "too_much":
            return "wrote to a file descriptor that it did not open, the channel of its verdict"
        case "unstoppable":
            return "left processes behind that could not be stopped"
        case "broken":
            return f"could not be started: {reply['output']}"
        case _:
            return _of_status(reply["status"], limits, timeout_s)


def _of_status(status: int, limits: JudgeLimits, timeout_s: float) -> str:
    if status == _CHANNEL_CLOSED:
        return "closed file descriptors that it did not open, among them the channel of its verdict"
    if status == _IN_THE_WAY:
        return "got in the way of what reads its verdict, as by a timer or a changed built-in function"
    if status == _NOT_STARTED:
        return "could not be started, see its output"
    if status >= 0:
        return f"ended its process with exit code {status} and without a verdict"
    if -status == signal.SIGXCPU:
        return f"took more processor time than {limits.cpu_s or timeout_s:g} s"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"was ended by {name} and gave no verdict"

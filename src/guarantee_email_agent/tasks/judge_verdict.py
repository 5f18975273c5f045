"""What a judge says, and what is said of one that says nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from guarantee_email_agent.tasks.judge_limits import JudgeLimits

_CHANNEL_CLOSED, _NOT_STARTED = 71, 70
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


def verdict_of(
    reply: Mapping[str, Any], answer: bytes, timeout_s: float, limits: JudgeLimits, *, network: bool
) -> Verdict:
    """The verdict in what the judge's server replied."""
    output: str = reply["output"]
    if reply["dropped"]:
        output += f"\n[… and {reply['dropped']:,} bytes more, which were dropped]"
    received: dict[str, Any] = json.loads(answer) if answer else {"error": _why_none(reply, timeout_s, limits)}
    error: str | None = received.get("error")
    if error is not None:
        if error.startswith("raised MemoryError"):
            error += f": a judge may take {limits.memory_mb} MB of memory"
        elif not network and any(sign in error for sign in _NO_NETWORK):
            error += ": a judge has no network unless its task asks for it"
        return Verdict("error", error=error, output=output, duration_ms=reply["duration_ms"])
    returned = received["returned"]
    word: Literal["passed", "failed"] = "passed" if returned["passed"] else "failed"
    return Verdict(word, returned["feedback"], returned["details"], None, output, reply["duration_ms"])


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
    if status == _NOT_STARTED:
        return "could not be started, see its output"
    if status >= 0:
        return f"ended its process with exit code {status} and without a verdict"
    if -status == signal.SIGXCPU:
        return f"took more processor time than {limits.cpu_s or timeout_s:g} s"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"was ended by {name} and gave no verdict"

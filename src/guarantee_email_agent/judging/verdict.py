"""The verdict of a judge, and the error where it gave none."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from guarantee_email_agent.judging.judge_process import CHANNEL_CLOSED, DEEPEST, IN_THE_WAY
from guarantee_email_agent.judging.judge_protocol import NOT_STARTED, JudgeLimits
from guarantee_email_agent.runlog.records import NO_USAGE, Usage

if TYPE_CHECKING:
    from guarantee_email_agent.judging.record_files import RecordPlace
    from guarantee_email_agent.llm.usage import ModelUsage

_NO_NETWORK = ("Network is unreachable", "gaierror")
# The reply's `end`, where the judge gave no answer and was not the one who ended its process.
_ERRORS_BY_END = {
    "timeout": "gave no verdict within {timeout_s:g} s",
    "memory": "took more than {limits.memory_mb} MB of memory, all its processes together",
    "disk": "wrote more than {limits.temp_mb} MB to its temporary folder",
    "too_much": "wrote to a file descriptor that it did not open, the channel of its verdict",
    "unstoppable": "left processes behind that could not be stopped",
    "broken": "could not be started: {output}",
}
_DECLARATION = '"# /// script", "# dependencies = [\\"package\\"]", "# ///", each on a line of its own'
_ERRORS_BY_STATUS = {
    CHANNEL_CLOSED: "closed file descriptors that it did not open, among them the channel of its verdict",
    IN_THE_WAY: "got in the way of what reads its verdict, as by a timer or a changed built-in function",
    NOT_STARTED: "could not be started, see its output",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge decided. It is true only where that is `passed`: an error never counts as a pass.

    error: why it decided nothing, to follow the name of the judge's file; None where it did. output: what the judge
    printed, cut to its limit. duration_ms: wall time, from the start of its process until nothing of it was left.
    score: how good the work is, from 0 to 1; None where the judge does not say. rubric: as `judging.rubric` answers
    it, and usage: what that took.
    """

    verdict: Literal["passed", "failed", "error"]
    feedback: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    output: str = ""
    duration_ms: float = 0.0
    score: float | None = None
    rubric: Sequence[Mapping[str, Any]] = ()
    usage: Usage = NO_USAGE

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"

    def __bool__(self) -> bool:
        return self.passed

    def as_dict(self) -> dict[str, Any]:
        """What was said, without the time that it took."""
        said = {"feedback": self.feedback, "details": dict(self.details), "error": self.error, "output": self.output}
        more: dict[str, Any] = {} if self.score is None else {"score": self.score}
        more |= {"rubric": list(self.rubric)} if self.rubric else {}
        return {"verdict": self.verdict, **said, **more}


@dataclass(frozen=True, slots=True)
class Graded:
    """The verdict on the work on one task.

    index, of: which of the task's records it is about, from 1, and how many there are. place: where that record lies;
    None where there is none, or in no file.
    """

    task_name: str
    verdict: Verdict
    index: int = 1
    of: int = 1
    place: RecordPlace | None = None

    @property
    def name(self) -> str:
        """Of the task, with the record's number where there are several: `inventory (2 of 3)`."""
        return self.task_name if self.of == 1 else f"{self.task_name} ({self.index} of {self.of})"


def verdict_of(
    reply: Mapping[str, Any], answer: bytes, timeout_s: float, limits: JudgeLimits, *, network: bool, sandbox: bool
) -> Verdict:
    """The verdict in the reply of the judge's supervisor. network, sandbox: what the judge could reach."""
    output: str = reply["output"]
    if reply["dropped"]:
        output += f"\n[… and {reply['dropped']:,} bytes more, which were dropped]"
    parsed = _parse_answer(answer) if answer else _error_without_answer(reply, timeout_s, limits)
    if isinstance(parsed, str):
        if parsed.startswith("raised MemoryError"):
            parsed += f": a judge may take {limits.memory_mb} MB of memory"
        elif parsed.startswith("raised ModuleNotFoundError"):
            parsed += ". Name its package in test.py, in a block as PEP 723 has it: " + _DECLARATION
        elif not network and any(sign in parsed for sign in _NO_NETWORK):
            reach = "reaches its sandbox alone" if sandbox else "has no network"
            parsed += f": a judge {reach} unless its task asks for more and the operator allows it"
        return Verdict("error", error=parsed, output=output, duration_ms=reply["duration_ms"])
    passed, feedback, details, score = parsed
    return Verdict("passed" if passed else "failed", feedback, details, None, output, reply["duration_ms"], score)


def _parse_answer(answer: bytes) -> tuple[bool, str, dict[str, Any], float | None] | str:
    """What a judge returned, or its error. A judge can write to its channel itself, so all is checked."""
    try:
        received = json.loads(answer, parse_float=_parse_finite, parse_constant=_parse_finite)
    except (ValueError, RecursionError):
        received = None
    match received:
        case {"error": str(error)} if error:
            return error
        case {"returned": {"passed": bool(passed), "feedback": str(feedback), "details": dict(details), **rest}}:
            score = rest.get("score")
            if score is not None and not (isinstance(score, float) and 0 <= score <= 1):
                return "wrote a score to the channel of its verdict that is none"
            # Its process allows a little less than this.
            if _is_at_most_deep(details, DEEPEST + 10):
                return passed, feedback, details, score
    return "wrote to the channel of its verdict what is no verdict"


def _parse_finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("JSON has no such number")
    return number


def _is_at_most_deep(details: dict[str, Any], levels: int) -> bool:
    level: list[Any] = [details]
    for _ in range(levels):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return not level


def _error_without_answer(reply: Mapping[str, Any], timeout_s: float, limits: JudgeLimits) -> str:
    if (error := _ERRORS_BY_END.get(reply["end"])) is not None:
        return error.format(timeout_s=timeout_s, limits=limits, output=reply["output"])
    status: int = reply["status"]
    if status in _ERRORS_BY_STATUS:
        return _ERRORS_BY_STATUS[status]
    if status >= 0:
        return f"ended its process with exit code {status} and without a verdict"
    if -status == signal.SIGXCPU:
        return f"took more processor time than {limits.cpu_s or timeout_s:g} s"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"was ended by {name} and gave no verdict"


def as_usage(usage: ModelUsage) -> Usage:
    # What some answers did not say makes the sum of the others no figure: none is there then.
    counts = {} if usage.tokens.uncounted else usage.tokens.as_dict()
    tokens = {f"{name}_tokens": count for name, count in counts.items()}
    return Usage(calls=usage.calls, **tokens, cost_usd=usage.cost_usd, latency_ms=usage.latency_ms)

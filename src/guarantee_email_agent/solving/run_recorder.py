"""The record of a run while it happens: on disk after every step, and valid at any moment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.record import Record, complete_record, write_record
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.solving.run_limits import INTERRUPTED, FailureReason, RunLimits
from guarantee_email_agent.solving.tools import ToolCall, ToolResult

RECORD_UNWRITABLE: Final = "task_record_unwritable"
"""The code of the only error that a record can end a call with."""

# What a program tells of its own run may not stand in for what we know of it.
_OURS: Final = frozenset(
    {"task_name", "instruction", "sandbox", "controller", "finished", "reason", "limits", "timings", "eval", "status"}
)


class RunRecorder:
    """Writes `path` anew with every step.

    Until `end`, the record says what a crash would leave: failed, interrupted, not finished.
    """

    def __init__(self, path: Path, task: Task, controller: str, limits: RunLimits, started: str) -> None:
        self._path = path
        self.tokens = TokenUsage()
        self.cost_usd: float | None = 0.0
        self.record: Record = {
            **complete_record({}, task),
            "status": "failed",
            "finished": False,
            "reason": _as_json(INTERRUPTED),
            "controller": controller,
            "model": None,
            "tokens": {**self.tokens.as_dict(), "total": self.tokens.total},
            "cost_usd": 0.0,
            "limits": {
                "max_iterations": limits.max_iterations,
                "wall_time_s": limits.wall_time_s,
                "max_tokens": limits.max_tokens,
                "max_cost_usd": limits.max_cost_usd,
            },
            "timings": {"started": started, "sandbox_s": 0.0, "agent_s": 0.0, "tools_s": 0.0, "judge_s": 0.0},
        }

    def write(self) -> None:
        """Raises TaskError where the file cannot be written."""
        write_record(self._path, self.record)

    def took(self, what: str, seconds: float) -> None:
        """Add to one of the timings: `sandbox_s`, `agent_s`, `tools_s`, `judge_s`."""
        self.record["timings"][what] = round(self.record["timings"][what] + seconds, 6)

    def open(self, messages: Sequence[Mapping[str, Any]], sandbox: Mapping[str, Any]) -> None:
        self.record["sandbox"] = dict(sandbox)
        self.record["conversation"] = [dict(message) for message in messages]
        self.write()

    def step(self, text: str, calls: Sequence[ToolCall], tokens: TokenUsage, cost_usd: float | None) -> None:
        """One step of the agent, before any of its calls is carried out."""
        self.record["iterations"] += 1
        self.tokens += tokens
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        self.record["tokens"] = {**self.tokens.as_dict(), "total": self.tokens.total}
        self.record["cost_usd"] = None if self.cost_usd is None else round(self.cost_usd, 6)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [_tool_call(call) for call in calls]
        if text or calls:
            self.record["conversation"].append(message)
        self.write()

    def told(self, text: str) -> None:
        """What the agent was told besides what its tools say."""
        self.record["conversation"].append({"role": "user", "content": text})

    def tool_result(self, tool_result: ToolResult, action: Mapping[str, Any], seconds: float) -> None:
        """What came of one call."""
        feedback: dict[str, Any] = {"done": tool_result.done, "message": tool_result.message}
        if tool_result.error:
            feedback["error"] = True
        self.record["execution_trace"].append(
            {"action": dict(action), "feedback": feedback, "duration_ms": round(1000 * seconds)}
        )
        self.record["conversation"].append(
            {
                "role": "tool",
                "tool_call_id": tool_result.call.id,
                "name": tool_result.call.name,
                "content": tool_result.message,
            }
        )
        self.write()

    def model(self, name: str) -> None:
        self.record["model"] = name

    def result(self, result: str) -> None:
        self.record["task_result"] = result

    def merge(self, told: Mapping[str, Any]) -> None:
        """What a program tells of its own run; what we know of it ourselves stays."""
        if not told:
            return
        last = self.record["conversation"][-1:]
        self.record |= {key: value for key, value in told.items() if key not in _OURS}
        if "conversation" in told and last and last[0].get("tool_calls"):
            # What comes of a call stands behind the message that has the call.
            self.record["conversation"] = [*told["conversation"], *last]
        self.write()

    def end(self, reason: FailureReason | None) -> None:
        """The agent is done, or `reason` says why it is not."""
        self.record["status"] = "success" if reason is None else "failed"
        self.record["reason"] = None if reason is None else _as_json(reason)
        self.record["finished"] = reason is None or not reason.again
        self.write()

    def judged(self, verdict: Verdict) -> None:
        self.record["eval"] = {
            "verdict": verdict.verdict,
            "passed": verdict.verdict == "passed",
            "feedback": verdict.feedback,
            "details": dict(verdict.details),
            "error": verdict.error,
            "output": verdict.output,
            "duration_ms": verdict.duration_ms,
        }
        self.write()


def kept_verdict(record: Mapping[str, Any], task: Task) -> Verdict | None:
    """The verdict of a run that was finished and judged; None where the task is to be worked on (again)."""
    kept = record.get("eval")
    if record.get("finished") is not True or record.get("instruction") != task.instruction:
        return None
    if not isinstance(kept, dict) or kept.get("verdict") not in ("passed", "failed", "error"):
        return None
    details = kept.get("details")
    return Verdict(
        kept["verdict"],
        str(kept.get("feedback") or ""),
        details if isinstance(details, dict) else {},
        error=None if kept.get("error") is None else str(kept["error"]),
        output=str(kept.get("output") or ""),
        duration_ms=kept["duration_ms"] if isinstance(kept.get("duration_ms"), (int, float)) else 0,
    )


def _as_json(reason: FailureReason) -> dict[str, str]:
    return {"code": reason.code, "message": reason.message}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

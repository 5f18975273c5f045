"""The record of a run while it happens: on disk after every step, and valid at any moment."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.record import Record, complete_record, read_record, write_record
from guarantee_email_agent.judging.task import TASK_FILE, Task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.llm.port import NO_TOKENS, TokenUsage
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.runlog.records import NO_USAGE, Usage
from guarantee_email_agent.solving.agents.agent import Step
from guarantee_email_agent.solving.run_limits import INTERRUPTED, FailureReason, RunLimits
from guarantee_email_agent.solving.tools import ToolCall, ToolResult

# The keys of task.yaml that an agent or its sandbox gets to feel; a judge gets them all.
_KEYS_FOR_AGENTS: Final = ("client_type", "sandbox")
_ASSETS: Final = "assets"
_CHUNK: Final = 1 << 20
_COUNTS: Final = range(1 << 31)  # of answers


def work_digest(task: Task, record_file: Path) -> str:
    """Of what an agent and its sandbox get: instruction, `assets/`, what a container is built from.

    record_file: which is no part of the task, nor is its folder, even where they lie in it.
    """
    built_from = {file.name for file in (task.dockerfile, task.compose_file) if file is not None}
    names = {_ASSETS, *built_from}
    if built_from:  # then the folder is copied for the build, without the judge
        names |= {name for name in _names(task.directory) if not name.endswith(".py")}
    settings = {key: task.settings[key] for key in _KEYS_FOR_AGENTS if key in task.settings}
    return _digest(task.directory, names, [task.instruction, settings], record_file, _content)


def judge_digest(task: Task, record_file: Path) -> str:
    """Of what a judge gets beside the record: `test.py`, the files beside it, and the keys of `task.yaml`."""
    agents = {_ASSETS, *(file.name for file in (task.dockerfile, task.compose_file) if file is not None)}
    facts = [task.instruction, dict(task.settings)]
    names = set(_names(task.directory)) - agents
    return _digest(task.directory, names, facts, record_file, _content_behind_links)


def _digest(
    directory: Path, names: set[str], facts: list[Any], record_file: Path, content_of: Callable[[str], str]
) -> str:
    folder, records = directory.resolve(), record_file.parent.resolve()
    ours = {str(records), str(records / record_file.name)}
    digest = hashlib.sha256()
    _add(digest, "facts", json.dumps(facts, sort_keys=True, default=str))
    for path in sorted(path for name in names for path in _files(folder / name, ours)):
        _add(digest, os.path.relpath(path, folder), content_of(path))
    return f"sha256:{digest.hexdigest()}"


def _names(folder: Path) -> Iterator[str]:
    """What is in the directory of a task beside `task.yaml`, without what tools leave there."""
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    return (name for name in names if name[0] != "." and name not in (TASK_FILE, "__pycache__"))


def _files(path: Path, ours: set[str]) -> Iterator[str]:
    """`path`, and everything below it but what is `ours`; no folder behind a link."""
    if not os.path.lexists(path) or str(path) in ours:
        return
    yield os.fspath(path)
    for parent, folders, files in os.walk(path) if not os.path.islink(path) else ():
        folders[:] = [name for name in folders if name != "__pycache__" and os.path.join(parent, name) not in ours]
        yield from (os.path.join(parent, name) for name in (*folders, *files))


def _content(path: str) -> str:
    """The kind of what stands there, and what it holds; nothing but a file is opened."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return f"link {os.readlink(path)}"
        if not stat.S_ISREG(mode):
            return f"kind {stat.S_IFMT(mode):o}"
        content = hashlib.sha256()
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            while chunk := file.read(_CHUNK):
                content.update(chunk)
    except OSError as error:
        return f"unreadable {error.errno}"
    return f"file {mode & stat.S_IXUSR:o} {content.hexdigest()}"


def _content_behind_links(path: str) -> str:
    """The same with what the file holds that a link leads to, such as a module that the judges of many tasks share."""
    return f"{_content(path)} {_content(os.path.realpath(path))}" if os.path.islink(path) else _content(path)


def _add(digest: Any, name: str, content: str) -> None:
    for text in (name, content):
        data = text.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)


RECORD_UNWRITABLE: Final = "task_record_unwritable"
"""The code of the only error that a record can end a call with."""

# What a program reports of its own run may not stand in for what we know of it.
_NOT_REPORTABLE: Final = frozenset(
    {"task_name", "instruction", "sandbox", "controller", "finished", "reason", "limits", "digests", "timings", "eval"}
    | {"status", "task_keys"}
)


class RunRecorder:
    """Writes `path` anew with every step.

    Until `finish`, the record says what a crash would leave: failed, interrupted, not finished.
    """

    def __init__(self, path: Path, task: Task, agent_name: str, limits: RunLimits, started: str) -> None:
        self._path = path
        self._task = task
        self.tokens = NO_TOKENS
        self.cost_usd: float | None = 0.0
        of_task = complete_record({}, task)
        ours: Record = {
            "status": "failed",
            "finished": False,
            "reason": _reason_as_json(INTERRUPTED),
            "controller": agent_name,
            "model": None,
            "tokens": _tokens_as_json(self.tokens),
            "cost_usd": 0.0,
            "limits": asdict(limits),
            "digests": {"work": work_digest(task, path), "judge": None},
            "timings": {"started": started, "sandbox_s": 0.0, "agent_s": 0.0, "tools_s": 0.0, "judge_s": 0.0},
        }
        keys = sorted(key for key in task.settings if key not in ours and of_task.get(key) == task.settings[key])
        self.record: Record = {**of_task, **ours, "task_keys": keys}

    def write(self) -> None:
        """Raises TaskError where the file cannot be written."""
        write_record(self._path, self.record)

    def add_time(self, timing: str, seconds: float) -> None:
        """timing: `sandbox_s`, `agent_s`, `tools_s` or `judge_s`."""
        self.record["timings"][timing] = round(self.record["timings"][timing] + seconds, 6)

    def start(self, messages: Sequence[Mapping[str, Any]], sandbox: Mapping[str, Any]) -> None:
        """messages: those that the conversation starts with."""
        self.record["sandbox"] = dict(sandbox)
        self.record["conversation"] = [dict(message) for message in messages]
        self.write()

    def add_step(self, step: Step) -> None:
        """One step of the agent, before any of its calls is carried out."""
        self.record["iterations"] += not step.record  # which alone knows how often a program asked its model
        self.add_usage(step.usage, step.cost_usd)
        if step.model is not None:
            self.record["model"] = step.model
        calls = {"tool_calls": [_call_as_json(call) for call in step.calls]} if step.calls else {}
        if step.text or step.calls:
            self.record["conversation"].append({"role": "assistant", "content": step.text, **calls})
        self._merge_report(step.record)
        self.write()

    def add_usage(self, usage: TokenUsage, cost_usd: float | None) -> None:
        """What a model took."""
        self.tokens += usage
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        self.record["tokens"] = _tokens_as_json(self.tokens)
        self.record["cost_usd"] = None if self.cost_usd is None else round(self.cost_usd, 9)

    def add_reply(self, text: str) -> None:
        """The message to the agent after a step without a call."""
        self.record["conversation"].append({"role": "user", "content": text})

    def add_result(self, result: ToolResult, action: Mapping[str, Any], seconds: float) -> None:
        """The result of one call. action: the call as the trace has it."""
        feedback = {"done": result.done, "message": result.message} | ({"error": True} if result.error else {})
        self.record["execution_trace"].append(
            {"action": dict(action), "feedback": feedback, "duration_ms": round(1000 * seconds)}
        )
        self.record["conversation"].append(
            {"role": "tool", "tool_call_id": result.call.id, "name": result.call.name, "content": result.message}
        )
        self.write()

    def set_answer(self, answer: str) -> None:
        self.record["task_result"] = answer

    def finish(self, reason: FailureReason | None) -> None:
        """The agent is done, or `reason` says why it is not."""
        self.record["status"] = "success" if reason is None else "failed"
        self.record["reason"] = None if reason is None else _reason_as_json(reason)
        self.record["finished"] = reason is None or not reason.retryable
        self.write()

    def before_judging(self) -> None:
        """What the judge is now; it may have been edited while the agent worked."""
        self.record["digests"]["judge"] = judge_digest(self._task, self._path)

    def add_verdict(self, verdict: Verdict) -> None:
        self.record["eval"] = _verdict_as_json(verdict)
        self.write()

    def _merge_report(self, report: Mapping[str, Any]) -> None:
        """What a program reports of its own run; what we know of it ourselves stays."""
        last = self.record["conversation"][-1:]
        self.record |= {key: value for key, value in report.items() if key not in _NOT_REPORTABLE}
        if "conversation" in report and last and last[0].get("tool_calls"):
            # The result of a call stands behind the message that has the call.
            self.record["conversation"] = [*report["conversation"], *last]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run whose work still counts. verdict: None where it is to be judged again, on the record that there is."""

    verdict: Verdict | None


def earlier_run(path: Path, task: Task) -> EarlierRun | None:
    """What the record in a file says of an earlier run; None where the task is to be worked on (again).

    The work counts as long as the task asks for the same and offers the same, the verdict as long as the judge is the
    same. Raises TaskError for the file.
    """
    record = read_record(path)
    digests = record.get("digests")
    if record.get("finished") is not True or not isinstance(digests, dict):
        return None
    if digests.get("work") != work_digest(task, path):
        return None
    kept = record.get("eval")
    if not isinstance(kept, dict) or kept.get("verdict") not in ("passed", "failed", "error"):
        # The judge was interrupted; one that may look into the sandbox needs another.
        return None if task.judge_network else EarlierRun(None)
    is_same_judge = digests.get("judge") == judge_digest(task, path)
    return EarlierRun(_verdict_from_json(kept) if is_same_judge else None)


def judge_again(
    path: Path, task: Task, judge: Callable[[Record], Verdict], is_to_be_kept: Callable[[Verdict], bool]
) -> Verdict:
    """The verdict on the record in a file, which is kept there in the place of the former one.

    The sandbox is gone, and its port may be somebody else's by now, so the judge does not get it; where it may have
    been the judge's reason, anything but a pass is an error that says so. Raises TaskError for the file.
    """
    record = read_record(path)
    former = record.get("task_keys")
    for key in former if isinstance(former, list) else ():
        if isinstance(key, str) and key not in task.settings:  # the judge gets nothing that the task no longer says
            record.pop(key, None)
    digest = judge_digest(task, path)
    verdict = judge({**record, "sandbox": _without_port(record.get("sandbox"))})
    if not is_to_be_kept(verdict):
        return verdict
    if task.judge_network and verdict.verdict != "passed":
        said = verdict.error or f"judged as failed: {verdict.feedback}"
        remedy = "Solve the task with --run-all to have the agent work on it again"
        problem = f"the judge is a new one, and the sandbox that it may look into is gone ({said}). {remedy}"
        verdict = replace(verdict, verdict="error", error=problem)
    record["digests"] = {**record["digests"], "judge": digest}
    record["eval"] = _verdict_as_json(verdict)
    write_record(path, record)
    return verdict


def _without_port(sandbox: object) -> object:
    if not isinstance(sandbox, dict):
        return {}
    return {key: value for key, value in sandbox.items() if key not in ("docker_port", "base_url")}


def _verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    return {"passed": verdict.passed, **verdict.as_dict(), "duration_ms": verdict.duration_ms}


def _verdict_from_json(kept: Mapping[str, Any]) -> Verdict:
    details = kept.get("details")
    return Verdict(
        kept["verdict"],
        str(kept.get("feedback") or ""),
        details if isinstance(details, dict) else {},
        error=None if kept.get("error") is None else str(kept["error"]),
        output=str(kept.get("output") or ""),
        duration_ms=kept["duration_ms"] if isinstance(kept.get("duration_ms"), (int, float)) else 0,
        score=kept["score"] if isinstance(kept.get("score"), float) else None,
        rubric=kept["rubric"] if isinstance(kept.get("rubric"), list) else (),
    )


def usage_of(record: Record) -> Usage:
    """What the agent took of a model, as far as its record tells: a program may say anything of itself, or nothing."""
    tokens, cost, calls = (record[key] for key in ("tokens", "cost_usd", "iterations"))
    if (tokens, cost) == (_tokens_as_json(NO_TOKENS), 0):
        return NO_USAGE
    names = NO_TOKENS.as_dict()
    counted = TokenUsage.of([tokens.get(name) if isinstance(tokens, Mapping) else None for name in names])
    if counted.uncounted:
        return Usage(cost_usd=None)
    is_known = type(cost) in (int, float) and 0 <= cost < math.inf
    waited_ms = round(1000 * record["timings"]["agent_s"])
    answers, cost_usd = calls if calls in _COUNTS else 0, cost if is_known else None
    return Usage(**ModelUsage(answers, counted, cost_usd, waited_ms).as_dict())


def _tokens_as_json(usage: TokenUsage) -> dict[str, int] | None:
    return None if usage.uncounted else {**usage.as_dict(), "total": usage.total}


def _reason_as_json(reason: FailureReason) -> dict[str, str]:
    return {"code": reason.code, "message": reason.message}


def _call_as_json(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

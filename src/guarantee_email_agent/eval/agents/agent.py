"""The port to an agent that `eval --agent` judges: it gets a mail and MCP servers, and works until it is done."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Self

MAX_OUTPUT_BYTES: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One scenario for an agent. urls: of the MCP servers, by name. timeout_s: seconds it has.

    stopped_by: says why the agent has to stop at once, or None; may be asked from any thread.
    """

    email: Mapping[str, Any]
    urls: Mapping[str, str]
    timeout_s: float
    stopped_by: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What came of it. failure: why it does not count, in one line; None where the agent was done in time.

    record: what the agent reports of its run, with `task_result`; judged is what the mocks captured.
    """

    failure: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


class AgentUnderTest(Protocol):
    """Serves several scenarios at a time, each in a thread of its caller."""

    def check(self) -> None:
        """Raises ConfigurationError where there is no such agent, before a scenario runs."""

    def run(self, task: AgentTask) -> AgentRun:
        """Returns once the agent is done, and nothing of it runs any more."""


class Deadline:
    def __init__(self, task: AgentTask) -> None:
        self._task = task
        self._ends = time.monotonic() + task.timeout_s

    def left_s(self) -> float:
        return max(0.0, self._ends - time.monotonic())

    def reason_to_stop(self) -> str | None:
        """Why the agent has to stop now; None as long as it need not."""
        if (reason := self._task.stopped_by()) is not None:
            return reason
        return (
            f"the time was over ({self._task.timeout_s:g} s) before the agent was done" if not self.left_s() else None
        )


def task_as_json(task: AgentTask, servers: Mapping[str, Any]) -> str:
    """One line."""
    return json.dumps({"email": task.email, "mcp_servers": servers})


def http_servers(task: AgentTask) -> dict[str, Any]:
    """The servers as MCP clients read them."""
    return {name: {"type": "http", "url": url} for name, url in task.urls.items()}


def parse_record(text: str) -> dict[str, Any]:
    """The record that stands in the last line that is not empty; an empty one where there is none."""
    last = text.rstrip().rpartition("\n")[2]
    if last.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            record = json.loads(last)
            if isinstance(record, dict) and "task_result" in record:
                return record
    return {}


class Watch:
    """Calls `stop` from a thread of its own once a task has to end before its time; a context manager."""

    def __init__(self, deadline: Deadline, stop: Callable[[], None]) -> None:
        self._deadline = deadline
        self._stop = stop
        self._done = threading.Event()
        self.reason: str | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, daemon=True, name="deadline").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()

    def _watch(self) -> None:
        while not self._done.wait(min(0.05, self._deadline.left_s() + 0.001)):
            if (reason := self._deadline.reason_to_stop()) is not None:
                self.reason = reason
                self._stop()
                return

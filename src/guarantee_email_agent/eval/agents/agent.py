"""The port to an agent that `eval --agent` judges: it gets a mail and MCP servers, and works until it is done."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from guarantee_email_agent.utils.text import head_and_tail

MAX_OUTPUT_BYTES: Final = 10_000_000
MAX_PRINTED_CHARS: Final = 32_768  # of one stream that are kept

SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|_PWD|CREDENTIAL|AUTH(?!OR)|COOKIE", re.IGNORECASE)
_SECRET_VALUE: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+=.~-][\w+/=.~-]{19,}", re.ASCII)
_PASSWORD_IN_URL: Final = re.compile(r"://(?:[^/\s@:]*:)?([^/\s@]+)@")
_LEAST_SECRET: Final = 6  # characters; what is shorter stands in many a text by chance


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One scenario for an agent. urls: of the MCP servers, by name. timeout_s: seconds it has.

    email, task: None for what the scenario has not. said: the turns before, each with what it `says` and the `answer`.

    environment: where its language model is reached, where that goes through us.
    stopped_by: says why the agent has to stop at once, or None; may be asked from any thread.
    """

    email: Mapping[str, Any] | None
    urls: Mapping[str, str]
    timeout_s: float
    stopped_by: Callable[[], str | None]
    task: object = None
    environment: Mapping[str, str] = field(default_factory=dict)
    said: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What came of it. failure: why it does not count, in one line; None where the agent was done in time.

    record: what the agent reports of its run, with `task_result`; judged is what the mocks captured. printed: by the
    name of the stream, without secrets, and both its ends where it is long.
    """

    failure: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)


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
    given = {name: value for name, value in (("email", task.email), ("task", task.task)) if value is not None}
    if task.environment:
        given["environment"] = dict(task.environment)
    if task.said:
        roles = (("user", "says"), ("assistant", "answer"))
        given["conversation"] = [{"role": role, "content": turn[key]} for turn in task.said for role, key in roles]
    return json.dumps({**given, "mcp_servers": servers})


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


def read_printed(content: bytes, missing: int = 0) -> tuple[str, str]:
    """The whole of what was printed, and as much as is kept, without secrets. missing: bytes that its middle lacks."""
    text = without_secrets(content.decode("utf-8", "replace"))
    return text, head_and_tail(text, MAX_PRINTED_CHARS, missing)


def without_secrets(text: str) -> str:
    """`text` with the name of a variable of our environment in place of its value, where that may be a secret.

    It is one by its name or by its looks; of a URL the password is.
    """
    secrets: dict[str, str] = {}
    for name, value in os.environ.items():
        found = _PASSWORD_IN_URL.findall(value)
        if SECRET_NAME.search(name) or _SECRET_VALUE.fullmatch(value):
            found.append(value)
        for secret in found:
            if len(secret) >= _LEAST_SECRET:
                secrets |= {secret: name, json.dumps(secret, ensure_ascii=False)[1:-1]: name}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, f"[${secrets[secret]}]")
    return text

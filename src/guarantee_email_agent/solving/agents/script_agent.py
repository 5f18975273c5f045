"""A fixed list of actions works on the task: for tests, for demonstrations, and to repeat a recorded run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.solving.agents.agent import Agent, AgentFactory, AgentStepError, Step, TaskContext
from guarantee_email_agent.solving.tools import ToolCall, ToolResult
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError
from guarantee_email_agent.utils.text import printable

MAX_SCRIPT_BYTES: Final = 10_000_000
# As the trace calls a tool, where that is not its name.
_TOOL_NAMES: Final = {"shell": "shell_execute"}

ScriptStep = tuple[Mapping[str, Any], ...]


class ScriptAgent(Agent):
    """Takes the steps of a script one after the other, whatever comes of them."""

    def __init__(self, context: TaskContext, steps: Sequence[ScriptStep]) -> None:
        self.context = context
        self._step_count = len(steps)
        self._remaining = iter(steps)
        self._call_numbers = count(1)

    def next_step(self, results: Sequence[ToolResult]) -> Step:  # noqa: ARG002 - a script does not listen
        """Raises AgentStepError behind the last action."""
        actions = next(self._remaining, None)
        if actions is None:
            raise AgentStepError(f"the script ended after {self._step_count} steps without task_complete", "no_answer")
        return Step(calls=tuple(self._call(action) for action in actions))

    def _call(self, action: Mapping[str, Any]) -> ToolCall:
        name = action["action_type"]
        arguments = {key: value for key, value in action.items() if key != "action_type"}
        return ToolCall(f"call_{next(self._call_numbers)}", _TOOL_NAMES.get(name, name), arguments)


def script_agent_factory(path: Path | None) -> AgentFactory:
    """path: a script for all tasks, or a folder with one for each.

    Raises ConfigurationError without it, and TaskError for a file that is no script.
    """
    if path is None:
        raise ConfigurationError("--agent script needs --script FILE (or a folder of them)", "cli_bad_usage")
    if not path.is_dir():
        load_script(path)

    def make(context: TaskContext) -> Agent:
        try:
            return ScriptAgent(context, load_script(script_file(path, context.task_name)))
        except TaskError as error:
            raise AgentStepError(error.message, error.code, {"retryable": True}) from None

    return make


def script_file(path: Path, task_name: str) -> Path:
    """The script for a task: `path` itself, or `<task_name>.yaml` in the folder `path`.

    Raises TaskError where the folder has none.
    """
    if not path.is_dir():
        return path
    for suffix in (".yaml", ".yml", ".json"):
        if (file := path / f"{task_name}{suffix}").is_file():
            return file
    problem = f"there is no script {printable(task_name)}.yaml. Write it, or name a file for all tasks"
    raise TaskError(f"{printable(str(path))}: {problem}", "task_no_script")


def load_script(path: Path) -> tuple[ScriptStep, ...]:
    """The steps of a script in YAML or JSON.

    It is a list, each item an action as a trace has it (`{action_type: shell, command: ls}`), or a list of actions for
    one step. A record will do too: its trace is the script.

    Raises TaskError for what is no such list.
    """
    try:
        documents = load_documents(read_text(path, MAX_SCRIPT_BYTES))
    except InputFileError as error:
        raise _error(path, error.message) from None
    content = documents[0] if len(documents) == 1 else None
    if isinstance(content, dict):
        content = content.get("execution_trace")
    if not isinstance(content, list) or not content:
        raise _error(path, "must be a list of actions such as '- {action_type: shell, command: ls}'")
    return tuple(
        tuple(_parse_action(path, action, number) for action in (item if isinstance(item, list) else [item]))
        for number, item in enumerate(content, 1)
    )


def _parse_action(path: Path, item: object, number: int) -> Mapping[str, Any]:
    if isinstance(item, dict) and isinstance(item.get("action"), dict):
        item = item["action"]
    if not isinstance(item, dict) or not isinstance(item.get("action_type"), str):
        raise _error(path, f"item {number} has no action_type; write for example {{action_type: shell, command: ls}}")
    return item


def _error(path: Path, problem: str) -> TaskError:
    return TaskError(f"{printable(str(path))}: {printable(problem)}", "task_bad_script")

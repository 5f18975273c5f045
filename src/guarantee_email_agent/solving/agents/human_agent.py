"""A person works on the task, at the terminal."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, TextIO

from guarantee_email_agent.solving.agents.agent import Agent, AgentFactory, AgentStepError, Step, TaskContext
from guarantee_email_agent.solving.tools import TASK_COMPLETE, ToolCall, ToolResult
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

_POLL_S: Final = 0.2
_HELP: Final = """\
  COMMAND            run it in the sandbox's shell
  :TOOL {"a": 1}     use a tool, with its arguments as JSON
  :tools             list the tools
  :done ANSWER       end the task with this answer
  :done              the same, with an answer of several lines, up to a line with a single dot
  :quit              give up"""


def human_agent_factory(stdin: TextIO, jobs: int) -> AgentFactory:
    """Raises ConfigurationError without a terminal, or for several jobs."""
    if not stdin.isatty():
        problem = "--agent human needs a terminal to ask on, and stdin is none. Run it in one, or use another --agent"
        raise ConfigurationError(problem, "cli_no_terminal")
    if jobs > 1:
        raise ConfigurationError("--agent human works on one task at a time. Leave --jobs out", "cli_bad_usage")
    write = partial(print, end="", file=sys.stderr, flush=True)
    return lambda context: HumanAgent(context, stdin, write)


class HumanAgent(Agent):
    """Each line that is typed is a step."""

    def __init__(self, context: TaskContext, stdin: TextIO, write: Callable[[str], object]) -> None:
        self.context = context
        self._stdin = stdin
        self._write = write
        self._call_numbers = count(1)
        self._print(f"\nTask {context.task_name}\n\n{context.instruction.rstrip()}\n\n{_HELP}")

    def next_step(self, results: Sequence[ToolResult]) -> Step:
        """Raises AgentStepError where the person gives up, or the time is over."""
        for result in results:
            self._print(result.message)
        while True:
            line = self._read_line("> ").strip()
            if not line:
                continue
            if not line.startswith(":"):
                return self._call("shell_execute", {"command": line})
            name, _, rest = line[1:].partition(" ")
            if name == "done":
                return self._call(TASK_COMPLETE, {"result": rest.strip() or self._read_answer()})
            if name == "quit":
                raise AgentStepError("the person gave up", "gave_up")
            if (arguments := self._parse_arguments(name, rest)) is not None:
                return self._call(name, arguments)

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> Step:
        return Step(calls=(ToolCall(f"call_{next(self._call_numbers)}", tool, arguments),))

    def _parse_arguments(self, name: str, text: str) -> Mapping[str, Any] | None:
        """The arguments of a tool; None where the line was no call, which has been explained."""
        if name not in {tool.name for tool in self.context.tools}:
            tools = "\n".join(f"  {tool.name}({', '.join(tool.parameters)})" for tool in self.context.tools)
            self._print(tools if name == "tools" else f"There is no tool {name}.\n{_HELP}")
            return None
        try:
            arguments = json.loads(text or "{}")
        except ValueError as error:
            self._print(f"That is no JSON: {error}")
            return None
        if not isinstance(arguments, dict):
            self._print('Arguments have names, such as {"path": "/"}')
            return None
        return arguments

    def _read_answer(self) -> str:
        return "\n".join(iter(lambda: self._read_line("… ").rstrip("\n"), "."))

    def _read_line(self, prompt: str) -> str:
        self._write(prompt)
        deadline = self.context.deadline
        while not select.select([self._stdin], [], [], min(_POLL_S, deadline.remaining_s()))[0]:
            if deadline.is_over():
                raise AgentStepError("the time was over before the person was done", "wall_time")
        if not (line := self._stdin.readline()):
            raise AgentStepError("the person ended the input", "gave_up")
        return line

    def _print(self, text: str) -> None:
        # A task or a sandbox must not steer the terminal.
        self._write("".join(f"{printable(line)}\n" for line in text.split("\n")))

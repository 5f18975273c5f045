"""The tools that an agent works with: what it is told of each, and what happens when it uses one.

Every tool but `task_complete` is a call of the sandbox's HTTP API. Whatever goes wrong comes back as the tool's
message, so that the agent can try something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from guarantee_email_agent.utils.errors import AgentError

TASK_COMPLETE: Final = "task_complete"
MAX_MESSAGE_CHARACTERS: Final = 30_000
"""Of a longer message an agent sees the beginning and the end."""

_JSON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that an agent wants used. problem: why it cannot be, where that is known before."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for the model to look at. media_type: such as `image/png`."""

    media_type: str
    base64: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call. done: the agent says that its task is done. error: the message tells what went wrong."""

    call: ToolCall
    message: str
    done: bool = False
    error: bool = False
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One argument of a tool. type: as JSON Schema names it."""

    type: str
    description: str
    required: bool = True
    choices: tuple[str, ...] = ()
    items: str | None = None

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self.type, "description": self.description}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.items is not None:
            schema["items"] = {"type": self.items}
        return schema

    def problem(self, value: object) -> str | None:
        """What is wrong with a value."""
        fits = isinstance(value, _JSON_TYPES[self.type]) and (self.type == "boolean") == isinstance(value, bool)
        if not fits:
            return f"must be of type {self.type}, not {_type_of(value)}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r:.60}"
        if self.items is not None and isinstance(value, (list, tuple)):
            wanted = ToolParameter(self.items, "")
            return next((f"holds an item that {wrong}" for item in value if (wrong := wanted.problem(item))), None)
        return None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool says."""

    message: str
    image: Image | None = None


# (sandbox, arguments, seconds that are left) -> what the agent is told. Raises AgentError.
ToolFunction = Callable[[Any, Mapping[str, Any], float], ToolOutput]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as an agent knows it. action_type: what the trace calls it, if not by its name."""

    name: str
    description: str
    parameters: Mapping[str, ToolParameter] = field(default_factory=dict)
    run: ToolFunction | None = None
    action_type: str = ""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: parameter.schema() for name, parameter in self.parameters.items()},
            "required": [name for name, parameter in self.parameters.items() if parameter.required],
            "additionalProperties": False,
        }

    def problem(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with the arguments of a call, all of it."""
        wrong = [
            f"{name} is missing" for name, known in self.parameters.items() if known.required and name not in arguments
        ]
        for name, value in arguments.items():
            if (known := self.parameters.get(name)) is None:
                wrong.append(f"there is no argument {name!r:.60}; known: {', '.join(self.parameters) or 'none'}")
            elif problem := known.problem(value):
                wrong.append(f"{name} {problem}")
        return "; ".join(wrong) or None


class Toolset:
    """The tools of one task, with the sandbox that they act in."""

    def __init__(self, tools: tuple[Tool, ...], sandbox: Any) -> None:
        self.all = tools
        self._by_name = {tool.name: tool for tool in tools}
        self.sandbox = sandbox

    def use(self, call: ToolCall, timeout_s: float) -> ToolResult:
        """What came of a call, which may take `timeout_s` seconds. Never raises for what the agent did wrong."""
        tool = self._by_name.get(call.name)
        if tool is None:
            return ToolResult(
                call, f"There is no tool {call.name!r:.80}. Tools: {', '.join(self._by_name)}", error=True
            )
        if problem := call.problem or tool.problem(call.arguments):
            return ToolResult(call, f"{call.name}: {problem}", error=True)
        if tool.run is None:
            return ToolResult(call, call.arguments["result"], done=True)
        try:
            answer = tool.run(self.sandbox, call.arguments, timeout_s)
        except AgentError as error:
            return ToolResult(call, _shortened(f"{call.name}: {error.message}"), error=True)
        return ToolResult(call, _shortened(answer.message), image=answer.image)

    def completes(self, call: ToolCall) -> bool:
        """Whether a call says that the task is done."""
        return call.name == TASK_COMPLETE

    def action(self, call: ToolCall) -> dict[str, Any]:
        """The call as the trace holds it."""
        tool = self._by_name.get(call.name)
        name = tool.action_type or tool.name if tool else call.name
        return {"action_type": name, **{key: value for key, value in call.arguments.items() if key != "action_type"}}


def _shortened(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    half = MAX_MESSAGE_CHARACTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _type_of(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return next((name for name, types in _JSON_TYPES.items() if isinstance(value, types)), "object")

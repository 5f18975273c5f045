"""The tools of an agent: how each is described to it, and what happens when it calls one.

Every tool but `task_complete` is a call of the sandbox's HTTP API. Whatever goes wrong comes back as the result's
message, so that the agent can try something else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.utils.errors import AgentError, TaskError
from guarantee_email_agent.utils.text import head_and_tail

TASK_COMPLETE: Final = "task_complete"
MAX_MESSAGE_CHARACTERS: Final = 30_000
"""Of a longer message an agent sees the beginning and the end."""

MAX_IMAGE_BYTES: Final = 5_000_000
"""What the Messages API takes for one picture."""

_JSON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
}
_IMAGE_TYPES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that an agent calls. problem: why it cannot be carried out, where that is known before."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for the model to look at. media_type: such as `image/png`."""

    media_type: str
    content: bytes

    @classmethod
    def parse(cls, content: bytes, name: str) -> Image:
        """Raises TaskError for what is no picture, or too large."""
        media_type = next((kind for start, kind in _IMAGE_TYPES.items() if content.startswith(start)), None)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            media_type = "image/webp"
        if media_type is None:
            raise TaskError(f"{name} is no PNG, JPEG, GIF or WebP picture", "tool_no_image")
        if len(content) > MAX_IMAGE_BYTES:
            raise TaskError(
                f"{name} has {len(content)} bytes; make it smaller than {MAX_IMAGE_BYTES}", "tool_image_too_large"
            )
        return cls(media_type, content)

    @property
    def base64(self) -> str:
        return base64.b64encode(self.content).decode("ascii")

    @property
    def description(self) -> str:
        return f"[{self.media_type}, {len(self.content)} bytes]"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call. done: the agent says that its task is done. error: the message tells what went wrong."""

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
        enum = {"enum": list(self.choices)} if self.choices else {}
        items = {"items": {"type": self.items}} if self.items is not None else {}
        return {"type": self.type, "description": self.description, **enum, **items}

    def problem(self, value: object) -> str | None:
        """What is wrong with a value."""
        if not isinstance(value, _JSON_TYPES[self.type]) or (self.type == "boolean") != isinstance(value, bool):
            return f"must be of type {self.type}, not {_type_name(value)}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r:.60}"
        if self.items is not None and isinstance(value, (list, tuple)):
            items = ToolParameter(self.items, "")
            return next((f"holds an item that {wrong}" for item in value if (wrong := items.problem(item))), None)
        return None


string: Final = partial(ToolParameter, "string")
integer: Final = partial(ToolParameter, "integer")
boolean: Final = partial(ToolParameter, "boolean", required=False)

# (sandbox, arguments, seconds that are left) -> what the agent gets. Raises AgentError.
ToolFunction = Callable[[SandboxClient, Mapping[str, Any], float], str | Image]


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

    def __init__(self, tools: tuple[Tool, ...], sandbox: SandboxClient) -> None:
        self.all = tools
        self._by_name = {tool.name: tool for tool in tools}
        self.sandbox = sandbox

    def use(self, call: ToolCall, timeout_s: float) -> ToolResult:
        """Carry out a call, which may take `timeout_s` seconds. Never raises for what the agent did wrong."""
        if (tool := self._by_name.get(call.name)) is None:
            known = ", ".join(self._by_name)
            return ToolResult(call, f"There is no tool {call.name!r:.80}. Tools: {known}", error=True)
        if problem := call.problem or tool.problem(call.arguments):
            return ToolResult(call, f"{call.name}: {problem}", error=True)
        if tool.run is None:
            return ToolResult(call, call.arguments["result"], done=True)
        try:
            output = tool.run(self.sandbox, call.arguments, timeout_s)
        except AgentError as error:
            message = head_and_tail(f"{call.name}: {error.message}", MAX_MESSAGE_CHARACTERS)
            return ToolResult(call, message, error=True)
        if isinstance(output, Image):
            return ToolResult(call, output.description, image=output)
        return ToolResult(call, head_and_tail(output, MAX_MESSAGE_CHARACTERS))

    def action(self, call: ToolCall) -> dict[str, Any]:
        """The call as the trace holds it."""
        tool = self._by_name.get(call.name)
        name = tool.action_type or tool.name if tool else call.name
        return {"action_type": name, **{key: value for key, value in call.arguments.items() if key != "action_type"}}


def to_text(data: Any) -> str:
    """Data from the sandbox as text for an agent."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=1)


def _type_name(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return next((name for name, types in _JSON_TYPES.items() if isinstance(value, types)), "object")

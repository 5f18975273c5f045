"""What an agent may do wrong with a tool, and what it is text."""

from collections.abc import Mapping
from typing import Any

import pytest

from guarantee_email_agent.solving.tools import MAX_MESSAGE_CHARACTERS, Tool, ToolCall, ToolParameter, Toolset

ECHO = Tool(
    "echo",
    "Say it.",
    {
        "text": ToolParameter("string", "It."),
        "times": ToolParameter("integer", "How often.", required=False),
        "how": ToolParameter("string", "How.", required=False, choices=("loud", "low")),
        "lines": ToolParameter("array", "Which.", required=False, items="integer"),
    },
    lambda _sandbox, arguments, _timeout_s: str(arguments["text"] * arguments.get("times", 1)),
    action_type="say",
)
COMPLETE = Tool("task_complete", "End.", {"result": ToolParameter("string", "Answer.")})
NO_SANDBOX: Any = None
TOOLS = Toolset((ECHO, COMPLETE), NO_SANDBOX)


def message(name: str, problem: str | None = None, **arguments: Any) -> tuple[bool, str]:
    result = TOOLS.use(ToolCall("1", name, arguments, problem), 1.0)
    return result.error, result.message


def test_a_call_says_what_came_of_it() -> None:
    assert message("echo", text="ab", times=2) == (False, "abab")
    assert message("task_complete", result="42") == (False, "42")
    assert message("echo", "it was cut off", text="a") == (True, "echo: it was cut off")
    assert message("shout", text="a") == (True, "There is no tool 'shout'. Tools: echo, task_complete")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "text is missing"),
        ({"text": 1}, "text must be of type string, not integer"),
        ({"text": None}, "text must be of type string, not null"),
        ({"text": "a", "times": "2"}, "times must be of type integer, not string"),
        ({"text": "a", "times": True}, "times must be of type integer, not boolean"),
        ({"text": "a", "times": 1.5}, "times must be of type integer, not number"),
        ({"text": "a", "how": "high"}, "how must be one of loud, low, not 'high'"),
        ({"text": "a", "lines": [1, "2"]}, "lines holds an item that must be of type integer, not string"),
        ({"text": "a", "lines": {}}, "lines must be of type array, not object"),
        ({"txt": "a"}, "text is missing; there is no argument 'txt'; known: text, times, how, lines"),
    ],
)
def test_wrong_arguments_are_named_all_at_once(arguments: Mapping[str, Any], problem: str) -> None:
    assert message("echo", **arguments) == (True, f"echo: {problem}")


def test_long_message_keeps_beginning_and_end() -> None:
    _, text = message("echo", text="a" + "x" * MAX_MESSAGE_CHARACTERS + "z")
    assert len(text) < MAX_MESSAGE_CHARACTERS + 100
    assert text.startswith("ax")
    assert "[… 2 characters left out …]" in text
    assert text.endswith("xz")


def test_action_has_the_type_that_the_trace_uses() -> None:
    call = ToolCall("1", "echo", {"text": "a", "action_type": "forged"})
    assert TOOLS.action(call) == {"action_type": "say", "text": "a"}
    assert TOOLS.action(ToolCall("1", "shout", {"text": "a"})) == {"action_type": "shout", "text": "a"}


def test_schema_is_closed_and_names_what_is_required() -> None:
    assert ECHO.schema() == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "It."},
            "times": {"type": "integer", "description": "How often."},
            "how": {"type": "string", "description": "How.", "enum": ["loud", "low"]},
            "lines": {"type": "array", "description": "Which.", "items": {"type": "integer"}},
        },
        "required": ["text"],
        "additionalProperties": False,
    }

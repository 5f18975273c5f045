"""A person at a real terminal, played by the test at its other end."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest
from tasks_and_sandboxes import task_context

from guarantee_email_agent.solving.agents.agent import AgentStepError
from guarantee_email_agent.solving.agents.human_agent import HumanAgent
from guarantee_email_agent.solving.tools import ToolCall, ToolResult


class Person:
    """Types at one end of a terminal whose other end the agent reads; `seen` is what it shows."""

    def __init__(self, stdin: TextIO, keyboard: int) -> None:
        self.stdin = stdin
        self._keyboard = keyboard
        self.seen = ""

    def types(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def see(self, text: str) -> None:
        self.seen += text

    def agent(self, seconds: float = 30.0) -> HumanAgent:
        return HumanAgent(task_context("Add 40\x1b[2J and 2.", seconds), self.stdin, self.see)


@pytest.fixture
def person() -> Iterator[Person]:
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal, encoding="utf-8") as stdin:
        yield Person(stdin, keyboard)
    os.close(keyboard)


def test_instruction_and_help_are_shown_and_cannot_steer_the_terminal(person: Person) -> None:
    person.agent()
    assert "Add 40\\x1b[2J and 2." in person.seen
    assert ":done ANSWER" in person.seen


@pytest.mark.parametrize(
    ("typed", "name", "arguments"),
    [
        ("\nls -l /\n", "shell_execute", {"command": "ls -l /"}),
        (':file_list {"path": "/"}\n', "file_list", {"path": "/"}),
        (":done\nfirst\n\nsecond ü\n.\n", "task_complete", {"result": "first\n\nsecond ü"}),
    ],
    ids=["command", "tool", "answer-of-several-lines"],
)
def test_what_is_typed_is_a_call(person: Person, typed: str, name: str, arguments: dict[str, str]) -> None:
    person.types(typed)
    (call,) = person.agent().next_step(()).calls
    assert (call.name, call.arguments) == (name, arguments)


def test_slips_are_explained_and_asked_again(person: Person) -> None:
    person.types(":nonesuch\n:file_list {path}\n:file_list [1]\n:tools\n:done 42\n")
    person.agent().next_step(())
    assert "There is no tool nonesuch." in person.seen
    assert "That is no JSON" in person.seen
    assert "Arguments have names" in person.seen
    assert "file_list(path, recursive, show_hidden)" in person.seen


def test_outcome_is_shown(person: Person) -> None:
    person.types(":done 42\n")
    person.agent().next_step([ToolResult(ToolCall("1", "shell_execute", {}), "a file\x07\nanother")])
    assert "a file\\x07\nanother\n" in person.seen


@pytest.mark.parametrize(
    ("typed", "seconds", "code"), [(":quit\n", 30.0, "gave_up"), ("\x04", 30.0, "gave_up"), ("", 0.1, "wall_time")]
)
def test_person_gives_up_or_is_not_waited_for(person: Person, typed: str, seconds: float, code: str) -> None:
    person.types(typed)
    with pytest.raises(AgentStepError) as caught:
        person.agent(seconds).next_step(())
    assert caught.value.code == code

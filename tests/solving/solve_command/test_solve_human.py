"""A person at a terminal works on a task; the terminal is a pseudo terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tasks_and_sandboxes import MakeTask, SolveFolders
from waiting import PATIENCE_S


class Person:
    """Types lines, each when it was asked for one."""

    def __init__(self, command: list[str], terminal: int, theirs: int) -> None:
        self._terminal = terminal
        self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        self.seen = ""

    def type(self, line: str, prompt: str = "> ") -> None:
        self._read(lambda: self.seen.endswith(prompt))
        os.write(self._terminal, f"{line}\n".encode())

    def end(self) -> int:
        """The exit code."""
        self._read(lambda: self._process.poll() is not None)
        return self._process.returncode

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < deadline, self.seen
            if select.select([self._terminal], [], [], 0.05)[0]:
                self.seen += os.read(self._terminal, 65536).decode()


@pytest.fixture
def command(make_task: MakeTask, tmp_path: Path) -> list[str]:
    options = ["--agent", "human", "--output-dir", str(tmp_path / "results")]
    return [sys.executable, "-m", "guarantee_email_agent", "solve", str(make_task().directory), *options]


@pytest.fixture
def person(command: list[str]) -> Iterator[Person]:
    terminal, theirs = pty.openpty()
    person = Person(command, terminal, theirs)
    yield person
    person.close()
    os.close(theirs)
    os.close(terminal)


def test_person_solves_a_task(person: Person, tmp_path: Path) -> None:
    person.type("echo $((40 + 2)) | tee sum.txt")
    person.type(':file_read {"file": "/home/gem/sum.txt"}')
    person.type("printf '\\033]0;title\\007'")
    person.type(":file_raed {}")
    person.type(":done")
    person.type("42", "… ")
    person.type(".", "… ")
    assert person.end() == 0
    assert "Add 40 and 2." in person.seen
    assert "There is no tool file_raed" in person.seen
    assert "\x1b]0;" not in person.seen
    trace = SolveFolders(tmp_path).record("sum")["execution_trace"]
    assert [step["action"]["action_type"] for step in trace] == ["shell", "file_read", "shell", "task_complete"]
    assert [step["feedback"]["message"].strip() for step in trace[:2]] == ["42", "42"]


def test_person_gives_up(person: Person, tmp_path: Path) -> None:
    person.type(":quit")
    assert person.end() == 4
    assert SolveFolders(tmp_path).record("sum")["reason"]["code"] == "gave_up"


def test_without_a_terminal_nobody_can_be_asked(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "--agent human needs a terminal" in done.stderr

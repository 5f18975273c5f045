"""A person at a terminal works on a task; the terminal is a pseudo terminal, and all lines are typed ahead."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tasks_and_sandboxes import MakeTask, SolveFolders
from waiting import PATIENCE_S


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["echo $((40 + 2)) | tee sum.txt", ':file_read {"file": "/home/gem/sum.txt"}', ":done", "42", "."], 0),
        ([":quit"], 4),
    ],
    ids=["solved", "given up"],
)
def test_a_person_works_on_a_task(make_task: MakeTask, tmp_path: Path, typed: list[str], code: int) -> None:
    options = ["--agent", "human", "--output-dir", str(tmp_path / "results")]
    command = [sys.executable, "-m", "guarantee_email_agent", "solve", str(make_task().directory), *options]
    terminal, theirs = pty.openpty()
    try:
        os.write(terminal, "".join(f"{line}\n" for line in typed).encode())
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    finally:
        os.close(terminal)
        os.close(theirs)
    assert done.returncode == code
    assert "Add 40 and 2." in done.stderr
    record = SolveFolders(tmp_path).record("sum")
    assert record["reason"] is None if code == 0 else record["reason"]["code"] == "gave_up"
    messages = [step["feedback"]["message"].strip() for step in record["execution_trace"]]
    assert messages == (["42", "42", "42"] if code == 0 else [])

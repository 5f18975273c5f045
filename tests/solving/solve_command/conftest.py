"""`solve` over a folder of tasks, with sandboxes that isolate nothing."""

import io
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import SolveFolders

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.solving.solve_command import SolveOptions, solve_command


class Bench(SolveFolders):
    def __init__(self, folder: Path, sandboxes: Any) -> None:
        super().__init__(folder)
        self.sandboxes = sandboxes
        self.config = Config()
        self.out = io.StringIO()

    def solve(self, **options: Any) -> int:
        self.out = io.StringIO()
        options = {"agent": "command", "command": "echo 42", **options}
        settings: dict[str, Any] = {"directory": self.tasks, "output_dir": self.results, **options}
        return solve_command(
            SolveOptions(**settings),
            self.out,
            io.StringIO(),
            load_config=lambda: self.config,
            started=lambda: "2026-01-18T10:00:00Z",
            open_sandbox=self.sandboxes,
        )


@pytest.fixture
def bench(tmp_path: Path, sandboxes: Any) -> Bench:
    return Bench(tmp_path, sandboxes)

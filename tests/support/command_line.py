"""The program as its users meet it: a process of its own, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

MODULE = [sys.executable, "-m", "guarantee_email_agent"]
SETTINGS = (
    "CONFIG_PATH",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "NO_COLOR",
    "TERM",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "GITLAB_CI",
)
TIMEOUT_S = 600
NEVER_OFFLINE = {"anthropic", "openai", "mcp", "yaml", "starlette", "httpx", "pydantic", "aiohttp", "uvicorn", "docker"}
LIST_MODULES = """
import sys
from guarantee_email_agent.cli import run
code = run(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteSuite = Callable[..., Path]


def environment(**more: str) -> dict[str, str]:
    """Ours without any setting of the agent."""
    plain = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return {**plain, "PYTHONIOENCODING": "utf-8", **more}


def run_program(
    folder: Path,
    *arguments: str | Path,
    program: Sequence[str] = MODULE,
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """The program from start to end in `folder`, with all of its output."""
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(
        [*program, *map(str, arguments)],
        cwd=folder,
        env=environment(**(env or {})),
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
        **(options | more),
    )


def modules_of(run: Run, *arguments: str | Path) -> set[str]:
    """What a command that ends in 0 loads."""
    done = run(*arguments, program=[sys.executable, "-c", LIST_MODULES])
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the program in an empty folder."""
    return lambda *arguments, **more: run_program(tmp_path, *arguments, **more)


@pytest.fixture
def suite(tmp_path: Path) -> WriteSuite:
    """Writes a folder of scenarios of which so many pass, and so many fail."""
    from scenario_folder import ScenarioFolder, failing

    from guarantee_email_agent.config.settings import Config

    def write(passing: int, failed: int = 0) -> Path:
        folder = ScenarioFolder(tmp_path / "scenarios", Config())
        for number in range(1, passing + failed + 1):
            folder.write(number, failing if number > passing else str, digits=5)
        return folder.folder

    return write

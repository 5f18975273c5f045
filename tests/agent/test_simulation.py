"""Simulated histories: the agent's promises hold in each of them, and bugs planted on purpose are found."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

SUPPORT = Path(__file__).parents[1] / "support"
PACKAGE = Path(__file__).parents[2] / "src" / "guarantee_email_agent"
HISTORIES = 2_000
PARTS = 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_invariant_holds(part: int) -> None:
    size = HISTORIES // PARTS
    done = _simulate("--first", str(part * size), "--histories", str(size))
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_seed_replays_exactly() -> None:
    trace, other = (_simulate("--seed", "112", PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert len(trace.splitlines()) > 20
    assert other == trace
    program = "from simulation.__main__ import main; main(['--seed', '5']); print('next'); main(['--seed', '112'])"
    after_another = _run("-c", program).stdout
    assert after_another.partition("next\n")[2] == trace


BUGS = yaml.safe_load(Path(__file__).with_name("planted_bugs.yaml").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=[bug["name"] for bug in BUGS])
def test_a_planted_bug_is_found(bug: dict[str, Any], tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copy)
    text = (copy / bug["file"]).read_text(encoding="utf-8")
    assert text.count(bug["before"]) == 1
    (copy / bug["file"]).write_text(text.replace(bug["before"], bug["after"]), encoding="utf-8")
    histories = ("--first", str(bug.get("first", 0)), "--histories", str(HISTORIES), "--max-failures", "1")
    done = _simulate(*histories, PYTHONPATH=f"{tmp_path}{os.pathsep}{SUPPORT}")
    assert done.returncode == 4, done.stdout


def _simulate(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since it replaces functions of the agent, and holds back the collection of garbage."""
    return _run("-m", "simulation", "--jobs", "1", *options, **environment)


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(SUPPORT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

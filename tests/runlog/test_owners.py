"""A run has an owner for as long as a process works on it, and looking whether it has one changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guarantee_email_agent.runlog.database import RunOwners


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_to_look_makes_no_file_and_releases_nothing_of_ours(file: Path) -> None:
    owners = RunOwners.beside(file)
    assert not owners.is_alive(1)
    assert list(file.parent.iterdir()) == []
    owners.claim(1)
    owners.claim(2)
    assert not owners.is_alive(3)
    look = f"""
from pathlib import Path
from guarantee_email_agent.runlog.database import RunOwners

owners = RunOwners.beside(Path({str(file)!r}))
print([owners.is_alive(number) for number in (1, 2, 3)])
"""
    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    owners.release(1)
    then = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    owners.release(2)
    assert (seen, then) == ("[True, True, False]\n", "[False, True, False]\n")

"""What an evaluation costs, in function calls and modules: a count is the same on a busy machine, a time is not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shipped_instructions import SHIPPED

pytestmark = pytest.mark.slow

_COUNTED = """
import sys, threading
calls = 0
def count(frame, event, argument):
    global calls
    calls += event == "call" and "guarantee_email_agent" in frame.f_code.co_filename
threading.setprofile(count)
sys.setprofile(count)
from guarantee_email_agent.cli import run
code = run(sys.argv[1:])
sys.setprofile(None)
print(code, calls, sum(name.startswith("guarantee_email_agent") for name in sys.modules), file=sys.stderr)
"""

MAX_CALLS_A_SCENARIO = 1_160
MAX_CALLS_AT_THE_START = 145_000
"""Above all of reading the instruction files and compiling their phrases."""
MAX_MODULES = 110


def test_an_evaluation_stays_within_its_budget(tmp_path: Path) -> None:
    few, many = _counted(tmp_path / "few", every=1_000), _counted(tmp_path / "many", every=1)
    calls_a_scenario = (many[0] - few[0]) / (many[1] - few[1])
    assert calls_a_scenario <= MAX_CALLS_A_SCENARIO
    assert few[0] - calls_a_scenario * few[1] <= MAX_CALLS_AT_THE_START
    assert many[2] <= MAX_MODULES


def _counted(folder: Path, *, every: int) -> tuple[int, int, int]:
    """Calls, scenarios and modules of a run of some of the shipped scenarios, so of the real mix of mails."""
    folder.mkdir()
    suite = SHIPPED.parent / "evals" / "scenarios"
    for file in (*sorted(suite.rglob("*_[0-9]*.yaml"))[::every], *suite.rglob("*.eml")):
        shutil.copy(file, folder)
    done = subprocess.run(
        [sys.executable, "-c", _COUNTED, "eval", "--no-store", "--eval-dir", folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=SHIPPED.parent,
    )
    code, calls, modules = map(int, done.stderr.splitlines()[-1].split())
    assert code == 0, done.stdout
    return calls, len(list(folder.glob("*.yaml"))), modules

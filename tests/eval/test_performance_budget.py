"""What an evaluation costs, in function calls and modules: a count is the same on a busy machine, a time is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from shipped_instructions import SHIPPED

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

MAX_CALLS_A_SCENARIO = 2_100
MAX_CALLS_AT_THE_START = 295_000
"""Above all of reading the instruction files and compiling their phrases."""
MAX_MODULES = 128


def test_an_evaluation_stays_within_its_budget(tmp_path: Path) -> None:
    every_24th, every_12th = _counted(tmp_path / "few", 24), _counted(tmp_path / "many", 12)
    scenarios = len(list((tmp_path / "many").iterdir())) - len(list((tmp_path / "few").iterdir()))
    calls_a_scenario = (every_12th[0] - every_24th[0]) / scenarios
    calls_at_the_start = every_24th[0] - calls_a_scenario * len(list((tmp_path / "few").iterdir()))
    assert calls_a_scenario <= MAX_CALLS_A_SCENARIO
    assert calls_at_the_start <= MAX_CALLS_AT_THE_START
    assert every_12th[1] <= MAX_MODULES


def _counted(folder: Path, step: int) -> tuple[int, int]:
    """Calls and modules of a run of every `step`th shipped scenario, so of the real mix of mails."""
    folder.mkdir()
    for file in sorted((SHIPPED.parent / "evals" / "scenarios").glob("*.yaml"))[::step]:
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
    return calls, modules

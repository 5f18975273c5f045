"""One fault tried: planted in a copy of the project, on which the suite runs, and where it is silent tests."""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from faults.fault import TESTS, Outcome
from faults.sampling import PACKAGE
from guarantee_email_agent.eval.mutation.instruction_faults import Fault

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120  # a fault may loop

# Runs the suite in a process of its own, without the terminal, and says which scenario failed first.
DRIVER = """
import sys
from pathlib import Path
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.runner import EvalRunner

def finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a scenario waited for something")

runner = EvalRunner(load_config())
entries = EvalLoader().discover_test_cases(Path("evals/scenarios")).entries
for number in range(7):  # every seventh at a time: neighbours resemble each other
    for case in entries[number::7]:
        if not hasattr(case, "input") or not finish(runner.run_test_case(case)).passed:
            sys.exit("failed: " + case.scenario_id)
print("survived")
"""


def copy_project(folder: Path) -> Path:
    for name in ("src", "instructions", "evals", "tests", "tasks", "docs", "benchmarks", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("config.yaml", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    # By content: two faults within one second, of one size, would pass for one another by time.
    compileall.compile_dir(folder / "src", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return folder


def mirrored_tests(file: str, root: Path = ROOT) -> list[str]:
    """The test files of a module, by their paths; those of its package where none is called after it."""
    if not file.endswith(".py"):
        return ["tests/instructions", "tests/email"]
    package, module = root / "tests" / Path(file).parent.relative_to(PACKAGE), Path(file).stem
    mirrored = [
        *package.glob(f"test_{module}.py"),
        *package.glob(f"test_{module}_*.py"),
        *(package / module).glob("test_*.py"),
    ]
    return [path.relative_to(root).as_posix() for path in sorted(mirrored) or [package]]


class Trial:
    """Tries faults one at a time in a copy of the project, which has none in between."""

    def __init__(self, copy: Path) -> None:
        """copy: the folder that the project is copied to."""
        self._copy = copy_project(copy)
        self._healthy: set[tuple[str, ...]] = set()

    def try_fault(self, fault: Fault, tests: Sequence[str] = ()) -> Outcome:
        """What notices the fault: the suite, and where it is silent `tests`, paths from the project's root.

        Raises RuntimeError where the tests fail without any fault.
        """
        noticed = self._with_fault(fault, self.first_failure)
        if noticed is None and tests:
            if tuple(tests) not in self._healthy and self._failing_tests(tests) is not None:
                raise RuntimeError(f"These tests fail without any fault: {' '.join(tests)}. Mend them first.")
            self._healthy.add(tuple(tests))
            noticed = self._with_fault(fault, lambda: self._failing_tests(tests))
        return Outcome(fault.key, fault.file, fault.operator, fault.line, fault.before, fault.after, noticed)

    def first_failure(self) -> str | None:
        """The first scenario that fails, or how the suite stopped; None where all pass."""
        done = _run([sys.executable, "-c", DRIVER], self._copy)
        if done.returncode == 0 and done.stdout.strip().endswith("survived"):
            return None
        last = (done.stderr.strip().splitlines() or ["no words"])[-1]
        return last.removeprefix("failed: ") if last.startswith("failed: ") else f"stopped: {last[:200]}"

    def _failing_tests(self, tests: Sequence[str]) -> str | None:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
        return TESTS if _run(command, self._copy).returncode else None

    def _with_fault(self, fault: Fault, notice: Callable[[], str | None]) -> str | None:
        path = self._copy / fault.file
        good = path.read_text(encoding="utf-8")
        path.write_text(fault.planted_in(good), encoding="utf-8")
        try:
            return notice()
        except subprocess.TimeoutExpired:
            return "deadline"
        finally:
            path.write_text(good, encoding="utf-8")


def _run(command: Sequence[str], copy: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("CONFIG_PATH", None)
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )

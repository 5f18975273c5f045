"""Time of `grade` as a whole process: a folder of small tasks, every record judged in a process of its own.

uv run python benchmarks/bench_grade.py [--sizes 1 100 1000 10000] [--jobs 1 2] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

SIZES = (1, 100, 1_000, 10_000)
JOBS = (1, 2)
RUNS = 3

TASK = """\
instruction: |
  A customer bought {number} filters at {price} cents each. How many cents is that? Answer with the number alone.
number: {number}
price: {price}
"""
JUDGE = """\
import re


def test(result):
    wanted = result["number"] * result["price"]
    said = re.findall(r"[0-9]+", str(result["task_result"]))
    passed = said == [str(wanted)]
    return {"passed": passed, "feedback": f"said {said}, wanted {wanted}", "details": {"wanted": wanted}}
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="results in a folder")
    parser.add_argument("--jobs", type=int, nargs="+", default=JOBS, metavar="N", help="judges at a time")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"runs of each; default: {RUNS}")
    options = parser.parse_args(arguments)
    print(f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}, {_cores()} cores, ", end="")
    print(f"median of {options.runs} run{'' if options.runs == 1 else 's'} as a whole process\n")
    print(f"{'results':>8}  {'jobs':>4}  {'wall s':>7}  {'ms a result':>11}  {'results a minute':>16}")
    with tempfile.TemporaryDirectory() as place:
        for size in options.sizes:
            tasks, records = _suite(Path(place), size)
            for jobs in options.jobs:
                wall_s = statistics.median(_run(tasks, records, jobs) for _ in range(options.runs))
                each_ms, in_a_minute = 1000 * wall_s / size, 60 * size / wall_s
                print(f"{size:>8,}  {jobs:>4}  {wall_s:>7.2f}  {each_ms:>11.2f}  {in_a_minute:>16,.0f}", flush=True)
    return 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _suite(place: Path, size: int) -> tuple[Path, Path]:
    tasks, records = place / f"tasks_{size}", place / f"records_{size}"
    records.mkdir()
    for number in range(1, size + 1):
        folder = tasks / f"filters_{number:05d}"
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(TASK.format(number=number, price=150), encoding="utf-8")
        (folder / "test.py").write_text(JUDGE, encoding="utf-8")
        record = {"task_result": f"{150 * number}", "conversation": [{"role": "user", "content": "How many?"}]}
        (records / f"{folder.name}.json").write_text(json.dumps(record), encoding="utf-8")
    return tasks, records


def _run(tasks: Path, records: Path, jobs: int) -> float:
    """Seconds. Raises SystemExit, with what was printed, where not everything passed: a failed run has no speed."""
    command: list[str | Path] = [sys.executable, "-m", "guarantee_email_agent", "grade", tasks, "--results", records]
    command += ["--jobs", str(jobs)]
    started = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = perf_counter() - started
    if done.returncode != 0:
        raise SystemExit(f"grade ended with exit code {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
    return wall_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

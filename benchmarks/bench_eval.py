"""Time, CPU and memory of `eval` as a whole process, beside peers that only load the YAML and compare a string.

    uv run --group bench python benchmarks/bench_eval.py [--sizes 1 50 1000 10000] [--runs 5]

Ours runs the whole mail pipeline for every scenario; the peers do the least that a suite can do.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

PEERS = Path(__file__).resolve().parent / "peers"
SIZES = (1, 50, 1_000, 10_000)
RUNS = 5
MIB = 1 << 20

SCENARIO = """\
---
scenario_id: valid_warranty_{number:05d}
description: "Customer {number} with a valid warranty reports a fault"
category: valid-warranty
created: 2026-01-18
---
input:
  email:
    subject: "Coffee machine no longer heats, request {number}"
    body: |
      Hello,

      my coffee machine stopped working on day {day} of this month: it no longer heats the water.
      The serial number on its type plate is SN{serial}. I bought it together with order {order}.
      Is it still under warranty, and what do I have to do next?

      Many thanks and kind regards
    from: "customer{number}@example.com"
    received: "2026-01-{day:02d}T10:00:00Z"
  mock_responses:
    warranty_api: {{status: "valid", expiration_date: "2027-12-{day:02d}", coverage: "full"}}
expected_output:
  email_sent: true
  response_body_contains: ["warranty is valid", "2027-12-{day:02d}", "SN{serial}"]
  response_body_excludes: ["expired", "not found"]
  ticket_created: true
  ticket_fields: {{serial_number: "SN{serial}", warranty_status: "valid"}}
  scenario_instruction_used: "valid-warranty"
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A command that runs the scenarios of `folder`."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took. wall_s, cpu_s: seconds. peak_bytes: the largest resident set."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="scenarios in a suite")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"runs of each; default: {RUNS}")
    options = parser.parse_args(arguments)
    core = _keep_to_one_core()
    print(f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}, {core}, ", end="")
    print(f"median of {options.runs} run{'' if options.runs == 1 else 's'} as a whole process\n")
    print(f"{'scenarios':>9}  {'program':<14} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9} {'wall, eval = 1':>15}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for size in options.sizes:
            scenarios = _suite(folder, size)
            ours: Cost | None = None
            for program in _programs(scenarios):
                cost = _median([_run(program, folder) for _ in range(options.runs + 1)][1:])  # the first warms caches
                ours = ours or cost
                print(
                    f"{size:>9,}  {program.name:<14} {cost.wall_s:>8.2f} {cost.cpu_s:>8.2f}"
                    f" {cost.peak_bytes / MIB:>9.0f} {cost.wall_s / ours.wall_s:>15.1f}",
                    flush=True,
                )
    return 0


def _programs(scenarios: Path) -> tuple[Program, ...]:
    python = sys.executable
    where = {"SCENARIOS": str(scenarios)}
    return (
        Program("eval", (python, "-m", "guarantee_email_agent", "eval", "--eval-dir", str(scenarios)), {}),
        Program("pydantic-evals", (python, str(PEERS / "pydantic_evals_peer.py")), where),
        Program(
            "pytest",
            # Nothing of ours and no plugin is to slow it down.
            (python, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", str(PEERS / "pytest_peer.py")),
            where | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        ),
    )


def _keep_to_one_core() -> str:
    """Children inherit it, so that CPU time and wall time can be compared."""
    if not hasattr(os, "sched_setaffinity"):
        return f"{os.cpu_count()} cores"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return "one core"


def _suite(folder: Path, size: int) -> Path:
    scenarios = folder / f"suite_{size}"
    scenarios.mkdir(exist_ok=True)
    for number in range(1, size + 1):
        text = SCENARIO.format(number=number, serial=400_000 + 7 * number, order=90_000 + number, day=1 + number % 28)
        (scenarios / f"valid_warranty_{number:05d}.yaml").write_text(text, encoding="utf-8")
    return scenarios


def _run(program: Program, folder: Path) -> Cost:
    """Raises SystemExit, with what the program printed, where it fails: a failed run has no speed.

    A child's peak begins at the size of the process that starts it, so nothing large may be imported here.
    """
    with tempfile.TemporaryFile() as output:
        started = perf_counter()
        process = subprocess.Popen(
            program.command,
            cwd=folder,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            shown = output.read()[-2000:].decode(errors="replace")
            raise SystemExit(f"{program.name} ended with exit code {process.returncode}:\n{shown}")
    peak_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, peak_bytes)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
        int(statistics.median(cost.peak_bytes for cost in costs)),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

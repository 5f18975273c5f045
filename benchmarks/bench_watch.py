"""How long after a save `eval --watch` prints what is different, for files that affect one, some and all scenarios.

    uv run python benchmarks/bench_watch.py [--saves 10]

On a copy of the built-in suite, in a process of its own, from the moment in which the file was written: the first line
that tells a difference, and the last line of the whole.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
SAVES = 10
FIFTY = 50


@dataclass(frozen=True, slots=True)
class Save:
    """name: of the row. edit: makes the save with that number. told: how a line begins that tells a difference."""

    name: str
    edit: Callable[[Path, int], None]
    told: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--saves", type=int, default=SAVES, metavar="N", help=f"saves of each kind; default: {SAVES}")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name in ("instructions", "evals/scenarios"):
            shutil.copytree(ROOT / name, project / name)
        print(f"{'saved':34}{'scenarios':>10}{'difference after s':>20}{'longest':>9}{'whole after s':>15}")
        with running(project) as output:
            for save in SAVES_BY_KIND:
                measure(project, save, options.saves, output)
    return 0


class running:  # noqa: N801 - a context manager that reads like a function
    """`eval --watch` in a folder, once it has run the whole suite."""

    def __init__(self, project: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "guarantee_email_agent", "eval", "--watch", "--quiet", "--no-store"],
            cwd=project,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def __enter__(self) -> IO[str]:
        assert self._process.stdout is not None
        list(lines_until(self._process.stdout, "Watching"))
        return self._process.stdout

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()


def lines_until(output: IO[str], text: str) -> Iterator[tuple[float, str]]:
    """Each line with the time at which it came, up to the one that holds `text`."""
    for line in output:
        yield perf_counter(), line
        if text in line:
            return
    raise SystemExit("eval --watch ended")


def measure(project: Path, save: Save, saves: int, output: IO[str]) -> None:
    firsts, wholes, count = [], [], ""
    for number in range(saves):
        save.edit(project, number)
        saved = perf_counter()
        lines = list(lines_until(output, " ran in "))
        firsts.append(next(at for at, line in lines if line.startswith(save.told)) - saved)
        wholes.append(lines[-1][0] - saved)
        count = lines[-1][1].rpartition("; ")[2].split()[0]
    row = f"{statistics.median(firsts):>20.2f}{max(firsts):>9.2f}{statistics.median(wholes):>15.2f}"
    print(f"{save.name:34}{count:>10}{row}", flush=True)


def swap(path: Path, number: int, one: str, other: str) -> None:
    """Write the file with one of two texts, in turn, as editors do: into another file, which takes its place."""
    text = path.read_text(encoding="utf-8")
    new = text.replace(one, other) if number % 2 == 0 else text.replace(other, one)
    if new == text:
        raise SystemExit(f"{path.name} does not hold {one if number % 2 == 0 else other!r}")
    beside = path.with_suffix(".tmp")
    beside.write_text(new, encoding="utf-8")
    os.replace(beside, path)


def one_scenario(project: Path, number: int) -> None:
    swap(project / "evals/scenarios/valid_warranty_001.yaml", number, '"warranty is valid"', '"no such phrase"')


def fifty_scenarios(project: Path, number: int) -> None:
    shipped = sorted((ROOT / "evals/scenarios").rglob("valid_warranty_*.yaml"))
    answered = [path.relative_to(ROOT) for path in shipped if "email_sent: true" in path.read_text(encoding="utf-8")]
    for name in answered[:FIFTY]:
        swap(project / name, number, "email_sent: true", "email_sent: false")


def instruction(project: Path, number: int) -> None:
    swap(project / "instructions/scenarios/missing-info.md", number, "next to the bar code", "beside the bar code")


def main_instruction(project: Path, number: int) -> None:
    swap(project / "instructions/main.md", number, "</topic>", "</topic> ")


def lexicon(project: Path, number: int) -> None:
    swap(project / "instructions/lexicon/en.md", number, "serial num, serial number*, ", "serial num, ")


SAVES_BY_KIND = (
    Save("a scenario", one_scenario, ("✗", "    valid_warranty_001")),
    Save(f"{FIFTY} scenarios at once", fifty_scenarios, ("✗", "    valid_warranty")),
    Save("an instruction: changed replies", instruction, ("    missing_info",)),
    Save("a lexicon file: other readings", lexicon, ("✗ ", "    ")),
    Save("an instruction: no difference", main_instruction, ("✓ No difference",)),
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

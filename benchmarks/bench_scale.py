"""Time, memory and store of `eval` as a suite grows: one process, two, and a Ray cluster of two nodes on this machine.

    uv run --extra ray python benchmarks/bench_scale.py [--sizes 1 50 1000 10000] [--no-ray]

Every scenario is a mail of its own. The whole mail pipeline runs, and every run is kept in a store of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench_eval import SCENARIO

SIZES = (1, 50, 1_000, 10_000)
MIB = 1 << 20
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 200 << 20}
cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **node})
cluster.add_node(**node)
print("address", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Cost:
    """wall_s, cpu_s: seconds, of our process and those that it waited for. store_bytes: of its store."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    store_bytes: int


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="scenarios in a suite")
    parser.add_argument("--no-ray", action="store_true", help="without the cluster")
    options = parser.parse_args(arguments)
    print(f"{'scenarios':>9}  {'where':<10} {'wall s':>8} {'CPU s':>8} {'ms each':>8} {'peak MiB':>9} {'store MB':>9}")
    with tempfile.TemporaryDirectory() as place, _ways(ray=not options.no_ray) as ways:
        for size in options.sizes:
            suite = _suite(Path(place) / f"suite_{size}", size)
            for name, (more, environment) in ways.items():
                cost = _run(Path(place), suite, more, environment)
                each = 1000 * cost.wall_s / size
                print(
                    f"{size:>9,}  {name:<10} {cost.wall_s:>8.2f} {cost.cpu_s:>8.2f} {each:>8.2f}"
                    f" {cost.peak_bytes / MIB:>9.0f} {cost.store_bytes / 1e6:>9.1f}",
                    flush=True,
                )
    return 0


@contextmanager
def _ways(*, ray: bool) -> Iterator[Mapping[str, tuple[Sequence[str], Mapping[str, str]]]]:
    """Further options and variables of `eval`, by what the table calls them."""
    ways: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {"local": ((), {}), "--jobs 2": (("--jobs", "2"), {})}
    if not ray:
        yield ways
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with _cluster() as address:
        yield ways | {"ray": (("--executor", "ray"), {"RAY_ADDRESS": address})}


@contextmanager
def _cluster() -> Iterator[str]:
    """Its address. In a process of its own: a child's peak begins at the size of the process that starts it."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield next(line.split()[1] for line in process.stdout if line.startswith("address "))
    finally:
        process.stdin.close()
        process.wait()


def _suite(folder: Path, size: int) -> Path:
    folder.mkdir()
    for number in range(1, size + 1):
        text = SCENARIO.format(number=number, serial=400_000 + 7 * number, order=90_000 + number, day=1 + number % 28)
        # A word that no other mail has: numbers alone make no distinct mail.
        word = "".join(LETTERS[int(digit)] for digit in str(number))
        text = text.replace("my coffee machine", f"my coffee machine zq{word}")
        (folder / f"valid_warranty_{number:05}.yaml").write_text(text, encoding="utf-8")
    return folder


def _run(place: Path, suite: Path, more: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Raises SystemExit, with what the program printed, where it fails: a failed run has no cost."""
    with tempfile.TemporaryDirectory(dir=place) as folder, tempfile.TemporaryFile() as output:
        (Path(folder) / "config.yaml").touch()
        command = [sys.executable, "-m", "guarantee_email_agent", "eval", "--eval-dir", str(suite), *more]
        began = perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if status != 0:
            output.seek(0)
            raise SystemExit(output.read().decode()[-2_000:])
        store = sum(path.stat().st_size for path in Path(folder).glob("runs.db*"))
        return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, store)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

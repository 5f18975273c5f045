"""How long the pages of `view` take over a store with a million results.

    uv run --extra view python benchmarks/view_pages.py [--runs 1000] [--scenarios 1000] [--store FILE]

Fills a store as benchmarks/run_store.py does, or takes one that it is given, starts `view` as a process of its own, and
asks for each page over HTTP on loopback: once, and then twenty times. The server's CPU time does not depend on what
else the machine does.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import run_store

from guarantee_email_agent.runlog.run_reader import RunStore

REPEAT = 20


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1_000, metavar="N")
    parser.add_argument("--scenarios", type=int, default=1_000, metavar="N", help="of a run")
    parser.add_argument("--store", type=Path, metavar="FILE", help="one that is there already")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = options.store or Path(folder) / "runs.db"
        if options.store is None:
            for number in range(options.runs):
                run_store.write_run(file, number, options.scenarios, changed=5)
        with _running(file, Path(folder)) as (address, process_id):
            for what, path in _pages(file):
                _measure(what, address, path, process_id)
    return 0


def _pages(file: Path) -> Iterator[tuple[str, str]]:
    with RunStore(file) as store:
        runs = store.runs(limit=30)
        last, other = runs[0], runs[-1]
        middle = store.find_case(last, f"valid_warranty_{max(1, last.total // 2):05}")[0].name
    run = f"/runs/{last.id}"
    yield "runs", "/"
    yield "runs that failed", "/?outcome=failed"
    yield "a run", run
    yield "its results that did not pass", f"{run}?verdict=not+passed"
    yield "a search in its results", f"{run}?text=customer+99"
    yield "a search that finds nothing", f"{run}?text=no+such+words"
    yield "a table of a large run", f"{run}/groups"
    yield "a result", f"{run}/results/{middle}"
    yield "a case over the runs", f"/history/{middle}"
    yield "two runs side by side", f"/compare?baseline={other.id}&run={last.id}"


def _measure(what: str, address: str, path: str, process_id: int) -> None:
    connection = http.client.HTTPConnection(address)
    times: list[float] = []
    spent = 0.0
    for _ in range(REPEAT + 1):
        if len(times) == 1:
            spent = _cpu_ms(process_id)
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        size = len(answer.read())
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status == 200, (path, answer.status)
    connection.close()
    spent = (_cpu_ms(process_id) - spent) / REPEAT
    first, others = times[0], sorted(times[1:])
    print(
        f"  {what:<30} first {first:>6.1f} ms, median {statistics.median(others):>6.1f} ms, "
        f"slowest {others[-1]:>6.1f} ms, CPU {spent:>5.1f} ms, {size / 1000:>5.1f} kB"
    )


def _cpu_ms(process_id: int) -> float:
    """User and system time of a process until now, in steps of ten milliseconds (Linux)."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _running(file: Path, folder: Path) -> Iterator[tuple[str, int]]:
    """Where `view` listens, as host and port, and the number of its process."""
    program = [sys.executable, "-m", "guarantee_email_agent", "view", "--port", "0", "--store", str(file.absolute())]
    with subprocess.Popen(program, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield urlsplit(process.stdout.readline().partition(" ")[0]).netloc, process.pid
        process.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

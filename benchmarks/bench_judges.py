"""What isolating a judge costs: milliseconds for each, forked and in a fresh interpreter, and a large folder at once.

uv run python benchmarks/bench_judges.py [--runs 300] [--many 10000] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from guarantee_email_agent.judging.judge import JudgePool

JUDGE = """\
def test(result):
    found = "42" in result["task_result"]
    return {"passed": found, "feedback": "the answer is there" if found else "the answer is missing"}
"""
RECORD = {"task_name": "answer", "task_result": "The answer is 42.", "conversation": [], "execution_trace": []}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=300, metavar="N", help="judges of each kind, one after the other")
    parser.add_argument("--many", type=int, default=10_000, metavar="N", help="judges of the large folder")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="judges at the same time in the large folder")
    options = parser.parse_args(arguments)
    print(f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        judge = Path(folder) / "test.py"
        judge.write_text(JUDGE, encoding="utf-8")
        for name, fresh, namespaces in (
            ("forked", False, True),
            ("forked, no namespaces", False, False),
            ("fresh interpreter", True, True),
        ):
            one_after_the_other(name, judge, options.runs, fresh=fresh, namespaces=namespaces)
        many_at_once(judge, options.many, options.jobs)
    return 0


def one_after_the_other(name: str, judge: Path, runs: int, *, fresh: bool, namespaces: bool) -> None:
    started = perf_counter()
    with JudgePool(fresh=fresh, namespaces=namespaces) as pool:
        pool.isolation()
        start_ms = (perf_counter() - started) * 1000
        took_ms = []
        for _ in range(runs):
            started = perf_counter()
            assert pool.judge(judge, RECORD).verdict == "passed"
            took_ms.append((perf_counter() - started) * 1000)
    print(
        f"{name:22} {statistics.median(took_ms):6.1f} ms each (median of {runs}; "
        f"fastest {min(took_ms):.1f}, slowest {max(took_ms):.1f}); once, to start: {start_ms:.0f} ms"
    )


def many_at_once(judge: Path, count: int, jobs: int) -> None:
    started = perf_counter()
    with JudgePool() as pool, ThreadPoolExecutor(jobs) as threads:
        verdicts = list(threads.map(lambda _: pool.judge(judge, RECORD).verdict, range(count)))
    took_s = perf_counter() - started
    assert verdicts == ["passed"] * count
    print(f"{count:,} judges, {jobs} at a time: {took_s:.1f} s ({count / took_s:.0f} a second)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

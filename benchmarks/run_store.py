"""Size and speed of the run store with a million results.

    uv run python benchmarks/run_store.py [--runs 1000] [--scenarios 1000] [--changed 5]

Fills a store with so many runs of a suite as `eval` would, of which each answers a share of the scenarios as no run
did before it, and measures what `show`, `compare` and `--resume` ask of it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from guarantee_email_agent.runlog.records import (
    CaseResult,
    Check,
    Input,
    InputSet,
    ResultFilter,
    Run,
    SuiteKey,
    Usage,
)
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter

MB = 1_000_000
REPLY = """\
Hello,

Thank you for your message. The warranty is valid: your device with the serial number SN{number} is fully covered until
2027-12-31. Your request has the ticket number {ticket}. We are sorry that your device is giving you trouble.

Kind regards,
Your warranty service team
"""
MAIL = "Hello,\n\nmy coffee machine no longer heats. Its serial number is SN{number}. Is it under warranty?\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1_000, metavar="N")
    parser.add_argument("--scenarios", type=int, default=1_000, metavar="N", help="of a run")
    parser.add_argument("--changed", type=int, default=5, metavar="PERCENT", help="answers that no earlier run gave")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        count = options.runs * options.scenarios
        began = time.perf_counter()
        for number in range(options.runs):
            write_run(file, number, options.scenarios, options.changed)
        elapsed_s = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"{count:,} results in {options.runs:,} runs: {elapsed_s:.0f} s, {1e6 * elapsed_s / count:.0f} µs each,")
        print(f"{size / MB:.0f} MB, {size / count:.0f} bytes each\n")
        _measure(file)
    return 0


def write_run(file: Path, number: int, scenarios: int, changed: int) -> None:
    """A run of `eval`. changed: percent of its answers that no earlier run gave."""
    run = Run(
        id=f"20260118T{number:06}-{number:08x}",
        command="eval",
        suite="evals/scenarios",
        llm="live" if number % 2 else "offline",
        started="2026-01-18T10:00:00Z",
        planned=scenarios,
        package_version="0.1.0",
    )
    writer = RunWriter(file, run, lambda message: sys.exit(message))
    # One instruction file changes in every tenth run.
    inputs = InputSet(
        [Input.of("instruction", f"{each}.md", b"%d" % (number // 10 + each) * 900) for each in range(40)]
    )
    for position in range(1, scenarios + 1):
        is_new = (position * 7919 + number) % 100 < changed
        ticket = f"T-{number}-{position}" if is_new else f"T-{position}"
        has_failed = (position + number) % 50 == 0
        reply = REPLY.format(number=position, ticket=ticket)
        calls = [{"server": "mail", "tool": "send_reply", "arguments": {"body": reply, "to": "jane@example.com"}}]
        result = CaseResult(
            name=f"valid_warranty_{position:05}",
            position=position,
            verdict="failed" if has_failed else "passed",
            category=("valid-warranty", "missing-info", "hand-over")[position % 3],
            language=("en", "de")[position % 2],
            description=f"Customer {position} with a valid warranty reports a fault",
            duration_ms=1.0 + position % 9,
            usage=Usage(2, 3_000, 200, 0, 0, 0.012, 900),
            inputs=inputs,
            checks=(Check("response_body_contains", "missing phrase", "'a'", "'b'"),) if has_failed else (),
            source=f"scenario_id: valid_warranty_{position:05}\n{MAIL.format(number=position)}\n".encode() * 2,
            request={"subject": "Fault", "body": MAIL.format(number=position), "from": "jane@example.com"},
            response={"email_sent": True, "response_body": reply, "ticket_created": True, "calls": calls},
        )
        writer.add(result)
    ended = run._replace(exit_code=0, ended="2026-01-18T10:00:09Z", duration_s=9.0)
    writer.finish(ended._replace(outcome="failed" if number % 3 else "passed"))


def _measure(file: Path) -> None:
    with RunStore(file) as store:
        key = SuiteKey("eval", "evals/scenarios", llm="live")
        last = store.find_run("last")
        before = store.runs(before=last.number, limit=1)[0]
        failed = ResultFilter(verdicts=("failed", "error"))
        result = next(store.outcomes(last)).shown
        _time("the last 50 runs", lambda: store.runs())
        _time("the last green run of a suite", lambda: store.find_run("green", key))
        _time("a run by the beginning of its id", lambda: store.find_run(before.id[:15]))
        _time("all results of a run", lambda: list(store.outcomes(last)))
        _time("those that failed", lambda: store.page_of_results(last, failed, limit=50))
        _time("50 of a search", lambda: store.page_of_results(last, ResultFilter(text="customer 99"), limit=50))
        _time("one result with checks and transcript", lambda: store.result(result.place.id))
        _time("the last 50 results of a scenario", lambda: store.history(result.name))
        _time("two runs side by side", lambda: _compare(store, last.number, before.number))
        _time("every result of the store", lambda: _stream(store), repeat=1)


def _compare(store: RunStore, new: int, old: int) -> int:
    runs = {run.number: run for run in store.runs(limit=5)}
    former = {each.name: each.verdict for each in store.outcomes(runs[old])}
    return sum(former.get(each.name) != each.verdict for each in store.outcomes(runs[new]))


def _stream(store: RunStore) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count, below = 0, None
    while runs := store.runs(before=below):
        for run in runs:
            count += sum(1 for _ in store.outcomes(run))
        below = runs[-1].number
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"  {count:,} results streamed, {more / 1024:.1f} MiB more memory")
    return count


def _time(what: str, ask: Callable[[], object], repeat: int = 5) -> None:
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    print(f"  {what:<40} {1000 * min(times):>9.1f} ms")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

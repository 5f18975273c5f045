from __future__ import annotations

import sqlite3

from stored_runs import StoredRuns, new_run, result

from guarantee_email_agent.runlog.records import Check, Input, InputSet
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunEnd, RunWriter

END = RunEnd("failed", 4, "2026-01-18T10:00:01Z", 1.0)


def finish_one(runs: StoredRuns, number: int, keep_runs: int) -> None:
    RunWriter(runs.file, new_run(number), runs.warnings.append, keep_runs=keep_runs).finish(END)


def kept(runs: StoredRuns) -> list[int]:
    with RunStore(runs.file) as store:
        return [run.number for run in store.runs()]


def test_the_newest_runs_stay(runs: StoredRuns) -> None:
    for number in range(1, 6):
        runs.write(number, [], "failed", 4)
    finish_one(runs, 6, keep_runs=3)
    assert kept(runs) == [6, 5, 4]


def test_the_last_green_run_of_each_suite_stays(runs: StoredRuns) -> None:
    runs.write(1, [])
    runs.write(2, [], suite="other")
    for number in range(3, 8):
        runs.write(number, [], "failed", 4)
    finish_one(runs, 8, keep_runs=2)
    assert kept(runs) == [8, 7, 2, 1]


def test_what_only_old_runs_needed_goes_with_them(runs: StoredRuns) -> None:
    for number in range(1, 40):
        inputs = InputSet([Input.of("instruction", "main.md", b"%d" % number * 5000)])
        text = f"{number}" * 20_000
        check = Check("email_sent", "no")
        results = [result(number, "failed", response={"body": text}, inputs=inputs, checks=(check,))]
        runs.write(number, results, "failed", 4)
    before = runs.file.stat().st_size
    finish_one(runs, 40, keep_runs=2)
    with sqlite3.connect(runs.file) as connection:
        counts = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("runs", "results", "checks", "cases", "blobs", "input_sets", "inputs")
        }
    assert counts == {"runs": 2, "results": 1, "checks": 1, "cases": 1, "blobs": 3, "input_sets": 1, "inputs": 1}
    assert runs.file.stat().st_size < before


def test_a_run_that_goes_on_stays(runs: StoredRuns) -> None:
    going_on = runs.begin(1)
    for number in range(2, 6):
        runs.write(number, [], "failed", 4)
    finish_one(runs, 6, keep_runs=1)
    assert kept(runs) == [6, 1]
    going_on.finish(END)

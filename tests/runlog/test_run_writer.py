import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from stored_runs import StoredRuns, ended, new_run, result, results_of

from guarantee_email_agent.runlog import run_writer
from guarantee_email_agent.runlog.database import RunOwners, StoreError
from guarantee_email_agent.runlog.records import Check, Input, InputSet, SuiteKey, Usage
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter
from guarantee_email_agent.runlog.views.html_report import as_html
from guarantee_email_agent.runlog.views.stored_report import stored_report

END = ended(duration_s=1.5, git_dirty=True)


def test_a_run_is_kept_as_it_was(runs: StoredRuns) -> None:
    writer = runs.begin(only_here := 7, selection=("hand_over_*",), parameters={"temperature": 0}, threshold=99.5)
    writer.add(result(1), result(2, "failed"))
    writer.finish(END)
    with RunStore(runs.file) as store:
        (run,) = store.runs()
    assert (run.id, run.selection, run.parameters, run.threshold) == (
        new_run(only_here).id,
        ("hand_over_*",),
        {"temperature": 0},
        99.5,
    )
    assert (run.outcome, run.exit_code, run.ended, run.duration_s) == ("passed", 0, "2026-01-18T10:00:01Z", 1.5)
    assert (run.git_revision, run.git_dirty) == ("0123abc", True)
    assert (run.total, run.passed, run.failed, run.error, run.invalid) == (2, 1, 1, 0, 0)


def test_names_that_no_utf8_can_hold_are_written_out(runs: StoredRuns) -> None:
    name, written = "task_\udcff\udcfe", r"task_\udcff\udcfe"
    inputs = InputSet([Input.of("judge", name, b"code")])
    checks = (Check("test", name, name, name),)
    runs.write(1, [result(1, "failed", name=name, inputs=inputs, checks=checks)], suite=name, agent=name)
    with RunStore(runs.file) as store:
        run = store.find_run("last", SuiteKey("eval", name, agent=name, llm=new_run(1).llm))
        (kept,) = store.results_of_case(run, name)
        assert [each.name for each in store.inputs(kept.place.input_set or 0)] == [written]
        assert store.checks(kept.place.id) == [Check("test", written, written, written)]
    assert (run.suite, kept.name) == (written, written)


def test_equal_content_is_kept_once(runs: StoredRuns) -> None:
    inputs = InputSet([Input.of("instruction", "main.md", b"Be kind.")])
    for number in (1, 2):
        runs.write(number, [result(1, source=b"text", inputs=inputs)])
    with closing(sqlite3.connect(runs.file)) as connection, connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("blobs", "inputs")]
        assert counts == [3, 1]
        assert connection.execute("SELECT count(*) FROM cases").fetchone() == (1,)


def test_a_case_passed_where_every_repetition_did(runs: StoredRuns) -> None:
    results = [result(1), result(1, "failed", repetition=2), result(2), result(2, repetition=2), result(3, "error")]
    runs.write(1, [*results, result(4, "invalid")])
    with RunStore(runs.file) as store:
        run = store.find_run("last")
    assert (run.total, run.passed, run.failed, run.invalid, run.error) == (4, 1, 2, 1, 1)


def test_tokens_and_cost_are_summed_up_and_an_unknown_price_makes_the_sum_unknown(runs: StoredRuns) -> None:
    runs.write(1, [result(1, usage=Usage(1, 10, 5, 2, 1, 0.5)), result(2, usage=Usage(1, 10, 0, 0, 0, 0.25))])
    runs.write(2, [result(1, usage=Usage(1, 10, 5, 2, 1, 0.5)), result(2, usage=Usage(1, 10, 0, 0, 0, None))])
    runs.write(3, [result(1, usage=Usage(1, 10, 5, 2, 1, 0.5)), result(2, usage=Usage(cost_usd=None)), result(3)])
    runs.write(4, [result(1, usage=Usage(1, 10, 5, 2, 1, 0.5))], facts={"usage": Usage(2, 20, 5, 2, 1, 0.75)._asdict()})
    runs.write(5, [result(1, usage=Usage(1, 10, 5, 2, 1, 0.5))], facts={"usage": Usage(1, cost_usd=None)._asdict()})
    with RunStore(runs.file) as store:
        taken = [(run.tokens, run.cost_usd) for run in store.runs()]
    assert taken == [(None, None), (28, 0.75), (None, None), (28, None), (28, 0.75)]


def test_results_that_are_paid_for_are_there_at_once(runs: StoredRuns) -> None:
    writer = runs.begin(at_once=True)
    writer.add(result(1))
    with RunStore(runs.file) as store:
        run = store.find_run("last")
        assert [each.position for each in results_of(store, run)] == [1]
        assert (run.outcome, run.state, store.with_counts(run).total) == (None, "going on", 1)
    writer.finish(END)


def test_others_are_written_in_batches(runs: StoredRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "BATCH", 3)
    monkeypatch.setattr(run_writer, "_BATCH_S", 1e9)
    writer = runs.begin()
    with RunStore(runs.file) as store:
        run = store.find_run("last")
        counts = []
        for position in (1, 2, 3, 4):
            writer.add(result(position))
            counts.append(len(results_of(store, run)))
        writer.finish(END)
        assert [*counts, len(results_of(store, run))] == [0, 0, 3, 3, 4]


def test_the_file_is_for_its_owner_alone(runs: StoredRuns) -> None:
    writer = runs.begin(at_once=True)
    writer.add(result(1))
    files = list(runs.file.parent.iterdir())
    assert {"runs.db", "runs.db-wal"} <= {file.name for file in files}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    writer.finish(END)


def test_a_run_that_was_killed_is_found_by_the_next(runs: StoredRuns) -> None:
    program = f"""
import os, signal
from pathlib import Path
from stored_runs import StoredRuns, result
StoredRuns(Path({str(runs.file)!r})).begin(at_once=True).add(result(1))
os.kill(os.getpid(), signal.SIGKILL)
"""
    support = str(Path(__file__).parents[1] / "support")
    died = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": support}, check=False)
    assert died.returncode == -signal.SIGKILL
    with RunStore(runs.file) as store:
        killed = store.find_run("last")
        assert (killed.outcome, killed.exit_code, killed.total, killed.passed) == ("interrupted", None, 1, 1)
        report = stored_report(store, killed)
    assert (killed.duration_s, report.summary["duration_s"]) == (None, None)
    assert "duration not known" in as_html(report).decode()
    runs.write(2, [])
    with RunStore(runs.file) as store:
        killed = store.find_run(killed.id)
        assert (killed.outcome, killed.exit_code, killed.total, killed.passed) == ("interrupted", None, 1, 1)


def test_an_interrupted_run_goes_on_in_one_process_alone(runs: StoredRuns) -> None:
    runs.write(1, [result(1)], "crashed", 1, planned=2)

    def resume() -> RunWriter:
        now = new_run(2, model="another", options={"jobs": 2}, package_version="0.2.0")
        return RunWriter(runs.file, now, runs.warnings.append, resume=(1, [(1, 1)]))

    first = resume()
    with pytest.raises(StoreError, match="another process has resumed or deleted the run just now") as caught:
        resume()
    assert (caught.value.code, caught.value.exit_code) == ("store_resumed_elsewhere", 2)
    first.add(result(2))
    first.finish(END)
    with pytest.raises(StoreError, match="another process has resumed"):
        resume()
    with RunStore(runs.file) as store:
        (run,) = store.runs()
        assert (run.id, run.outcome, run.total) == (new_run(1).id, "passed", 2)
        assert (run.model, run.options, run.package_version) == ("another", {"jobs": 2}, "0.2.0")


def test_a_run_that_cannot_begin_leaves_its_number_to_the_next(runs: StoredRuns) -> None:
    runs.write(1, [])
    with pytest.raises(StoreError):
        runs.begin(2, id=new_run(1).id)
    assert not RunOwners.beside(runs.file).is_alive(2)
    writer = runs.begin(3)
    assert (writer.number, RunOwners.beside(runs.file).is_alive(2)) == (2, True)
    writer.finish(END)


def test_two_runs_at_once_do_not_get_in_each_others_way(runs: StoredRuns) -> None:
    first, second = runs.begin(1, at_once=True), runs.begin(2, at_once=True)
    for position in range(1, 21):
        first.add(result(position))
        second.add(result(position, "failed"))
    first.finish(END)
    second.finish(END)
    with RunStore(runs.file) as store:
        assert [(run.passed, run.failed, run.outcome) for run in store.runs()] == [(0, 20, "passed"), (20, 0, "passed")]
    assert runs.warnings == []


def test_what_an_interruption_left_of_a_batch_is_written_once(
    runs: StoredRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = runs.begin()
    writer.add(result(1), result(2))
    writer._flush()
    writer._waiting = [result(1), result(2), result(3)]  # as where Ctrl-C came between the commit and what follows it
    writer.finish(END)
    with RunStore(runs.file) as store:
        assert [each.position for each in results_of(store, store.find_run("last"))] == [1, 2, 3]


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_is_taken_away_is_told(runs: StoredRuns, how: str) -> None:
    writer = runs.begin(at_once=True)
    runs.file.unlink()
    if how == "replaced":
        runs.file.write_bytes(b"")
    writer.add(result(1))
    writer.finish(END)
    assert "runs.db: it was deleted or replaced while the run went on" in runs.warnings[0]
    assert runs.warnings[-1].endswith("1 results of this run are not in the run store")


def test_a_result_after_the_end_is_nobodys(runs: StoredRuns) -> None:
    writer = runs.begin(at_once=True)
    writer.finish(END)
    writer.add(result(1))
    with RunStore(runs.file) as store:
        assert results_of(store, store.find_run("last")) == []


def test_a_clock_that_jumps_back_changes_no_order(runs: StoredRuns) -> None:
    runs.write(1, [], started="2026-01-18T10:00:00Z")
    runs.write(2, [], id="20200101T000000-00000001", started="2020-01-01T00:00:00Z")
    with RunStore(runs.file) as store:
        assert store.find_run("last").id == "20200101T000000-00000001"


ENDED = ended("failed", 4)


def finish_one(runs: StoredRuns, number: int, keep_runs: int) -> None:
    RunWriter(runs.file, new_run(number), runs.warnings.append, keep_runs=keep_runs).finish(ENDED)


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
    with closing(sqlite3.connect(runs.file)) as connection, connection:
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
    going_on.finish(ENDED)

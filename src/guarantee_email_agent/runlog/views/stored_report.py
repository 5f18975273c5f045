"""Any run of the store as a report, and its files: at the end of the run, and whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.runlog.comparison import compare_runs
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import COUNTED, PARTS, Case, CaseResult
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.stored_records import StoredRun
from guarantee_email_agent.runlog.temporary import not_kept
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.report_formats import write_report_files
from guarantee_email_agent.runlog.views.run_report import RunOptions
from guarantee_email_agent.runlog.views.suite_report import suite_report
from guarantee_email_agent.runlog.views.task_report import task_report

IN_MEMORY: Final = 2_000
"""Cases of which a run has more are read anew each time: they would take some 20 MB, and no end of it is known."""
_PAST_RUNS: Final = 30

ReadRecord = Callable[[CaseResult], CaseResult]
"""Adds what stands in a record beside the store, as `record_reference.with_record` does."""


class _StoredCases:
    """The cases of a run, to be gone through any number of times."""

    def __init__(
        self, store: RunStore, run: StoredRun, read_record: ReadRecord, parts: Collection[str] = PARTS
    ) -> None:
        self._store, self._run, self._read_record, self._parts = store, run, read_record, parts

    def __iter__(self) -> Iterator[Case]:
        for case in self._store.cases(self._run, self._parts):
            yield case._replace(runs=tuple(map(self._read_record, case.runs)))


def stored_report(store: RunStore, run: StoredRun, read_record: ReadRecord = lambda result: result) -> Report:
    """The report of a run, as far as it came. Raises StoreError for a store that is damaged."""
    run = store.with_counts(run)
    cases = _StoredCases(store, run, read_record)
    held = list(cases) if run.total <= IN_MEMORY else cases
    counted = held if held is not cases else _StoredCases(store, run, read_record, COUNTED)
    history = [run, *store.runs(run.key, before=run.number, limit=_PAST_RUNS - 1)][::-1]
    if run.command != "eval":
        return task_report(run, held, history)
    comparison = None
    if (baseline := run.facts.get("baseline")) and run.total:
        with suppress(StoreError):  # it may have been deleted since
            comparison = compare_runs(store, store.find_run(baseline), run)
    return suite_report(run, held, history, comparison, counted)


def write_stored_reports(
    file: Path, number: int, options: RunOptions, error_code: str, ran: int, read_record: ReadRecord | None = None
) -> None:
    """Every report that the options name. number: of the run. ran: how many cases it had. read_record: None for none.

    Raises ConfigurationError with `error_code` for a file that cannot be written, and where not all of the run could be
    kept.
    """
    try:
        with RunStore(file) as store:
            run = store.run(number)
            report = stored_report(store, run) if read_record is None else stored_report(store, run, read_record)
            if report.totals.total < ran:
                raise not_kept(f"{report.totals.total} of {ran} could be written")
            write_report_files(options, error_code, report)
    except StoreError as error:
        raise not_kept(error.message) from None

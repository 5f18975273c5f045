"""The list of runs, one run, and one result with everything that happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from starlette.requests import Request
from starlette.responses import Response

from guarantee_email_agent.judging.record_reference import with_record
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import Check, Outcome, ResultFilter, StoredResult, StoredRun, Verdict
from guarantee_email_agent.runlog.run_reader import GOING_ON, RunFilter, RunStore
from guarantee_email_agent.runlog.views.board_page import as_board, board_policy
from guarantee_email_agent.runlog.views.html_report import HistoryChart
from guarantee_email_agent.runlog.views.stored_report import stored_report
from guarantee_email_agent.runlog.views.transcript import sections
from guarantee_email_agent.viewer.site import Query, Site

_RUNS: Final = 30
_RESULTS: Final = 50
_CHART_RUNS: Final = 30
_REPETITIONS: Final = 20
_HISTORY: Final = 50
NOT_PASSED: Final = "not passed"
_VERDICTS: Final = (NOT_PASSED, *get_args(Verdict))
_OUTCOMES: Final = (GOING_ON, *get_args(Outcome))


class ResultRow(NamedTuple):
    """A result with the first check that it failed."""

    result: StoredResult
    check: Check | None


def runs_page(request: Request) -> Response:
    """`/`: the runs that fit, the newest first, and how the suite of the newest one did over time."""
    site: Site = request.app.state.site
    query = Query(request.query_params)
    which = RunFilter(query.text("command"), query.text("suite"), query.choice("outcome", _OUTCOMES))
    page = query.number("page") or 1
    with site.open_store() as store:
        found, has_more = store.page_of_runs(which, page, _RUNS)
        runs = [store.with_counts(run) for run in found]
        suites = store.suites()
        chart = _chart(store, runs)
    return site.page(
        "runs.html.jinja",
        which=which,
        runs=runs,
        page=page,
        has_more=has_more,
        chart=chart,
        commands=sorted({command for command, _ in suites}),
        suites=sorted({suite for _, suite in suites}),
        outcomes=_OUTCOMES,
    )


def run_page(request: Request) -> Response:
    """`/runs/RUN`: what it came to, by category and language, and its results, filtered, a page at a time."""
    site: Site = request.app.state.site
    query = Query(request.query_params)
    verdict = query.choice("verdict", _VERDICTS)
    which = ResultFilter(_verdicts(verdict), query.text("category"), query.text("language"), query.text("text"))
    page = query.number("page") or 1
    with site.open_store() as store:
        run = store.with_counts(store.find_run(request.path_params["run"]))
        found, matching = store.page_of_results(run, which, page, _RESULTS)
        is_filtered = any(value is not None for value in which)
        failed: list[ResultRow] = []
        if not is_filtered and page == 1 and run.total > run.passed:
            first, _ = store.page_of_results(run, ResultFilter(_verdicts(NOT_PASSED)), limit=_RESULTS)
            failed = [_with_check(store, result) for result in first]
        return site.page(
            "run.html.jinja",
            run=run,
            page=page,
            has_more=page * _RESULTS < matching,
            matching=matching,
            results=[_with_check(store, result) for result in found],
            which=which,
            verdict=verdict,
            verdicts=_VERDICTS,
            groups=store.group_counts(run),
            others=[other for other in store.runs(run.key, limit=20) if other.number != run.number],
            green=_green_before(store, run),
            failed=failed,
            causes=store.causes(run) if failed else [],
            chart=_chart(store, [run]),
            is_filtered=is_filtered,
        )


def board(request: Request) -> Response:
    """`/runs/RUN/board`: a run of `eval` for those who decide, as `show --html FILE --for board` writes it."""
    site: Site = request.app.state.site
    with site.open_store() as store:
        run = store.find_run(request.path_params["run"])
        if run.command != "eval":
            return site.page(
                "error.html.jinja", 404, title="There is no such page", message="Only a run of eval has it."
            )
        page = as_board(stored_report(store, run))
    return Response(page, media_type="text/html", headers={"content-security-policy": board_policy()})


def result_page(request: Request) -> Response:
    """`/runs/RUN/results/NAME`: each repetition in the order in which things happened, and the case over the runs."""
    site: Site = request.app.state.site
    with site.open_store() as store:
        run = store.find_run(request.path_params["run"])
        results = store.find_case(run, request.path_params["name"])
        shown = [(result, list(sections(result))) for result in map(with_record, results[:_REPETITIONS])]
        history = store.history(results[0].name, limit=_HISTORY)
        started = store.started(history)
        return site.page("result.html.jinja", run=run, results=results, shown=shown, history=history, started=started)


def _chart(store: RunStore, runs: Sequence[StoredRun]) -> HistoryChart | None:
    """Of the suite of the first of `runs`: that one, and those before it."""
    if not runs:
        return None
    newest = runs[0]
    history = [newest, *store.runs(newest.key, before=newest.number, limit=_CHART_RUNS - 1)]
    return HistoryChart.of(history[::-1], newest.threshold)


def _green_before(store: RunStore, run: StoredRun) -> StoredRun | None:
    try:
        return store.find_green_before(run)
    except StoreError:
        return None


def _with_check(store: RunStore, result: StoredResult) -> ResultRow:
    checks = () if result.verdict == "passed" else store.checks(result)
    return ResultRow(result, checks[0] if checks else None)


def _verdicts(verdict: str | None) -> tuple[Verdict, ...] | None:
    if verdict is None:
        return None
    known: tuple[Verdict, ...] = get_args(Verdict)
    return tuple(each for each in known if each == verdict or (verdict == NOT_PASSED and each != "passed"))

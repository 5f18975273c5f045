"""The list of runs, one run, one result with all that happened, two runs side by side, and what a person labels."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args
from urllib.parse import parse_qsl, quote, urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from guarantee_email_agent.judging.record_reference import with_record
from guarantee_email_agent.runlog.comparison import (
    CaseChange,
    ContentChange,
    compare_runs,
    find_pair,
)
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.labelling import LabelItem, LabelSheet
from guarantee_email_agent.runlog.records import (
    CaseResult,
    Check,
    Outcome,
    ResultFilter,
    Run,
    Verdict,
)
from guarantee_email_agent.runlog.run_reader import GOING_ON, LAST, RunFilter, RunStore
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.suite_statistics import describe_score
from guarantee_email_agent.runlog.views.comparison_report import alike_replies, shown_setting
from guarantee_email_agent.runlog.views.html_report import (
    HistoryChart,
    as_board,
    board_policy,
    template_environment,
    template_source,
)
from guarantee_email_agent.runlog.views.stored_report import stored_report
from guarantee_email_agent.runlog.views.transcript import sections
from guarantee_email_agent.runlog.views.word_diff import diff_lines, split_changes
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.utils.text import printable, truncate

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE: Final = "guarantee_email_agent.viewer"
_BUSY_S: Final = 2.0
"""How long a page waits for a writer that lets nobody read."""
_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_MARKS: Final = {" ": Markup("{}"), "-": Markup("<del>{}</del>"), "+": Markup("<ins>{}</ins>")}
_MAX_TEXT: Final = 200
_NUMBER: Final = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that every page needs. digest: of its content, and part of its address, so that browsers may keep it."""

    content: bytes
    media_type: str
    digest: str


class Site:
    """store: the file of the runs. labels: what a person labels here; None for nothing, so that pages only read."""

    def __init__(self, store: Path, labels: LabelSheet | None = None) -> None:
        self.store, self.labels = store, labels
        self.environment = environment = template_environment(_PACKAGE)
        self.static = _static_files(environment)
        environment.filters |= {"number": "{:,}".format, "changes": _changes}
        environment.filters["describe_score"] = describe_score
        environment.globals |= {
            "labels": self.labels,
            "asset": lambda name: f"/static/{self.static[name].digest}/{name}",
            "run_url": run_url,
            "result_url": result_url,
            "with_query": with_query,
            "rate": format_percentage,
        }
        for name in environment.list_templates(extensions=["jinja"]):
            environment.get_template(name)  # compiled now, and not for the first who asks

    def open_store(self) -> RunStore:
        """Anew for every page, so that a file that was replaced or brought up to date is read. Raises StoreError."""
        return RunStore(self.store, busy_s=_BUSY_S)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A whole page, or a part of one."""
        text = self.environment.get_template(template).render(**values)
        return Response(text.encode(errors="backslashreplace"), status, media_type="text/html")

    def error(self, status: int, title: str, message: str) -> Response:
        return self.page("error.html.jinja", status, title=title, message=message)


def run_url(run: str) -> str:
    return f"/runs/{quote(run, safe='')}"


def result_url(run: str, name: str, repetition: int = 1) -> str:
    """repetition: where the page is to begin."""
    shown = quote(name.encode(errors="backslashreplace"), safe="")
    return f"{run_url(run)}/results/{shown}{f'#repetition-{repetition}' if repetition > 1 else ''}"


def with_query(path: str, **values: object) -> str:
    """The address with what is not None."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{path}?{query}" if query else path


def _changes(line: str) -> Markup:
    """A line of a word diff, with the words that went and came marked as such."""
    return Markup("").join(_MARKS[sign].format(words) for sign, words in split_changes(line))


def _static_files(environment: Environment) -> dict[str, StaticFile]:
    folder = files(_PACKAGE) / "static"
    style = template_source(environment, "report.css").encode() + (folder / "viewer.css").read_bytes()
    contents = {"viewer.css": style} | {name: (folder / name).read_bytes() for name in ("htmx.min.js", "icon.svg")}
    return {
        name: StaticFile(content, _TYPES[name.rpartition(".")[2]], hashlib.sha256(content).hexdigest()[:16])
        for name, content in contents.items()
    }


class QueryError(AgentError):
    """The address asks for what there is not."""


class Query:
    """Values that are missing or empty are None. Every method raises QueryError."""

    def __init__(self, values: QueryParams) -> None:
        self._values = values

    def text(self, name: str) -> str | None:
        value = self._values.get(name, "")
        if len(value) > _MAX_TEXT:
            raise _wrong(name, value, f"at most {_MAX_TEXT} characters")
        return value or None

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        value = self.text(name)
        if value is not None and value not in (known := list(choices)):
            raise _wrong(name, value, f"one of {', '.join(known)}")
        return value

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not _NUMBER.fullmatch(value):
            raise _wrong(name, value, "a whole number")
        return int(value)


def _wrong(name: str, value: str, wanted: str) -> QueryError:
    return QueryError(f"{name}='{printable(truncate(value, 60))}' in the address is not {wanted}", "viewer_bad_query")


_RUNS: Final = 30
_RESULTS: Final = 50
_CHART_RUNS: Final = 30
_REPETITIONS: Final = 20
_HISTORY: Final = 50
_MAX_REPLIES: Final = 20
_MAX_FILES: Final = 20
_MAX_LINES: Final = 40
_MAX_NAMES: Final = 100
_CHOICES: Final = 50
NOT_PASSED: Final = "not passed"
_VERDICTS: Final = (NOT_PASSED, *get_args(Verdict))
_OUTCOMES: Final = (GOING_ON, *get_args(Outcome))


class ResultRow(NamedTuple):
    """A result with the first check that it failed."""

    result: CaseResult
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
        found, matching = store.page_of_results(run, which, page, limit=_RESULTS)
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
            return site.error(404, "There is no such page", "Only a run of eval has it.")
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
        return site.page("result.html.jinja", run=run, results=results, shown=shown, history=history)


def _chart(store: RunStore, runs: Sequence[Run]) -> HistoryChart | None:
    """Of the suite of the first of `runs`: that one, and those before it."""
    if not runs:
        return None
    newest = runs[0]
    history = [newest, *store.runs(newest.key, before=newest.number, limit=_CHART_RUNS - 1)]
    return HistoryChart.of(history[::-1], newest.threshold)


def _green_before(store: RunStore, run: Run) -> Run | None:
    try:
        return store.find_green_before(run)
    except StoreError:
        return None


def _with_check(store: RunStore, result: CaseResult) -> ResultRow:
    checks = () if result.verdict == "passed" else store.checks(result.place.id)
    return ResultRow(result, checks[0] if checks else None)


def _verdicts(verdict: str | None) -> tuple[Verdict, ...] | None:
    if verdict is None:
        return None
    known: tuple[Verdict, ...] = get_args(Verdict)
    return tuple(each for each in known if each == verdict or (verdict == NOT_PASSED and each != "passed"))


def comparison_page(request: Request) -> Response:
    """`/compare?baseline=RUN&run=RUN`; without them the newest run and the green one before it."""
    site: Site = request.app.state.site
    query = Query(request.query_params)
    first, second = query.text("baseline"), query.text("run")
    with site.open_store() as store:
        choices = store.runs(limit=_CHOICES)
        if first is None and len(choices) < 2:
            return site.page("compare_none.html.jinja")
        if first is None:
            run = store.find_run(second or LAST)
            others = (each for each in (*choices[1:], choices[0]) if each.id != run.id)
            baseline = _green_before(store, run) or next(others)
        else:
            baseline, run = find_pair(store, first, second or LAST)
        comparison = compare_runs(store, baseline, run, max_details=_MAX_REPLIES, counts_all=False)
    return site.page(
        "compare.html.jinja",
        baseline=comparison.baseline,
        run=comparison.run,
        comparison=comparison,
        choices=choices,
        groups=[
            {
                "title": title,
                "shown": [each.after if isinstance(each, CaseChange) else each for each in cases[:_MAX_NAMES]],
                "total": len(cases),
                "run": where,
            }
            for title, _, cases, where in comparison.groups()
        ],
        texts=[
            {"title": f"Changed {title}", "alike": alike_replies(changes.shown, noun), "changes": changes}
            for title, noun, changes in (
                ("replies", "reply", comparison.replies),
                ("feedback", "feedback", comparison.feedback),
            )
            if changes.shown
        ],
        files=[(change, _changed_lines(change)) for change in comparison.contents.shown[:_MAX_FILES]],
        files_cut=len(comparison.contents.shown) > _MAX_FILES or comparison.contents.more is None,
        settings=[(name, shown_setting(old), shown_setting(new)) for name, old, new in comparison.settings],
    )


def _changed_lines(change: ContentChange) -> list[str]:
    """Of the difference, each with its sign."""
    if change.before is None or change.after is None:
        return []
    return list(diff_lines(change.before, change.after, _MAX_LINES))


_MAX_BYTES: Final = 64 * 1024


def labels_page(request: Request) -> Response:
    """`/label`: how far it is, and every item."""
    site: Site = request.app.state.site
    items = _sheet(site).items()
    next_item = next((each for each in items if not each.labelled), None)
    return site.page("labels.html.jinja", sheet=site.labels, items=items, next=next_item, url=_url)


def label_page(request: Request) -> Response:
    """`/label/{item}`: its texts and the form."""
    return _label_page(request.app.state.site, request.path_params["item"])


async def save_label(request: Request) -> Response:
    """The form; then the next item without a label."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            site: Site = request.app.state.site
            return site.error(413, "Too large", "No label is that long.")
    values = dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    return await run_in_threadpool(_save, request.app.state.site, request.path_params["item"], values)


def _save(site: Site, item: str, values: dict[str, str]) -> Response:
    sheet = _sheet(site)
    try:
        sheet.save(item, values)
        found = next((each for each in sheet.items() if not each.labelled), None)
    except AgentError as error:
        return _label_page(site, item, values, error.message)
    return RedirectResponse("/label" if found is None else _url(found), 303)


def _label_page(site: Site, item: str, values: dict[str, str] | None = None, problem: str = "") -> Response:
    items = _sheet(site).items()
    found = next((each for each in items if each.id == item), None)
    if found is None:
        raise HTTPException(404)
    return site.page(
        "label.html.jinja",
        400 if problem else 200,
        sheet=site.labels,
        item=found,
        values=values or {},
        problem=problem,
        done=sum(bool(each.labelled) for each in items),
        count=len(items),
        url=_url,
    )


def _sheet(site: Site) -> LabelSheet:
    if site.labels is None:
        raise HTTPException(404)
    return site.labels


def _url(item: LabelItem) -> str:
    return f"/label/{quote(item.id, safe='')}"

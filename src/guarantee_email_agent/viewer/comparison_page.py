"""Two runs side by side: what fails now, which replies are other ones, and what was changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guarantee_email_agent.runlog.comparison import (
    CaseChange,
    ContentChange,
    compare_runs,
    find_pair,
)
from guarantee_email_agent.runlog.records import CaseOutcome, StoredRun
from guarantee_email_agent.runlog.run_reader import GREEN, LAST
from guarantee_email_agent.runlog.views.comparison_report import alike_replies, shown_setting
from guarantee_email_agent.runlog.views.word_diff import diff_lines
from guarantee_email_agent.viewer.site import Query, Site

_MAX_REPLIES: Final = 20
_MAX_FILES: Final = 20
_MAX_LINES: Final = 40
_MAX_NAMES: Final = 100
_CHOICES: Final = 50


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
            others = (each.id for each in (*choices[1:], choices[0]) if each.id != second)
            first = GREEN if _has_green_before(choices, second) else next(others)
        baseline, run = find_pair(store, first, second or LAST)
        comparison = compare_runs(store, baseline, run, max_details=_MAX_REPLIES, counts_all=False)
    return site.page(
        "compare.html.jinja",
        baseline=comparison.baseline,
        run=comparison.run,
        comparison=comparison,
        choices=choices,
        groups=[
            {"title": title, "shown": list(map(_outcome, cases[:_MAX_NAMES])), "total": len(cases), "run": where}
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


def _has_green_before(runs: Sequence[StoredRun], name: str | None) -> bool:
    """Whether the newest run, or the one of that id, has a green one of its suite before it."""
    run = next((each for each in runs if name in (None, LAST, each.id)), None)
    return run is not None and any(
        each.key == run.key and each.outcome == "passed" and each.number < run.number for each in runs
    )


def _outcome(case: CaseChange | CaseOutcome) -> CaseOutcome:
    return case.after if isinstance(case, CaseChange) else case


def _changed_lines(change: ContentChange) -> list[str]:
    """Of the difference, each with its sign."""
    if change.before is None or change.after is None:
        return []
    return list(diff_lines(change.before, change.after, _MAX_LINES))

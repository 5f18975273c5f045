"""One result with everything that happened, its texts as such, and how the same case did over the runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from guarantee_email_agent.judging.record_reference import with_record
from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.runlog.views.transcript import Section, sections
from guarantee_email_agent.viewer.site import Query, QueryError, Site

_MAX_REPETITIONS: Final = 20
_HISTORY: Final = 20
_HISTORY_PAGE: Final = 50
_TEXTS: Final = ("mail", "reply", "file", "request", "response", "trace", "judgement")
_TEXT_POLICY: Final = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class ResultView(NamedTuple):
    """One repetition, in the order in which things happened. texts: parts of it that there are as nothing but text."""

    result: CaseResult
    sections: Sequence[Section]
    texts: Sequence[str]


def result_page(request: Request) -> Response:
    """`/runs/RUN/results/NAME`."""
    site: Site = request.app.state.site
    with site.open_store() as store:
        run = store.find_run(request.path_params["run"])
        results = store.find_case(run, request.path_params["name"])
        views = [_view(with_record(result)) for result in results[:_MAX_REPETITIONS]]
        history = store.history(results[0].name, limit=_HISTORY)
        started = store.started(history)
        return site.page("result.html.jinja", run=run, results=results, views=views, history=history, started=started)


def history_page(request: Request) -> Response:
    """`/history/NAME`: the results of one case in all runs, the newest first."""
    site: Site = request.app.state.site
    name: str = request.path_params["name"]
    with site.open_store() as store:
        before = Query(request.query_params).number("below")
        history = store.history(name, before=before, limit=_HISTORY_PAGE + 1)
        started = store.started(history)
    status = 200 if history or before is not None else 404
    shown = {"name": name, "history": history, "started": started, "limit": _HISTORY_PAGE, "below": before}
    return site.page("history.html.jinja", status, **shown)


def text_page(request: Request) -> Response:
    """`/runs/RUN/texts/PART/NAME`: the whole of what the page of a result may cut, as nothing but text."""
    site: Site = request.app.state.site
    query = Query(request.query_params)
    part, repetition = request.path_params["part"], query.number("repetition") or 1
    with site.open_store() as store:
        run = store.find_run(request.path_params["run"])
        results = store.find_case(run, request.path_params["name"])
        found = [result for result in results if result.repetition == repetition]
        value = _value(with_record(found[0]), part) if found and part in _TEXTS else None
    if value is None:
        raise QueryError("There is no such text", "viewer_no_such_text")
    content = _as_text(value).encode(errors="backslashreplace")
    return PlainTextResponse(content, headers={"content-security-policy": _TEXT_POLICY})


def _value(result: CaseResult, part: str) -> object:
    """What there is of a text; None for nothing."""
    if part == "file":
        return None if result.source is None else result.source.decode(errors="replace")
    if part == "mail":
        request = result.request
        return request if isinstance(request, str) else _mapping(request).get("body")
    if part == "reply":
        response = result.response
        return response if isinstance(response, str) else _mapping(response).get("response_body")
    return result.as_judged() or None if part == "judgement" else getattr(result, part)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _view(result: CaseResult) -> ResultView:
    texts = [part for part in _TEXTS if _value(result, part) is not None]
    return ResultView(result, list(sections(result)), texts)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

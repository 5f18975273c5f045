"""One result with everything that happened, its texts as such, and how the same case did over the runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from guarantee_email_agent.judging.kept_record import with_record
from guarantee_email_agent.reporting.reading import reading_fields
from guarantee_email_agent.reporting.report import Case
from guarantee_email_agent.reporting.transcript import Section, cut, sections
from guarantee_email_agent.store.run_reader import RunStore
from guarantee_email_agent.store.stored_records import StoredResult, Transcript
from guarantee_email_agent.utils.text import visible
from guarantee_email_agent.viewer.query import Query, QueryError
from guarantee_email_agent.viewer.site import Site

_MAX_REPETITIONS: Final = 20
_MAX_STEPS: Final = 100
_MAX_VALUE: Final = 2_000
_HISTORY: Final = 20
_HISTORY_PAGE: Final = 50
_TEXTS: Final = ("mail", "reply", "file", "request", "response", "trace", "judgement")
_TEXT_POLICY: Final = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Step(NamedTuple):
    """A call or an action. duration_ms: None where it is not known. answer: what came back, None for nothing."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    answer: str | None
    duration_ms: float | None


class CheckRow(NamedTuple):
    """A check. expected, actual: empty where there is nothing to compare."""

    name: str
    passed: bool
    reason: str
    expected: str
    actual: str


class ResultView(NamedTuple):
    """One repetition, in the order in which things happened. whole: parts that have more than the page shows."""

    result: StoredResult
    mail: Sequence[Section]
    reading: Sequence[tuple[str, str]]
    steps: Sequence[Step]
    more_steps: int
    reply: Sequence[Section]
    ticket: Sequence[Section]
    outcome: Sequence[Section]
    conversation: Sequence[Section]
    checks: Sequence[CheckRow]
    judge: Sequence[Section]
    texts: Sequence[str]


def result_page(request: Request) -> Response:
    """`/runs/RUN/results/NAME`."""
    site: Site = request.app.state.site
    with site.open_store() as store:
        run = store.find_run(request.path_params["run"])
        results = store.find_case(run, request.path_params["name"])
        views = [_view(store, result) for result in results[:_MAX_REPETITIONS]]
        history = store.history(results[0].name, limit=_HISTORY)
        return site.page("result.html.jinja", run=run, results=results, views=views, history=history)


def history_page(request: Request) -> Response:
    """`/history/NAME`: the results of one case in all runs, the newest first."""
    site: Site = request.app.state.site
    name: str = request.path_params["name"]
    with site.open_store() as store:
        before = Query(request.query_params).number("below")
        history = store.history(name, before=before, limit=_HISTORY_PAGE + 1)
    status = 200 if history or before is not None else 404
    return site.page("history.html.jinja", status, name=name, history=history, limit=_HISTORY_PAGE, below=before)


def text_page(request: Request) -> Response:
    """`/runs/RUN/texts/PART/NAME`: the whole of what the page of a result may cut, as nothing but text."""
    site: Site = request.app.state.site
    query = Query(request.query_params)
    part, repetition = request.path_params["part"], query.number("repetition") or 1
    with site.open_store() as store:
        run = store.find_run(request.path_params["run"])
        results = store.find_case(run, request.path_params["name"])
        found = [result for result in results if result.repetition == repetition]
        value = _value(with_record(store.transcript(found[0])), part) if found and part in _TEXTS else None
    if value is None:
        raise QueryError("There is no such text", "viewer_no_such_text")
    content = _as_text(value).encode(errors="backslashreplace")
    return PlainTextResponse(content, headers={"content-security-policy": _TEXT_POLICY})


def _value(transcript: Transcript, part: str) -> object:
    """What there is of a text; None for nothing."""
    if part == "file":
        return None if transcript.source is None else transcript.source.decode(errors="replace")
    if part == "mail":
        request = transcript.request
        return request if isinstance(request, str) else _mapping(request).get("body")
    if part == "reply":
        response = transcript.response
        return response if isinstance(response, str) else _mapping(response).get("response_body")
    return getattr(transcript, part)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _view(store: RunStore, result: StoredResult) -> ResultView:
    transcript = with_record(store.transcript(result))
    request, response, trace = map(_mapping, (transcript.request, transcript.response, transcript.trace))
    judgement = dict(_mapping(transcript.judgement))
    listed = judgement.pop("checks", None)
    actions = _list(trace.get("execution_trace")) or _list(response.get("calls"))
    case = Case(
        name=result.name,
        outcome=result.verdict,
        runs=(),
        request=transcript.request,
        response=transcript.response,
        trace={name: trace.get(name) for name in ("conversation", "problem")},
        judgement=judgement or None,
    )
    by_role: dict[str, list[Section]] = {}
    for section in sections(case):
        by_role.setdefault(section.role, []).append(section)
    return ResultView(
        result,
        mail=by_role.get("mail", ()),
        reading=list(reading_fields(_mapping(trace.get("read")), request, response)),
        steps=[
            _step(_mapping(each), duration_ms)
            for each, duration_ms in zip(actions[:_MAX_STEPS], chain(result.step_ms or (), repeat(None)), strict=False)
        ],
        more_steps=max(0, len(actions) - _MAX_STEPS),
        reply=by_role.get("reply", ()),
        ticket=by_role.get("ticket", ()),
        outcome=by_role.get("outcome", ()),
        conversation=by_role.get("trace", ()),
        checks=list(_check_rows(store, result, listed)),
        judge=by_role.get("judge", ()),
        texts=[part for part in _TEXTS if _value(transcript, part) is not None],
    )


def _step(each: Mapping[str, Any], duration_ms: float | None) -> Step:
    """A step of a trace, or a call that the mocks captured. duration_ms: as the store has it beside the trace."""
    if "action" not in each:
        name = f"{each.get('server')}.{each.get('tool')}"
        return Step(_shown(name), _arguments(_mapping(each.get("arguments"))), None, None)
    action = dict(_mapping(each["action"]))
    name = str(action.pop("action_type", "?"))
    answer = _mapping(each.get("feedback")).get("message")
    duration = each.get("duration_ms", duration_ms)
    return Step(
        _shown(name),
        _arguments(action),
        None if answer is None else _shown(answer),
        duration if isinstance(duration, (int, float)) else None,
    )


def _arguments(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((_shown(name), _shown(value)) for name, value in values.items())


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    kept, note = cut(text, _MAX_VALUE)
    return f"{visible(kept)}\n[{note}]" if note else visible(kept)


def _check_rows(store: RunStore, result: StoredResult, listed: object) -> Iterator[CheckRow]:
    """Every check, passed ones too; of a run that kept no list, those that failed."""
    if isinstance(listed, list):
        rows = [_mapping(each) for each in listed]
    else:
        rows = [{**check._asdict(), "passed": False} for check in store.checks(result)]
    for row in rows:
        values = [row.get(name) for name in ("name", "reason", "expected", "actual")]
        name, reason, expected, actual = ("" if value is None else _shown(value) for value in values)
        yield CheckRow(name, bool(row.get("passed")), reason, expected, actual)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

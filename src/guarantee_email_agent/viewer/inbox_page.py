"""What the agent did with the mails of its inbox, as its ledger has it: in modes `observe` and `drafts`, too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from guarantee_email_agent.ledger.ledger_reader import UNFINISHED, LedgerReader, LedgerRow
from guarantee_email_agent.services.ports import OUTCOMES
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.viewer.site import Query, Site

_PAGE: Final = 50
_MAX_PAGE: Final = 100_000
_MEANINGS: Final[Mapping[str, str]] = {
    "answered": "a reply was sent",
    "drafted": "a reply was stored for a person to send",
    "observed": "in mode observe: nothing was done, and this is why or with which scenario it would have been",
    "handed_over": "left for a person",
    "not_answered": "mail that needs no answer",
    "quarantined": "failed too often; left for a person",
    "unknown": "nobody can tell whether the reply left",
    "unfinished": "not finished: in work, or to be tried again",
}


def inbox_page(request: Request) -> Response:
    """`/inbox`: how many mails came to which outcome and why, and the mails themselves, the newest first."""
    site: Site = request.app.state.site
    query = Query(request.query_params)
    chosen, page = query.choice("outcome", (*OUTCOMES, UNFINISHED)), query.number("page") or 1
    page = min(page, _MAX_PAGE)
    outcome = next((each for each in OUTCOMES if each == chosen), None)
    try:
        with LedgerReader(site.ledger) as ledger:
            counts, name = ledger.counts(), ledger.name
            rows = ledger.page(outcome, unfinished=chosen == UNFINISHED, skip=(page - 1) * _PAGE, limit=_PAGE + 1)
    except AgentError as error:
        # A ledger that is missing or down is no fault of the page: the runs can be looked at all the same.
        return site.page("inbox_none.html.jinja", 200 if error.code == "ledger_missing" else 503, message=error.message)
    return site.page(
        "inbox.html.jinja",
        name=name,
        counts=counts,
        total=sum(count.mails for count in counts),
        rows=rows[:_PAGE],
        has_more=len(rows) > _PAGE,
        page=page,
        chosen=chosen,
        outcomes=(*OUTCOMES, UNFINISHED),
        meanings=_MEANINGS,
        times=_times,
    )


def _times(row: LedgerRow) -> list[tuple[str, str]]:
    """When what happened, in the order of time."""
    known = [("first seen", row.created_at), ("reply", row.replied_at), ("last change", row.changed_at)]
    return [(name, _iso(moment)) for name, moment in known if moment is not None]


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # a clock that was wrong, or a damaged row
        return f"{seconds:g} s since 1970"

"""Items that a person labels, one a page."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from guarantee_email_agent.runlog.labelling import LabelItem, LabelSheet
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.viewer.site import Site

_MAX_BYTES: Final = 64 * 1024


def labels_page(request: Request) -> Response:
    """`/label`: how far it is, and every item."""
    site: Site = request.app.state.site
    try:
        items = _sheet(site).items()
    except AgentError as error:
        return _failed(site, error)
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
            return site.page("error.html.jinja", 413, title="Too large", message="No label is that long.")
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
    try:
        items = _sheet(site).items()
    except AgentError as error:
        return _failed(site, error)
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


def _failed(site: Site, error: AgentError) -> Response:
    return site.page("error.html.jinja", 503, title="These files cannot be used", message=error.message)

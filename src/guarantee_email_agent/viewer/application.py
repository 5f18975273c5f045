"""The pages and their addresses, and what becomes of an address that leads nowhere."""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.viewer.comparison_page import comparison_page
from guarantee_email_agent.viewer.inbox_page import inbox_page
from guarantee_email_agent.viewer.label_pages import label_page, labels_page, save_label
from guarantee_email_agent.viewer.query import QueryError
from guarantee_email_agent.viewer.result_pages import history_page, result_page, text_page
from guarantee_email_agent.viewer.run_pages import board, groups_page, progress_part, run_page, runs_page
from guarantee_email_agent.viewer.site import Site

_NOT_FOUND: Final = ("store_no_such_run", "store_no_such_case", "store_ambiguous_run", "viewer_no_such_text")


class _NameConvertor(PathConvertor):
    """A name may hold whatever somebody gave it, slashes and line breaks, too."""

    regex = "(?s:.*)"


register_url_convertor("name", _NameConvertor())


def create_application(site: Site) -> Starlette:
    """Everything behind the guard."""
    application = Starlette(
        routes=[
            Route("/", runs_page),
            Route("/runs/{run}", run_page),
            Route("/runs/{run}/groups", groups_page),
            Route("/runs/{run}/board", board),
            Route("/runs/{run}/progress", progress_part),
            Route("/runs/{run}/results/{name:name}", result_page),
            Route("/runs/{run}/texts/{part}/{name:name}", text_page),
            Route("/history/{name:name}", history_page),
            Route("/compare", comparison_page),
            Route("/inbox", inbox_page),
            Route("/label", labels_page),
            Route("/label/{item}", label_page),
            Route("/label/{item}", save_label, methods=["POST"]),
            Route("/static/{digest}/{name}", _static),
        ],
        exception_handlers={HTTPException: _no_page, QueryError: _error_page, StoreError: _error_page},
    )
    application.router.redirect_slashes = False
    application.state.site = site
    return application


def _static(request: Request) -> Response:
    site: Site = request.app.state.site
    file = site.static.get(request.path_params["name"])
    if file is None or file.digest != request.path_params["digest"]:
        raise HTTPException(404)
    keep = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(file.content, media_type=file.media_type, headers=keep)


async def _no_page(request: Request, _: Exception) -> Response:
    site: Site = request.app.state.site
    return site.page("error.html.jinja", 404, title="There is no such page", message="Nothing has this address.")


async def _error_page(request: Request, error: Exception) -> Response:
    site: Site = request.app.state.site
    assert isinstance(error, AgentError)
    if error.code in _NOT_FOUND:
        return site.page("error.html.jinja", 404, title="Not found", message=error.message)
    if isinstance(error, QueryError):
        return site.page("error.html.jinja", 400, title="This address is not right", message=error.message)
    return site.page("error.html.jinja", 503, title="The run store cannot be read", message=error.message)

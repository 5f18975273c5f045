"""The pages and their addresses, served on loopback until Ctrl-C or SIGTERM, and what every request has to pass."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError
from guarantee_email_agent.utils.loopback import HOST, listen_on_loopback
from guarantee_email_agent.utils.process import signals_handled
from guarantee_email_agent.viewer.pages import (
    QueryError,
    Site,
    board,
    comparison_page,
    label_page,
    labels_page,
    result_page,
    run_page,
    runs_page,
    save_label,
)

_NOT_FOUND: Final = ("store_no_such_run", "store_no_such_case", "store_ambiguous_run")
logger = logging.getLogger(__name__)

_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_METHODS: Final = ("GET", "HEAD")
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without one, a browser does not say that a form is ours
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cache-control": "no-store",
}
_REASONS: Final = {errno.EADDRINUSE: "another program has it", errno.EACCES: "this user may not have it"}


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
            Route("/runs/{run}/board", board),
            Route("/runs/{run}/results/{name:name}", result_page),
            Route("/compare", comparison_page),
            Route("/label", labels_page),
            Route("/label/{item}", label_page),
            Route("/label/{item}", save_label, methods=["POST"]),
            Route("/static/{digest}/{name}", _static),
        ],
        exception_handlers={HTTPException: _no_page, AgentError: _error_page},
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
    return site.error(404, "There is no such page", "Nothing has this address.")


async def _error_page(request: Request, error: Exception) -> Response:
    site: Site = request.app.state.site
    assert isinstance(error, AgentError)
    if error.code in _NOT_FOUND:
        return site.error(404, "Not found", error.message)
    if isinstance(error, QueryError) or error.code in ("store_same_run", "store_sealed_run"):
        return site.error(400, "This address is not right", error.message)
    if isinstance(error, StoreError):
        return site.error(503, "The run store cannot be read", error.message)
    return site.error(503, "These files cannot be used", error.message)  # those to be labelled


class RequestGuard:
    """Stands before the application. A name that somebody lets resolve to this machine is not ours (DNS rebinding)."""

    def __init__(self, application: ASGIApp, port: int, *, has_forms: bool = False) -> None:
        """has_forms: whether a page may send one, which only a page of ours may."""
        self._has_forms = has_forms
        self._application = application
        self._hosts = {f"{name}:{port}" for name in _NAMES} | (set(_NAMES) if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, send_with_headers)
            return
        try:
            await self._application(scope, receive, send_with_headers)
        except Exception as error:
            # A path may name a customer, and a message may quote a mail.
            logger.error("A page failed: %s", type(error).__name__)
            logger.debug("The page that failed", exc_info=True)
            if not started:
                await PlainTextResponse("This page failed. The log of 'view' has more.\n", 500)(
                    scope, receive, send_with_headers
                )

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("Open the address that 'view' printed: this one names another host.\n", 421)
        is_own_form = headers.get("origin", "").lower() == f"http://{headers['host'].lower()}"
        if scope["method"] not in _METHODS and not (scope["method"] == "POST" and self._has_forms and is_own_form):
            return PlainTextResponse("Pages are only read: GET and HEAD.\n", 405, {"allow": ", ".join(_METHODS)})
        # A link from elsewhere may lead here; an image, script or frame of another page may not load anything.
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Another site asked for this.\n", 403)
        return None


def serve(site: Site, port: int, announce: Callable[[str], None]) -> None:
    """Returns once it was told to end. port: 0 for any that is free. announce: gets the address of the first page.

    Raises ConfigurationError (`viewer_port_unusable`) and StoreError.
    """
    if site.labels is None or site.store.exists():
        site.open_store().close()  # what is wrong with it shows now, and not on the first page
    with _bound_socket(port) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            RequestGuard(create_application(site), port, has_forms=site.labels is not None),
            interface="asgi3",
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=64 * 1024,
        )
        logging.getLogger("uvicorn").setLevel(logging.ERROR)  # any program on this machine may send nonsense
        server = _Server(config)
        # Both are how it is meant to end, and before anybody knows that it is there.
        with signals_handled((signal.SIGINT, signal.SIGTERM), server.handle_exit):
            announce(f"http://{HOST}:{port}/")
            asyncio.run(server.serve([listener]))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own raises them once more at its end, which would make a failure of it."""
        yield


def _bound_socket(port: int) -> socket.socket:
    try:
        return listen_on_loopback(port)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror)
        problem = f"view: port {port} cannot be used: {reason}. Name another one with --port, or 0 for any that is free"
        raise ConfigurationError(problem, "viewer_port_unusable") from None

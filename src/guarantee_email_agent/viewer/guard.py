"""What every request has to pass and every response carries, so that no foreign page can use a browser to read ours."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

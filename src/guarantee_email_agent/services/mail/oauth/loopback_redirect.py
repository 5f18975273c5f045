"""Where a browser brings the authorization code: a web server on loopback, for one answer (RFC 8252 §7.3)."""

from __future__ import annotations

import hmac
import html
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

_REQUEST_S: Final = 5.0  # that one connection may take: browsers open some that they never use
_POLL_S: Final = 0.05
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>guarantee-email-agent</title><p>{}"


class LoopbackRedirect:
    """A context manager. state: the random text that shows an answer to be one to our question (RFC 6749 §10.12).

    port: 0 for any. Raises OSError where it is taken.
    """

    def __init__(self, state: str, port: int = 0) -> None:
        self._state = state
        self._answer: Mapping[str, str] = {}
        self._answered = threading.Event()
        self._server = _Server(port, self._handle, self._after)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": _POLL_S}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, timeout_s: float) -> Mapping[str, str]:
        """The parameters that the browser brought: `code`, or `error`. Raises TimeoutError."""
        if not self._answered.wait(timeout_s):
            raise TimeoutError
        return self._answer

    def _handle(self, target: str) -> tuple[int, str]:
        """Status and page. A request without our state is nobody's answer: any page in the browser can make one."""
        query = dict(parse_qsl(urlsplit(target).query))
        if not hmac.compare_digest(query.get("state", "").encode(), self._state.encode()):
            return 404, "This is no answer to the sign-in that is waited for."
        if "code" not in query and "error" not in query:
            return 400, "The answer holds no authorization code."
        self._answer = self._answer or query  # what a page is loaded again for is the first answer
        said = html.escape(query.get("error", "")[:80])
        return 200, f"The sign-in was refused: {said}." if said else "Signed in. You may close this page."

    def _after(self) -> None:
        """Once the page is written: whoever waits ends the program."""
        if self._answer:
            self._answered.set()


class _Server(ThreadingHTTPServer):
    """Connections are served in threads: one that a browser holds open must not keep the next from being heard."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, handle: Callable[[str], tuple[int, str]], after: Callable[[], None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = _REQUEST_S

            def do_GET(self) -> None:
                status, text = handle(self.path)
                page = _PAGE.format(text).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(page)
                after()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the request line holds the code
                pass

        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        pass

"""Answers `/metrics`, `/healthz` and `/readyz` over HTTP, by prometheus_client's own handler, in threads."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from http.server import ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, MetricsHandler

logger = logging.getLogger(__name__)

CALLER_TIMEOUT_S: Final = 5.0
"""Seconds without a byte from a caller, or to one."""

LOOP_TIMEOUT_S: Final = 4.0
"""Less than probes wait, so that they are told."""


class MonitoringServer(ThreadingHTTPServer):
    """health: what is wrong, by path. It is asked in the event loop, so that an answer shows that the loop is alive."""

    def __init__(
        self,
        address: str,
        port: int,
        registry: CollectorRegistry,
        health: Mapping[str, Callable[[], list[str]]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Raises OSError for a place that cannot be had."""
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.health = health
        self.is_local = ipaddress.ip_address(address).is_loopback
        self._loop = loop
        super().__init__((address, port), type("Handler", (_Handler,), {"registry": registry}))

    def problems(self, path: str) -> list[str]:
        asked: Future[list[str]] = Future()

        def ask() -> None:
            try:
                asked.set_result(self.health[path]())
            except Exception as error:  # noqa: BLE001 - raised again where it is asked
                asked.set_exception(error)

        self._loop.call_soon_threadsafe(ask)
        try:
            return asked.result(LOOP_TIMEOUT_S)
        except TimeoutError:
            return ["the event loop stands still"]

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as socketserver has it
        error = sys.exception()
        level = logging.DEBUG if isinstance(error, OSError) else logging.ERROR  # a caller that went is no news
        logger.log(level, "A page of the metrics port failed: %s", type(error).__name__)
        logger.debug("The page that failed", exc_info=True)


def is_local_name(host: str) -> bool:
    """Whether a Host header (RFC 9110 §7.2) has an address, localhost or nothing, by which no DNS entry leads here."""
    try:
        name = urlsplit(f"//{host}").hostname or "localhost"
        return name == "localhost" or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class _Handler(MetricsHandler):
    timeout = CALLER_TIMEOUT_S
    server: MonitoringServer

    def do_GET(self) -> None:  # noqa: N802 - http.server's own name
        path = self.path.partition("?")[0]
        if self.server.is_local and not is_local_name(self.headers.get("Host", "")):
            self._say(421, "Ask by the address of this machine: another name may have been led here by a web page.")
        elif path == "/metrics":
            super().do_GET()
        elif path in self.server.health:
            problems = self.server.problems(path)
            self._say(503 if problems else 200, "\n".join(problems or ["ok"]))
        else:
            self._say(404, f"There are: /metrics, {', '.join(self.server.health)}.")

    def _say(self, status: int, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

"""Serves the pages on loopback until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.loopback import HOST, listen_on_loopback
from guarantee_email_agent.viewer.application import create_application
from guarantee_email_agent.viewer.guard import RequestGuard
from guarantee_email_agent.viewer.site import Site

_REASONS: Final = {
    errno.EADDRINUSE: "another program has it",
    errno.EACCES: "this user may not have it",
}


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
        with _ended_by_signals(server):  # before anybody knows that it is there
            announce(f"http://{HOST}:{port}/")
            asyncio.run(server.serve([listener]))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own raises them once more at its end, which would make a failure of it."""
        yield


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """SIGINT and SIGTERM are how it is meant to end."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, server.handle_exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _bound_socket(port: int) -> socket.socket:
    try:
        return listen_on_loopback(port)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror)
        problem = f"view: port {port} cannot be used: {reason}. Name another one with --port, or 0 for any that is free"
        raise ConfigurationError(problem, "viewer_port_unusable") from None

"""Asks a running agent for its health: in a moment, since a container does so every half minute."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Final, Literal

from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable, truncate

TIMEOUT_S: Final = 5.0
"""For everything, so that a health check of ten seconds always gets a sentence."""

MAX_ANSWER_BYTES: Final = 65_536
MAX_SHOWN_CHARS: Final = 500
_THIS_MACHINE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to ask what listens on all addresses


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """text: one line, `ok` or what is wrong."""

    is_good: bool
    text: str


def ask_health(
    settings: MetricsSettings, page: Literal["/healthz", "/readyz"], timeout_s: float = TIMEOUT_S
) -> HealthAnswer:
    """timeout_s: seconds for everything. Raises ConfigurationError where the settings name nobody to ask."""
    if not settings.enabled:
        raise ConfigurationError(
            "metrics.port and metrics.socket are not set, so that nobody can be asked. Set one of them",
            "metrics_not_configured",
        )
    deadline = time.monotonic() + timeout_s
    try:
        with _connect(settings, timeout_s) as agent:
            agent.sendall(f"GET {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return _answer(_read_all(agent, deadline))
    except TimeoutError:
        return HealthAnswer(False, f"no answer within {timeout_s:g} s")
    except OSError as error:
        return HealthAnswer(False, f"no agent answers at {_place(settings)}: {error.strerror or error}")


def _connect(settings: MetricsSettings, timeout_s: float) -> socket.socket:
    if settings.socket is None:
        assert settings.port is not None
        return socket.create_connection(
            (_THIS_MACHINE.get(settings.address, settings.address), settings.port), timeout_s
        )
    agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        agent.settimeout(timeout_s)
        agent.connect(str(settings.socket))
    except BaseException:
        agent.close()
        raise
    return agent


def _read_all(agent: socket.socket, deadline: float) -> bytes:
    received = b""
    while len(received) < MAX_ANSWER_BYTES:
        if (left_s := deadline - time.monotonic()) <= 0:
            raise TimeoutError
        agent.settimeout(left_s)
        if not (more := agent.recv(MAX_ANSWER_BYTES)):
            break
        received += more
    return received


def _answer(received: bytes) -> HealthAnswer:
    head, _, body = received.decode("utf-8", "replace").partition("\r\n\r\n")
    version, _, status = head.partition("\r\n")[0].partition(" ")
    if not version.startswith("HTTP/1") or "content-type: text/html" in head.lower():
        return HealthAnswer(False, "what answers there is no agent")
    lines = printable("; ".join(body.split("\n")).strip("; "))
    return HealthAnswer(status.startswith("200"), truncate(lines, MAX_SHOWN_CHARS) or f"HTTP {printable(status)}")


def _place(settings: MetricsSettings) -> str:
    return f"{settings.address} port {settings.port}" if settings.socket is None else str(settings.socket)

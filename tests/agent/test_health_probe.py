"""What a health check says of an agent that answers, of one that does not, and of somebody else in its place."""

from __future__ import annotations

import socket
import threading

import pytest

from guarantee_email_agent.agent.health_probe import HealthAnswer, ask_health
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.utils.errors import ConfigurationError


def answered(by: bytes, address: str = "127.0.0.1") -> HealthAnswer:
    """Somebody says this to the first who asks, and hangs up."""
    with socket.create_server((address, 0)) as listener:

        def answer() -> None:
            caller, _ = listener.accept()
            with caller:
                caller.recv(1000)
                caller.sendall(by)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            return ask_health(MetricsSettings(f"{address}:{listener.getsockname()[1]}"), "/healthz")
        finally:
            thread.join()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_an_agent_that_lives(address: str) -> None:
    assert answered(b"HTTP/1.1 200 \r\nX: y\r\n\r\nok\n", address) == HealthAnswer(True, "ok")


def test_one_that_does_not() -> None:
    answer = answered(b"HTTP/1.1 503 \r\n\r\nmail is down\nwarranty_api is down\n")
    assert answer == HealthAnswer(False, "mail is down; warranty_api is down")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"220 mail ESMTP\r\n", "what answers there is no agent"),
        (b"", "what answers there is no agent"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "HTTP 404 Not Found"),
        (b"HTTP/1.0 404 Not Found\r\nContent-Type: text/html\r\n\r\n<html>", "what answers there is no agent"),
        (b"HTTP/1.1 500 \r\n\r\n\x1b[2J", r"\x1b[2J"),
    ],
)
def test_somebody_else_in_its_place(said: bytes, text: str) -> None:
    assert answered(said) == HealthAnswer(False, text)


def test_one_that_hangs_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = MetricsSettings(f"127.0.0.1:{listener.getsockname()[1]}")
        assert ask_health(settings, "/healthz", timeout_s=0.05) == HealthAnswer(False, "no answer within 0.05 s")


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        answer = ask_health(MetricsSettings(f"127.0.0.1:{port}"), "/healthz")
    assert answer == HealthAnswer(False, f"no agent answers at 127.0.0.1 port {port}: Connection refused")


def test_a_configuration_that_names_nobody_to_ask() -> None:
    with pytest.raises(ConfigurationError, match=r"metrics\.listen is not set"):
        ask_health(MetricsSettings(), "/healthz")

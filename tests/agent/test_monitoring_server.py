"""What callers get over HTTP, from an agent that works and from one whose event loop stands still."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry, Counter

from guarantee_email_agent.agent import monitoring_server
from guarantee_email_agent.agent.monitoring_server import MonitoringServer


def broken() -> list[str]:
    raise RuntimeError("anna@example.com wrote")


@contextmanager
def serving(address: str = "127.0.0.1", *, loop_stands_still: bool = False) -> Iterator[int]:
    """The port."""
    registry = CollectorRegistry()
    Counter("mails", "Mails.", registry=registry).inc(3)
    pages = {"/healthz": list, "/readyz": lambda: ["mail is down", "llm is down"], "/broken": broken}
    loop, goes_on = asyncio.new_event_loop(), threading.Event()
    if loop_stands_still:
        loop.call_soon(goes_on.wait)
    server = MonitoringServer(address, 0, registry, pages, loop)
    threads = [threading.Thread(target=target) for target in (server.serve_forever, loop.run_forever)]
    for thread in threads:
        thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        goes_on.set()
        loop.call_soon_threadsafe(loop.stop)
        for thread in threads:
            thread.join()
        loop.close()


def ask(port: int, page: str, method: str = "GET", address: str = "127.0.0.1") -> tuple[int, str]:
    connection = HTTPConnection(address, port, timeout=30)
    connection.request(method, page)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize("page", ["/metrics", "/metrics?debug=1"])
def test_metrics(page: str) -> None:
    with serving() as port:
        status, text = ask(port, page)
    assert status == 200
    assert "\nmails_total 3.0\n" in text


@pytest.mark.parametrize(
    ("page", "answer"),
    [
        ("/healthz", (200, "ok\n")),
        ("/readyz", (503, "mail is down\nllm is down\n")),
        ("/secrets", (404, "There are: /metrics, /healthz, /readyz, /broken.\n")),
    ],
)
def test_health(page: str, answer: tuple[int, str]) -> None:
    with serving() as port:
        assert ask(port, page) == answer


@pytest.mark.parametrize(("address", "caller"), [("::1", "::1"), ("::", "127.0.0.1")])
def test_it_listens_on_ipv6_too(address: str, caller: str) -> None:
    with serving(address) as port:
        assert ask(port, "/healthz", address=caller) == (200, "ok\n")


def test_an_event_loop_that_stands_still_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring_server, "LOOP_TIMEOUT_S", 0.01)
    with serving(loop_stands_still=True) as port:
        assert ask(port, "/healthz") == (503, "the event loop stands still\n")


def test_a_page_that_fails_says_so_in_the_log_alone(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving() as port, pytest.raises(OSError):
        ask(port, "/broken")
    assert [record.getMessage() for record in caplog.records] == ["A page of the metrics port failed: RuntimeError"]
    assert "anna" not in capfd.readouterr().err


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\n"])
def test_who_says_nothing_more_is_let_go(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guarantee_email_agent.agent.monitoring_server._Handler.timeout", 0.05)
    with serving() as port, socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
        caller.sendall(said)
        assert caller.recv(100) == b""


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:9464", 200), ("[::1]:9464", 200), ("localhost", 200), ("", 200), ("evil.example", 421), ("[", 421)],
)
def test_a_name_that_a_web_page_may_have_led_here_is_refused_on_loopback(host: str, status: int) -> None:
    with serving() as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/metrics", headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()

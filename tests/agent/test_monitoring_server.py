"""What callers get, and how little they can take."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from guarantee_email_agent.agent import monitoring_server
from guarantee_email_agent.agent.listeners import listen_on_port, listen_on_unix_socket
from guarantee_email_agent.agent.monitoring_server import MAX_CONNECTIONS, MAX_REQUEST_BYTES, Answer, MonitoringServer

FIGURES = b"mails_total 3\n"


def broken() -> Answer:
    raise RuntimeError("anna@example.com wrote")


@asynccontextmanager
async def served(*host_names: str) -> AsyncIterator[int]:
    """The port."""
    server = MonitoringServer({"/metrics": lambda: Answer(200, FIGURES), "/broken": broken}, host_names)
    listening = await server.serve(listen_on_port("127.0.0.1", 0))
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        await server.close()


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def answer_to(request: str, *host_names: str) -> tuple[str, str]:
    """The status line, and the body."""

    async def run() -> bytes:
        async with served(*host_names) as port:
            return await ask(port, request.replace("\n", "\r\n").encode())

    head, _, body = asyncio.run(run()).decode().partition("\r\n\r\n")
    return head.partition("\r\n")[0], body


class TestAnswers:
    def test_a_page(self) -> None:
        assert answer_to("GET /metrics HTTP/1.1\nHost: localhost\n\n") == ("HTTP/1.1 200 ", FIGURES.decode())

    def test_head_has_no_body(self) -> None:
        assert answer_to("HEAD /metrics HTTP/1.1\nHost: localhost\n\n") == ("HTTP/1.1 200 ", "")

    def test_a_query_changes_nothing(self) -> None:
        assert answer_to("GET /metrics?debug=1 HTTP/1.1\nHost: localhost\n\n")[1] == FIGURES.decode()

    @pytest.mark.parametrize(
        ("request_text", "status"),
        [
            ("GET /secrets HTTP/1.1\nHost: localhost\n\n", "404"),
            ("POST /metrics HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n", "405"),
            ("GET /metrics HTTP/1.1\n\n", "400"),
            ("GET /metrics HTTP/1.0\n\n", "421"),
            ("EHLO mail\n\n", "400"),
            (f"GET /{'x' * 2 * MAX_REQUEST_BYTES} HTTP/1.1\nHost: localhost\n\n", "431"),
        ],
    )
    def test_what_is_refused(self, request_text: str, status: str) -> None:
        assert answer_to(request_text)[0].split()[1] == status

    def test_a_page_that_fails_does_not_say_of_what(self) -> None:
        status, body = answer_to("GET /broken HTTP/1.1\nHost: localhost\n\n")
        assert (status.split()[1], "anna" in body) == ("500", False)


class TestHost:
    @pytest.mark.parametrize(
        "host", ["localhost", "localhost:9464", "127.0.0.1:9464", "[::1]:9464", "10.1.2.3", "AGENT:80"]
    )
    def test_addresses_and_names_that_are_ours(self, host: str) -> None:
        assert answer_to(f"GET /metrics HTTP/1.1\nHost: {host}\n\n", "agent")[0].split()[1] == "200"

    @pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::1", ""])
    def test_a_name_that_somebody_lets_resolve_to_us(self, host: str) -> None:
        assert answer_to(f"GET /metrics HTTP/1.1\nHost: {host}\n\n", "agent")[0].split()[1] == "421"

    def test_over_the_unix_socket_nobody_asks_for_it(self, tmp_path: Path) -> None:
        async def run() -> bytes:
            server = MonitoringServer({"/metrics": lambda: Answer(200, FIGURES)})
            listening = await server.serve(listen_on_unix_socket(tmp_path / "metrics.sock"))
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "metrics.sock"))
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: whoever\r\n\r\n")
            answer = await reader.read()
            writer.close()
            listening.close()
            await server.close()
            return answer

        assert asyncio.run(run()).endswith(FIGURES)


class TestBounds:
    def test_who_says_nothing_is_let_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(monitoring_server, "REQUEST_TIMEOUT_S", 0.05)

        async def run() -> bytes:
            async with served() as port:
                return await ask(port, b"GET /metrics HTTP/1.1\r\n")

        assert asyncio.run(run()) == b""

    def test_who_takes_nothing_is_let_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(monitoring_server, "REQUEST_TIMEOUT_S", 0.05)

        async def run() -> None:
            pages = {"/metrics": lambda: Answer(200, b"x" * 50_000_000)}
            server = MonitoringServer(pages)
            listening = await server.serve(listen_on_port("127.0.0.1", 0))
            with socket.create_connection(listening.sockets[0].getsockname()) as caller:
                caller.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                caller.setblocking(False)
                await is_so(lambda: len(server.callers) == 1)
                await is_so(lambda: len(server.callers) == 0)
            listening.close()
            await server.close()

        asyncio.run(run())

    def test_who_takes_nothing_does_not_keep_the_agent_from_ending(self) -> None:
        async def run() -> None:
            server = MonitoringServer({"/metrics": lambda: Answer(200, b"x" * 50_000_000)})
            listening = await server.serve(listen_on_port("127.0.0.1", 0))
            with socket.create_connection(listening.sockets[0].getsockname()) as caller:
                caller.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                caller.setblocking(False)
                await is_so(lambda: any(w.transport.get_write_buffer_size() for w in server.callers.values()))
                listening.close()
                await server.close()

        asyncio.run(run())

    def test_a_crowd_keeps_no_probe_out(self) -> None:
        async def run() -> bytes:
            async with served() as port:
                crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MAX_CONNECTIONS)]
                answer = await ask(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                for _, writer in crowd:
                    writer.close()
                return answer

        assert asyncio.run(run()).endswith(FIGURES)

    def test_what_is_sent_on_top_is_not_kept(self) -> None:
        async def run() -> bytes:
            async with served() as port:
                request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n"
                return await ask(port, request + b"x" * 100_000)

        assert FIGURES in asyncio.run(run())


async def is_so(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)

"""The socket that servers listen on, and which hosts are this machine."""

import asyncio
import socket

import pytest

from guarantee_email_agent.utils.loopback import HOST, is_loopback, listen_on_loopback


def test_what_asyncio_accepts_there_sends_at_once() -> None:
    async def no_delay() -> int:
        connected: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            connected.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(on_connection, sock=listen_on_loopback()) as server:
            place = server.sockets[0].getsockname()
            assert place[0] == HOST
            _, writer = await asyncio.open_connection(*place)
            set_ = await connected
            writer.close()
            await writer.wait_closed()
            return set_

    assert asyncio.run(no_delay()) != 0


def test_a_port_that_is_taken_is_an_error() -> None:
    with listen_on_loopback() as taken, pytest.raises(OSError, match="in use"):
        listen_on_loopback(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost.example.com", False),
        ("192.0.2.1", False),
        ("mail.example.com", False),
    ],
)
def test_this_machine_is_known_by_its_name(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected

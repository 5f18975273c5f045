"""A judge that may look into a sandbox reaches that port, and nothing else of this machine."""

import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from guarantee_email_agent.judging.judge import JudgePool
from guarantee_email_agent.judging.port_relay import PortRelay
from guarantee_email_agent.judging.verdict import Verdict

if sys.platform != "linux":
    pytest.skip("only Linux has network namespaces", allow_module_level=True)

pytestmark = [
    pytest.mark.parametrize("pool", ["forked", "plain-user"], indirect=True, scope="module"),
    pytest.mark.slow,
]
OK = 'return {"passed": True, "feedback": "fine"}'
CONNECT = "import socket\ndef connect(port, host='127.0.0.1'): return socket.create_connection((host, port), 10)"

Ask = Callable[..., Verdict]


class _Echo(socketserver.BaseRequestHandler):
    """Answers in capitals once the other side has said all that it wants to."""

    def handle(self) -> None:
        received = b""
        while part := self.request.recv(1 << 16):
            received += part
        self.request.sendall(received.upper())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def serve(handler: type[socketserver.BaseRequestHandler] = _Echo) -> Iterator[int]:
    with _Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(autouse=True)
def _namespaces(pool: JudgePool) -> None:
    if not pool.isolation().namespaces:
        pytest.skip(f"this machine has no namespaces for judges: {pool.isolation().why}")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("size", [3, 3_000_000])
def test_the_port_answers(ask: Ask, host: str, size: int) -> None:
    talk = (
        f"with connect(result['port'], {host!r}) as sandbox:",
        f"    sandbox.sendall(b'a' * {size}); sandbox.shutdown(socket.SHUT_WR)",
        "    answer = b''.join(iter(lambda: sandbox.recv(65536), b''))",
        f"assert answer == b'A' * {size}",
    )
    with serve() as port:
        assert ask(*talk, OK, head=CONNECT, record={"port": port}, sandbox_port=port).error is None


def test_another_port_of_this_machine_does_not(ask: Ask) -> None:
    with serve() as port, serve() as other:
        error = ask("connect(result['port'])", head=CONNECT, record={"port": other}, sandbox_port=port).error
    assert "ConnectionRefusedError" in str(error)


def test_nor_another_address(ask: Ask) -> None:
    with serve() as port:
        error = ask(
            "connect(result['port'], '192.0.2.1')", head=CONNECT, record={"port": port}, sandbox_port=port
        ).error
    assert "Network is unreachable" in str(error)


def test_a_sandbox_that_is_gone_refuses(ask: Ask) -> None:
    with serve() as port:
        pass
    assert "ConnectionRefusedError" in str(ask(f"connect({port})", head=CONNECT, sandbox_port=port).error)


def test_more_connections_than_are_passed_on_at_a_time(ask: Ask) -> None:
    talk = (
        "for _ in range(3):",
        "    open_ones = [connect(result['port']) for _ in range(60)]",
        "    for each in open_ones: each.sendall(b'x'); each.shutdown(socket.SHUT_WR)",
        "    assert [each.recv(9) for each in open_ones] == [b'X'] * 60",
    )
    with serve() as port:
        assert ask(*talk, OK, head=CONNECT, record={"port": port}, sandbox_port=port).error is None


def test_connections_end_with_the_verdict(ask: Ask) -> None:
    ended = threading.Event()

    class Waiting(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"x")
            if self.request.recv(1) == b"":
                ended.set()

    leave = "kept = connect(result['port']); assert kept.recv(1) == b'x'; os.fork() or time.sleep(600)"
    with serve(Waiting) as port:
        record = {"port": port}
        assert ask(leave, OK, head=f"{CONNECT}\nimport os, time", record=record, sandbox_port=port).verdict == "passed"
        assert ended.wait(20)


def test_a_relay_can_be_left_at_any_moment_of_a_connection(pool: JudgePool) -> None:
    def leave() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=1000) as sandbox:
            for moment in range(1000):
                listener = socket.create_server(("127.0.0.1", 0))
                client = socket.create_connection(listener.getsockname())
                with closing(client), PortRelay(listener, sandbox.getsockname()[1]):
                    for _ in range(moment % 400):
                        pass

    leaving = threading.Thread(target=leave, daemon=True)
    leaving.start()
    leaving.join(120)
    assert not leaving.is_alive()

"""The HTTP front: whom it answers, and what it takes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import httpx
import pytest
from running_sandbox import Box, MakeBox

from guarantee_email_agent.isolation.processes import FIRST_SANDBOX_USER
from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.embedded import BROWSERS
from guarantee_email_agent.sandbox.http_server import RELAYS


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "127.0.0.1:PORT"}, 200),
        ({"Host": "evil.example:PORT"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:PORT"}, 200),
    ],
)
def test_it_is_reached_under_its_own_names_and_by_no_page_of_another_origin(
    box: Box, headers: dict[str, str], status: int
) -> None:
    port = str(box.sandbox.docker_port)
    headers = {name: value.replace("PORT", port) for name, value in headers.items()}
    answer = httpx.get(f"{box.sandbox.base_url}/v1/sandbox", headers=headers)
    assert (answer.status_code, answer.json()["success"]) == (status, status == 200)


NOBODY = 65534
OTHER_USER = """
import os, socket, sys
port, way, user, command = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4].encode()
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
body = b'{"command": "%s"}' % command
request = b"POST /v1/shell/exec HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
kept = []
for _ in range(1 if "address" in way else 100):
    connection = socket.socket(socket.AF_INET6 if way == "other address" else socket.AF_INET)
    connection.settimeout(10)
    connection.connect(("::ffff:127.0.0.1" if way == "other address" else "127.0.0.1", port))
    if way != "silent":
        connection.sendall(request)
    if way == "gone at once":
        connection.close()
    kept.append(connection)
print(connection.recv(100).split()[1].decode() if "address" in way else "done", flush=True)
sys.stdin.read()
"""


def _connect_as(user: int, box: Box, way: str, command: str) -> subprocess.Popen[str]:
    arguments = (str(box.sandbox.docker_port), way, str(user), command)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", OTHER_USER, *arguments], **pipes)


NO_ACCOUNT = 2_000_000_001


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(
    ("user", "status"),
    [(NOBODY, 403), (FIRST_SANDBOX_USER + 1, 403), (NO_ACCOUNT, 403), (NO_ACCOUNT + 1, 200)],
    ids=["nobody", "another sandbox", "no account", "a judge of ours"],
)
def test_it_answers_us_and_our_judges_and_nobody_else(
    box: Box, user: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guarantee_email_agent.sandbox.http_server.judge_users", {NO_ACCOUNT + 1})
    with _connect_as(user, box, "usual address", "true") as client:
        assert client.communicate("")[0] == f"{status}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(("user", "status"), [(0, b"403"), (NOBODY, b"200")], ids=["root", "ourselves"])
def test_without_root_it_answers_not_even_root(box: Box, user: int, status: bytes) -> None:
    """Strangers may come through a program of root's, such as a proxy."""
    with socket.socket() as roots:
        os.seteuid(NOBODY)
        try:
            with socket.socket() if user else roots as connection:
                connection.connect(("127.0.0.1", box.sandbox.docker_port))
                connection.sendall(b"GET /v1/sandbox HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert connection.recv(100).split()[1] == status
        finally:
            os.seteuid(0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_nobody_can_take_the_other_address_of_localhost(make_box: MakeBox) -> None:
    box = make_box(SandboxSettings(network=True))
    port = box.sandbox.docker_port
    code = f"import socket\ntry: socket.create_server(('::1', {port}), family=socket.AF_INET6)\n"
    assert box.python(f"{code}except OSError as error: print(error.strerror)").stdout.startswith(
        "Address already in use"
    )
    assert httpx.get(f"http://[::1]:{port}/v1/sandbox").status_code == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("way", ["other address", "gone at once", "silent"])
def test_another_user_does_nothing_and_keeps_nobody_out(box: Box, way: str) -> None:
    with _connect_as(NOBODY, box, way, "touch /tmp/been") as client:
        assert client.stdout is not None
        assert client.stdout.readline() == ("403\n" if way == "other address" else "done\n")
        assert box.output("ls /tmp/been 2>&1").startswith("ls: cannot access")
        client.communicate("")


def test_a_body_may_come_in_chunks(box: Box) -> None:
    chunks = iter((b'{"command":', b' "echo chunked"}'))
    answer = httpx.post(f"{box.sandbox.base_url}/v1/shell/exec", content=chunks)
    assert answer.json()["data"]["output"] == "chunked"


def test_connections_are_kept_open(box: Box) -> None:
    with httpx.Client() as client:
        for _ in range(3):
            assert client.get(f"{box.sandbox.base_url}/v1/sandbox").status_code == 200


pytestmark = pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"there is none of {', '.join(BROWSERS)}")

TEXT, CLOSE, PING, PONG, LAST = 1, 8, 9, 10, 0x80
KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # the example of RFC 6455 §1.3


class Client:
    """The least that a WebSocket client does."""

    def __init__(self, box: Box, path: str = "/devtools/browser", **headers: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", box.sandbox.docker_port), timeout=20)
        usual = {"Host": f"localhost:{box.sandbox.docker_port}", "Connection": "Upgrade", "Upgrade": "websocket"}
        usual |= {"Sec-WebSocket-Key": KEY, "Sec-WebSocket-Version": "13"}
        sent = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items() if value), "", ""]
        self._socket.sendall("\r\n".join(lines).encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = dict(line.decode().strip().split(": ", 1) for line in iter(self._file.readline, b"\r\n"))
        self._number = 0

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send(self, payload: bytes, first: int = LAST | TEXT, mask: bytes = b"\1\2\3\4") -> None:
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
        length = bytes((LAST | len(payload),)) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
        self.send_raw(bytes((first,)) + length + mask + masked)

    def receive(self) -> tuple[int, bytes]:
        """Kind and content of the next frame; kind 0 where the connection has ended."""
        if len(head := self._file.read(2)) < 2:
            return 0, b""
        length = head[1]
        if length > 125:
            length = int.from_bytes(self._file.read(2 if length == 126 else 8), "big")
        return head[0] & 0x0F, self._file.read(length)

    def is_over(self) -> bool:
        """Reads to the end."""
        while self.receive()[0]:
            pass
        return True

    def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """The result of a command; events before it are dropped."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        self.send(json.dumps(message | ({"sessionId": session} if session else {})).encode())
        while True:
            kind, content = self.receive()
            assert kind == TEXT, "the connection has ended"
            if (reply := json.loads(content)).get("id") == self._number:
                return reply.get("result", reply)

    def attach(self) -> str:
        """Session of the page that the API uses."""
        pages = [info for info in self.call("Target.getTargets")["targetInfos"] if info["type"] == "page"]
        return str(self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"])

    def evaluate(self, session: str, expression: str) -> Any:
        return self.call("Runtime.evaluate", session, expression=expression)["result"].get("value")


@pytest.fixture
def client(box: Box) -> Iterator[Client]:
    with closing(Client(box)) as client:
        assert (client.status, client.headers["Sec-WebSocket-Accept"]) == (101, ACCEPT)
        yield client


def test_the_address_that_clients_are_given_leads_through_the_apis_port(box: Box) -> None:
    address = box.real.browser.get_info().data.cdp_url
    assert address == f"ws://localhost:{box.sandbox.docker_port}/devtools/browser"
    for path in ("/json/version", "/json/version/"):
        version = httpx.get(box.sandbox.base_url + path).json()
        assert version["webSocketDebuggerUrl"] == address
        assert "Chrome" in version["Browser"]


def test_a_client_drives_the_page_that_the_api_sees(box: Box, client: Client) -> None:
    assert "Chrome" in client.call("Browser.getVersion")["product"]
    session = client.attach()
    assert client.evaluate(session, "document.title = 'from outside'") == "from outside"
    assert box.real.browser_page.evaluate(expression="document.title").data == "from outside"
    assert len(client.evaluate(session, "'x'.repeat(3e6)")) == 3_000_000


def test_the_first_client_starts_the_browser(make_box: MakeBox) -> None:
    with closing(Client(make_box())) as client:
        assert client.status == 101
        assert "Chrome" in client.call("Browser.getVersion")["product"]


def test_a_page_has_an_address_of_its_own(box: Box, client: Client) -> None:
    target = client.call("Target.createTarget", url="about:blank")["targetId"]
    with closing(Client(box, f"/devtools/page/{target}")) as page:
        assert page.evaluate("", "location.href") == "about:blank"
    client.call("Target.closeTarget", targetId=target)


def test_clients_get_nothing_that_is_meant_for_others(box: Box, client: Client) -> None:
    with closing(Client(box)) as other:
        session = other.attach()
        other.call("Runtime.enable", session)
        assert other.evaluate(session, "console.log('for one'), 1") == 1
        # Both count from 1 on. What comes before the answer would be another's.
        client.send(json.dumps({"id": "any", "method": "Browser.getVersion"}).encode())
        assert json.loads(client.receive()[1])["id"] == "any"


def test_messages_come_in_pieces_and_pings_between_them(client: Client) -> None:
    message = json.dumps({"id": 7, "method": "Browser.getVersion"}).encode()
    client.send(message[:10], first=TEXT)
    client.send(b"hello", first=LAST | PING)
    client.send(message[10:], first=LAST)
    assert client.receive() == (PONG, b"hello")
    assert json.loads(client.receive()[1])["id"] == 7


def test_with_the_hosts_network_no_port_is_open_to_others(make_box: MakeBox) -> None:
    box = make_box(SandboxSettings(network=True))
    search = "grep -l remote-debugging-por[t] /proc/[0-9]*/cmdline"
    with closing(Client(box)), closing(Client(alone := make_box())):
        assert "cmdline" in alone.output(search)
        assert box.output(search) == ""


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/devtools/browser", {"Origin": "https://evil.example"}, 403),
        ("/devtools/browser", {"Host": "evil.example"}, 403),
        ("/devtools/browser", {"Sec_WebSocket_Key": "short"}, 400),
        ("/devtools/browser", {"Connection": "close"}, 400),
        ("/devtools/browser", {"Sec_WebSocket_Version": "8"}, 426),
        ("/devtools/page/../browser", {}, 404),
        ("/v1/shell/ws", {}, 404),
    ],
    ids=["page of another origin", "other name", "no key", "no upgrade", "old version", "odd path", "other path"],
)
def test_who_may_not_connect_is_refused_in_json(box: Box, path: str, headers: dict[str, str], status: int) -> None:
    with closing(Client(box, path, **headers)) as client:
        assert (client.status, client.headers["Content-Type"]) == (status, "application/json")


def frame(first: int, length: int, rest: bytes = b"") -> bytes:
    return bytes((first, length)) + rest


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(LAST | TEXT, 2, b"{}"), 1002),
        (frame(LAST | 0x40 | TEXT, LAST | 2, b"\0\0\0\0{}"), 1002),
        (frame(PING, LAST | 1, b"\0\0\0\0x"), 1002),
        (frame(LAST | TEXT, LAST | 127, (1 << 40).to_bytes(8, "big")), 1009),
        (frame(LAST | CLOSE, LAST | 0, b"\0\0\0\0"), 1000),
    ],
    ids=["no mask", "unknown extension", "ping in pieces", "a terabyte", "goodbye"],
)
def test_what_is_no_websocket_is_told_so_and_disconnected(client: Client, sent: bytes, code: int) -> None:
    client.send_raw(sent)
    assert client.receive() == (CLOSE, code.to_bytes(2, "big"))
    assert client.is_over()


@pytest.mark.parametrize(
    "text", [b"", b"nothing", b"[]", b'"x"', b"{}", b"[" * 60_000, b'{"id": 1}\0{"id": 2}', b"\xff"]
)
def test_what_is_no_message_ends_the_connection_and_nothing_else(box: Box, client: Client, text: bytes) -> None:
    client.send(text)
    assert client.is_over()
    assert box.real.browser_page.evaluate(expression="1 + 1").data == 2


def test_a_client_that_leaves_in_the_middle_harms_nobody(box: Box) -> None:
    for sent in (b"", b"\x81", frame(LAST | TEXT, LAST | 126), frame(LAST | TEXT, LAST | 100, b"\0\0\0\0half")):
        with closing(Client(box)) as client:
            client.send_raw(sent)
    assert box.real.browser_page.evaluate(expression="1 + 1").data == 2


def test_so_many_connect_and_no_more_until_one_has_left(box: Box) -> None:
    with ExitStack() as clients:
        statuses = [clients.enter_context(closing(Client(box))).status for _ in range(RELAYS + 1)]
        assert statuses == [101] * RELAYS + [503]
        assert httpx.get(f"{box.sandbox.base_url}/v1/sandbox").status_code == 200
    for _ in range(1_000):
        with closing(Client(box)) as client:
            if client.status == 101:
                return
    pytest.fail("nobody was let in again")


def test_a_connection_ends_with_the_browser(box: Box) -> None:
    with closing(Client(box)) as client:
        client.call("Browser.close")
        assert client.is_over()
    with closing(Client(box)) as client:
        assert client.status == 101


def test_a_connection_ends_with_the_sandbox(make_box: MakeBox) -> None:
    box = make_box()
    with closing(Client(box)) as client:
        box.sandbox.stop()
        assert client.is_over()


def test_a_dialog_is_the_clients_until_it_leaves(box: Box) -> None:
    with closing(Client(box)) as client:
        session = client.attach()
        client.call("Page.enable", session)
        client.call("Runtime.evaluate", session, expression="setTimeout(() => window.said = confirm('?'))")
        while json.loads(client.receive()[1]).get("method") != "Page.javascriptDialogOpening":
            pass
        client.call("Page.handleJavaScriptDialog", session, accept=False)
        assert client.evaluate(session, "said") is False
        client.call("Runtime.evaluate", session, expression="setTimeout(() => window.said = confirm('?'))")
        while json.loads(client.receive()[1]).get("method") != "Page.javascriptDialogOpening":
            pass
    assert box.real.browser_page.evaluate(expression="said").data is True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.usefixtures("client")  # what connecting imports may lie where another user cannot read
def test_another_user_gets_nothing(box: Box) -> None:
    user = 65534
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.write(writer, str(Client(box).status).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert os.read(reader, 10) == b"403"
    os.close(reader)

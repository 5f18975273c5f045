"""The HTTP front: whom it answers, and what it takes."""

import os
import socket
import subprocess
import sys
from typing import Any

import httpx
import pytest
from processes import NOBODY, as_nobody
from running_sandbox import Box, MakeBox

from guarantee_email_agent.isolation.processes import FIRST_SANDBOX_USER
from guarantee_email_agent.sandbox import SandboxSettings


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
    with socket.socket() as roots, as_nobody(), socket.socket() if user else roots as connection:
        connection.connect(("127.0.0.1", box.sandbox.docker_port))
        connection.sendall(b"GET /v1/sandbox HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).split()[1] == status


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
        assert client.stdout.readline() == ("403\n" if way == "other address" else "done\n")
        assert box.output("ls /tmp/been 2>&1").startswith("ls: cannot access")
        client.communicate("")

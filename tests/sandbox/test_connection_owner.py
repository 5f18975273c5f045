"""Whose a connection is: the user that made it, and nobody where that is not sure."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from guarantee_email_agent.sandbox import http_server
from guarantee_email_agent.sandbox.http_server import owner_of, stand_in_user

NOBODY = 65_534
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset

NO_PROTOCOL = 31  # of netlink

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture(autouse=True, params=["asked", "table"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the kernel tells: as it does where it can be asked, or by its tables alone."""
    if request.param == "table":
        monkeypatch.setattr(http_server, "_SOCK_DIAG", NO_PROTOCOL)
    else:
        monkeypatch.setattr(http_server, "_TABLES", {4: os.devnull, 6: os.devnull})
    return str(request.param)


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server((request.param, 0), family=family) as listener:
        yield listener


def _bind_where_no_other_comes(ours: socket.socket) -> None:
    """To a port that the kernel gives nobody who asks for any, so that it is still free once it is closed."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    host = "::1" if ours.family == socket.AF_INET6 else "127.0.0.1"
    for port in range(lowest - 1 - os.getpid() % 10_000, 1024, -1):
        with suppress(OSError):
            return ours.bind((host, port))
    raise OSError("no port is free")


def _socket_of(user: int, listener: socket.socket) -> socket.socket:
    """Connected, and made by a user."""
    if user != os.geteuid():
        os.seteuid(user)
    try:
        made = socket.socket(listener.family)  # `create_connection` may have to import what a stranger cannot read
    finally:
        if os.getuid() != os.geteuid():
            os.seteuid(os.getuid())
    _bind_where_no_other_comes(made)
    made.connect(listener.getsockname())
    return made


def test_our_own(listener: socket.socket) -> None:
    with _socket_of(os.geteuid(), listener), listener.accept()[0] as accepted:
        assert owner_of(accepted) == os.geteuid()


@as_root
def test_it_stays_who_made_it_whoever_has_it_then(listener: socket.socket) -> None:
    with _socket_of(NOBODY, listener) as theirs, listener.accept()[0] as accepted:
        assert owner_of(accepted) == NOBODY  # and it is root that has it now
        theirs.sendall(b"x")
        assert owner_of(accepted) == NOBODY


def test_an_ipv6_socket_at_an_ipv4_address() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        with listener.accept()[0] as accepted:
            assert owner_of(accepted) == os.geteuid()


@pytest.mark.parametrize("reset", [False, True])
def test_nobodys_once_the_other_end_is_closed(listener: socket.socket, reset: bool) -> None:
    client = _socket_of(os.geteuid(), listener)
    with listener.accept()[0] as accepted:
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
        assert owner_of(accepted) is None


@as_root
def test_whoever_takes_a_port_over_is_not_taken_for_who_had_it(listener: socket.socket) -> None:
    """A stranger sends a request, resets the connection, and waits for us to come from the same port."""
    stranger = _socket_of(NOBODY, listener)
    stranger.sendall(b"a request")
    place = stranger.getsockname()
    with listener.accept()[0] as accepted:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        stranger.close()
        with socket.socket(listener.family) as ours:
            ours.bind(place)
            ours.connect(listener.getsockname())
            assert owner_of(accepted) is None
            with listener.accept()[0] as next_one:
                assert owner_of(next_one) == 0


IN_A_USER_NAMESPACE = """
import ctypes, os, socket, sys
port, user = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
libc = ctypes.CDLL(None)
libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: a change of user took it
if libc.unshare(0x10000000):
    sys.exit(3)
with open("/proc/self/uid_map", "w") as file:
    file.write(f"0 {user} 1")
connection = socket.socket()
connection.connect(("127.0.0.1", port))
print(os.getuid(), flush=True)
sys.stdin.read()
"""


@as_root
def test_a_user_namespace_makes_nobody_us() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        with subprocess.Popen(
            [sys.executable, "-c", IN_A_USER_NAMESPACE, port, str(NOBODY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            if not (user := client.stdout.readline()):
                pytest.skip("this machine lets users have no user namespaces")
            with listener.accept()[0] as accepted:
                assert (user, owner_of(accepted)) == ("0\n", NOBODY)
            client.communicate("")


def test_a_user_that_stands_for_all_without_a_number() -> None:
    """Inside a user namespace: without one, every user has a number."""
    program = "from guarantee_email_agent.sandbox.http_server import stand_in_user; print(stand_in_user())"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"this machine lets us have no user namespace: {done.stderr.strip()}")
    with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
        assert done.stdout == file.read()
    with open("/proc/self/uid_map", encoding="ascii") as file:
        assert (stand_in_user() is None) == (file.read().split() == ["0", "0", "4294967295"])

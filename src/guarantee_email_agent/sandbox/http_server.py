"""The sandbox's HTTP API on loopback. It passes requests on to the process inside, and understands none of them."""

from __future__ import annotations

import errno
import os
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from guarantee_email_agent.isolation.processes import judge_users
from guarantee_email_agent.sandbox.inside.api_request import KINDS, Reply, RequestError
from guarantee_email_agent.sandbox.sandbox_process import SandboxProcess
from guarantee_email_agent.utils.errors import TaskError

_ESTABLISHED: Final = 1
_TABLES: Final = {4: "/proc/self/net/tcp", 6: "/proc/self/net/tcp6"}
_ALL_USERS: Final = ["0", "0", "4294967295"]

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
_HEADER: Final = struct.Struct("=IHHII")
_NO_COOKIE: Final = 0xFFFFFFFF
_FACTS: Final = struct.Struct("=BB62xII")  # struct inet_diag_msg: family, state, then user, inode
_WAIT_S: Final = 1.0

_Address = tuple[str, int]


class _Socket(NamedTuple):
    state: int
    user: int
    inode: int


def owner_of(connection: socket.socket) -> int | None:
    """The user that made the socket at the other end, whoever holds it now: TCP has no SO_PEERCRED.

    The kernel is asked. Where it lacks what answers (sock_diag(7), its module tcp_diag), its tables tell the same a
    hundred times slower.

    None where that cannot be told: the other end is closed or closing, or not in our network namespace, or its user
    has no number in our user namespace.
    """
    try:
        ours, theirs = connection.getsockname()[:2], connection.getpeername()[:2]
        found = _ask_kernel(theirs, ours) or _find_in_tables(theirs, ours)
        # Its port may meanwhile be another's. As long as our end has noticed nothing, it is not.
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        return None
    # A socket that nobody holds has no inode, and counts as root's.
    if found is None or found.state != _ESTABLISHED or found.inode == 0 or state != _ESTABLISHED:
        return None
    return None if found.user == stand_in_user() else found.user


def stand_in_user() -> int | None:
    """The number that the kernel gives for every user that our user namespace has none for; None where it has all."""
    with suppress(FileNotFoundError), open("/proc/self/uid_map", encoding="ascii") as file:
        if file.read().split() != _ALL_USERS:
            return int(Path("/proc/sys/kernel/overflowuid").read_text("ascii"))
    return None


def _ask_kernel(local: _Address, remote: _Address) -> _Socket | None:
    """None where there is no such socket, or no answer."""
    family = socket.AF_INET if ip_address(local[0]).version == 4 else socket.AF_INET6
    addresses = (ip_address(address).packed.ljust(16, b"\0") for address, _ in (local, remote))
    question = b"".join(
        (
            struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << _ESTABLISHED),
            struct.pack(">HH", local[1], remote[1]),
            *addresses,
            struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE),
        )
    )
    with suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_WAIT_S)
        kernel.connect((0, 0))  # takes messages of the kernel alone
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
        answer = kernel.recv(4096)
        if _HEADER.unpack_from(answer)[1] == _BY_FAMILY:
            _, state, user, inode = _FACTS.unpack_from(answer, _HEADER.size)
            return _Socket(state, user, inode)
    return None


def _find_in_tables(local: _Address, remote: _Address) -> _Socket | None:
    """As proc(5) describes /proc/net/tcp."""
    places = [(_TABLES[ip_address(local[0]).version], local[0], remote[0])]
    if "." in local[0]:
        # The other end may be an IPv6 socket that reached us by the IPv4 address within it.
        places.append((_TABLES[6], f"::ffff:{local[0]}", f"::ffff:{remote[0]}"))
    for table, own, other in places:
        entry = f"{_hex(own)}:{local[1]:04X} {_hex(other)}:{remote[1]:04X} ".encode()
        with suppress(OSError), open(table, "rb") as file:
            for line in file:
                if entry in line:
                    fields = line.split()
                    return _Socket(int(fields[3], 16), int(fields[7]), int(fields[9]))
    return None


def _hex(address: str) -> str:
    """As the kernel writes it: each four bytes in the machine's order."""
    packed = ip_address(address).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


_MAX_REQUEST_BYTES: Final = 96 << 20
_LINGER_S: Final = 2.0
_LINGER_READS: Final = 1_000
_DECIMAL: Final = re.compile(r"[0-9]+")
_MAX_DIGITS: Final = 20
_CONNECTIONS: Final = 64
_IDLE_S: Final = 300.0
_OTHER_USER: Final = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_PAUSE_S: Final = 0.05
_QUEUE: Final = 128
_TRIES: Final = 20
_HOST_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class ApiServer:
    """Listens on a free port of `localhost`, and serves it once started. Raises OSError, and TaskError."""

    process: SandboxProcess
    reply_s: float

    def __init__(self) -> None:
        if os.geteuid() == stand_in_user():
            raise TaskError(
                "in this user namespace every stranger looks like our own user. Run as a user that it has a number for",
                "sandbox_user",
            )
        self._listeners = _listen()
        self.port: int = self._listeners[0].getsockname()[1]
        self._acceptors: list[threading.Thread] = []
        self._slots = threading.BoundedSemaphore(_CONNECTIONS)

    def start(self, process: SandboxProcess, reply_s: float) -> None:
        """reply_s: seconds that a request may take."""
        self.process, self.reply_s = process, reply_s
        for listener in self._listeners:
            thread = threading.Thread(target=self._accept, args=(listener,), name="sandbox-api", daemon=True)
            thread.start()
            self._acceptors.append(thread)

    def close(self) -> None:
        for listener in self._listeners:
            # Wakes whoever waits for a connection, at once.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
        while self._acceptors:
            self._acceptors.pop().join()
        for listener in self._listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOMEM):
                    time.sleep(_PAUSE_S)  # until a connection ends
                    continue
                return
            # A flood of connections must neither start threads without end nor keep us out.
            if not _is_served(owner_of(connection)):
                with connection, suppress(OSError):
                    connection.send(_OTHER_USER)
            elif self._slots.acquire(timeout=1.0):
                threading.Thread(target=self._serve, args=(connection, address), daemon=True).start()
            else:
                connection.close()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        try:
            with connection, suppress(Exception):  # a client may disconnect at any time, or send what cannot be parsed
                _RequestHandler(connection, address, cast("Any", self))
                connection.shutdown(socket.SHUT_WR)
        finally:
            self._slots.release()


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sandbox"
    sys_version = ""
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the standard library gives
        """Requests are in the record of the run."""

    def _answer(self) -> None:
        try:
            if reason := self._rejection_reason():
                raise RequestError(403, reason)
            server = cast("ApiServer", self.server)
            reply = server.process.request(self.command, self.path, self._body(), server.reply_s)
        except TaskError as error:
            self._refuse(RequestError(504 if error.code == "sandbox_timeout" else 503, error.message))
        except RequestError as error:
            self._refuse(error)
        else:
            self._send(reply)

    def __getattr__(self, name: str) -> Callable[[], None]:
        """The standard library looks for a `do_…` with the name in the request; the sandbox says what it takes."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Where the standard library could not understand a request."""
        self._refuse(RequestError(int(code), message or explain or HTTPStatus(code).phrase))

    def _refuse(self, error: RequestError) -> None:
        # What is left of the request is not understood, so nothing after it can be.
        self.close_connection = True
        self._send(error.reply())
        # Whoever still sends has to be listened to, or the connection is reset before the answer is read.
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_LINGER_S)
            for _ in range(_LINGER_READS):
                if not self.rfile.read1(1 << 20):
                    break

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", KINDS[reply.kind])
        self.send_header("Content-Length", str(len(reply.content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.content)

    def _rejection_reason(self) -> str | None:
        """Why this client gets nothing: a page in a browser on this machine may try."""
        if (urlsplit(f"//{self.headers.get('Host', '')}").hostname or "") not in _HOST_NAMES:
            return "this sandbox is reached as localhost only"
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.headers.get("Host"):
            return "this sandbox answers no page of another origin"
        return None

    def _body(self) -> bytes:
        """All of it. Raises RequestError."""
        lengths = self.headers.get_all("Content-Length", ["0"])
        if "Transfer-Encoding" in self.headers:
            raise RequestError(501, "this sandbox takes no transfer encoding. Send a body of a known length")
        if len(lengths) > 1:
            raise RequestError(400, "the length of the request is given more than once")
        text = lengths[0].strip()
        if not _DECIMAL.fullmatch(text):
            raise RequestError(400, "Content-Length is no number")
        if len(text) > _MAX_DIGITS or int(text) > _MAX_REQUEST_BYTES:
            raise RequestError(413, f"a request may have {_MAX_REQUEST_BYTES >> 20} MiB")
        length = int(text)
        body = self.rfile.read(length)
        if len(body) != length:
            raise RequestError(400, "the request ended early")
        return body


def _is_served(user: int | None) -> bool:
    """Whether a user is ours, or runs judges of ours; not root, through whose programs strangers may come."""
    return user is not None and (user == os.geteuid() or user in judge_users)


def _listen() -> list[socket.socket]:
    """Sockets on one free port of both addresses that `localhost` has: what one leaves free could be a stranger's.

    Raises OSError.
    """
    for _ in range(_TRIES):
        listeners = [_listener(socket.AF_INET, ("127.0.0.1", 0))]
        port = listeners[0].getsockname()[1]
        try:
            listeners.append(_listener(socket.AF_INET6, ("::1", port)))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                listeners[0].close()
                continue
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):  # a machine without IPv6
                raise
        return listeners
    raise OSError(errno.EADDRINUSE, "no port is free on both 127.0.0.1 and ::1")


def _listener(family: socket.AddressFamily, address: tuple[str, int]) -> socket.socket:
    listener = socket.socket(family)
    try:
        listener.bind(address)
        listener.listen(_QUEUE)
    except OSError:
        listener.close()
        raise
    return listener

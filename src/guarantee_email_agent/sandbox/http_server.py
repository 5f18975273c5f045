"""The sandbox's HTTP API on loopback. It passes requests on to the process inside, and understands none of them."""

from __future__ import annotations

import errno
import os
import pwd
import socket
import socketserver
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, cast
from urllib.parse import urlsplit

from guarantee_email_agent.sandbox.inside.api_request import RequestError
from guarantee_email_agent.sandbox.inside.wire import KINDS
from guarantee_email_agent.sandbox.sandbox_process import SandboxProcess
from guarantee_email_agent.utils.errors import TaskError

_MAX_REQUEST_BYTES: Final = 96 << 20
_CONNECTIONS: Final = 64
_CONNECTIONS_OF_OTHER_USERS: Final = 4
_IDLE_S: Final = 300.0
_OTHER_USER_IDLE_S: Final = 5.0
_PAUSE_S: Final = 0.05
_HOST_NAMES: Final = frozenset({"localhost", "127.0.0.1"})

FIRST_USER: Final = 1_879_048_192
"""Users from here on are those that sandboxes run as: one each, numbered by the port."""
_PORTS: Final = 65_536
_ESTABLISHED: Final = b"01"
# Tables of connections, and what stands before an address: ::ffff:127.0.0.1 is reached over an IPv6 socket.
_TABLES: Final = (("/proc/self/net/tcp", ""), ("/proc/self/net/tcp6", "0000000000000000" + "FFFF0000"))


class ApiServer(socketserver.ThreadingTCPServer):
    """Listens on a free port of 127.0.0.1, and serves it once started."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    process: SandboxProcess
    reply_s: float

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RequestHandler)
        self.port: int = self.server_address[1]
        self._thread: threading.Thread | None = None
        self._slots = threading.BoundedSemaphore(_CONNECTIONS)
        self._slots_for_others = threading.BoundedSemaphore(_CONNECTIONS_OF_OTHER_USERS)
        self._slot_of: dict[Any, threading.Semaphore] = {}

    def start(self, process: SandboxProcess, reply_s: float) -> None:
        """reply_s: seconds that a request may take."""
        self.process, self.reply_s = process, reply_s
        self._thread = threading.Thread(target=self._accept, name="sandbox-api", daemon=True)
        self._thread.start()

    def close(self) -> None:
        # Wakes whoever waits for a connection, at once.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.server_close()

    def _accept(self) -> None:
        while True:
            try:
                connection, address = self.get_request()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOMEM):
                    time.sleep(_PAUSE_S)  # until a connection ends
                    continue
                return
            self.process_request(connection, address)

    def process_request(self, request: Any, client_address: Any) -> None:
        # A flood of connections must neither start threads without end nor keep others out.
        same_user = _is_same_user(request)
        slots = self._slots if same_user else self._slots_for_others
        if slots.acquire(timeout=1.0 if same_user else 0.0):
            self._slot_of[request] = slots
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slot_of.pop(request).release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        handler = _RequestHandler if self._slot_of[request] is self._slots else _OtherUsersHandler
        handler(request, client_address, self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may disconnect at any time."""


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sandbox"
    sys_version = ""
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the standard library gives
        """Requests are in the record of the run."""

    def do_GET(self) -> None:
        server = cast("ApiServer", self.server)
        try:
            if reason := self._rejection_reason():
                raise RequestError(403, reason)
            body, content_type = self._body(), self.headers.get("Content-Type", "")
            try:
                status, kind, content = server.process.request(
                    self.command, self.path, content_type, body, server.reply_s
                )
            except TaskError as error:
                raise RequestError(504 if error.code == "sandbox_timeout" else 503, error.message) from None
        except RequestError as error:
            # What is left of the request is not read, so nothing after it can be understood.
            self.close_connection = True
            status, kind, content = error.status, 0, error.reply()
        self.send_response(status)
        self.send_header("Content-Type", KINDS[kind])
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

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
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        text = self.headers.get("Content-Length", "0")
        length = int(text) if text.isdecimal() else -1
        if length < 0:
            raise RequestError(400, "Content-Length is no number")
        if length > _MAX_REQUEST_BYTES:
            raise RequestError(413, f"a request may have {_MAX_REQUEST_BYTES >> 20} MiB")
        body = self.rfile.read(length)
        if len(body) != length:
            raise RequestError(400, "the request ended early")
        return body

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            line = self.rfile.readline(1024).split(b";")[0].strip()
            try:
                length = int(line, 16)
            except ValueError:
                raise RequestError(400, "a chunk has no length") from None
            if length < 0 or len(body) + length > _MAX_REQUEST_BYTES:
                raise RequestError(413, f"a request may have {_MAX_REQUEST_BYTES >> 20} MiB")
            if length == 0:
                while self.rfile.readline(65536).strip():
                    pass
                return bytes(body)
            body += self.rfile.read(length)
            self.rfile.readline(1024)


class _OtherUsersHandler(_RequestHandler):
    """For another user of this machine."""

    timeout = _OTHER_USER_IDLE_S

    def _rejection_reason(self) -> str:
        return "this sandbox belongs to another user"


def _is_same_user(connection: socket.socket) -> bool:
    """Whether the other end is ours to serve: our user's, root's, and, for root, those of no account (our judges')."""
    user = _user_of(connection)
    if user is None:
        return False
    if user in (0, os.geteuid()):
        return True
    if os.geteuid() != 0 or FIRST_USER <= user < FIRST_USER + _PORTS:
        return False
    with suppress(KeyError):
        pwd.getpwuid(user)
        return False
    return True


def _user_of(connection: socket.socket) -> int | None:
    """The user at the other end; None where the kernel has no entry, as once that end is closed."""
    try:
        ours, theirs = connection.getsockname(), connection.getpeername()
    except OSError:
        return None
    for path, prefix in _TABLES:
        entry = f"{prefix}{_hex(theirs)} {prefix}{_hex(ours)} ".encode()
        with suppress(OSError), open(path, "rb") as file:
            for line in file:
                if entry in line:
                    fields = line.split()
                    # A closed connection counts as root's, whoever had it.
                    return int(fields[7]) if fields[3] == _ESTABLISHED else None
    return None


def _hex(address: tuple[str, int]) -> str:
    """As the kernel writes it: the bytes of the address in the machine's order."""
    return f"{int.from_bytes(socket.inet_aton(address[0]), sys.byteorder):08X}:{address[1]:04X}"

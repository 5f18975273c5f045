"""The sandbox's HTTP API on loopback. It passes requests on to the process inside, and understands none of them."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, cast
from urllib.parse import urlsplit

from guarantee_email_agent.isolation.processes import judge_users
from guarantee_email_agent.sandbox.connection_owner import owner_of, stand_in_user
from guarantee_email_agent.sandbox.inside.api_request import KINDS, RequestError
from guarantee_email_agent.sandbox.sandbox_process import SandboxProcess
from guarantee_email_agent.utils.errors import TaskError

_MAX_REQUEST_BYTES: Final = 96 << 20
_MAX_TRAILERS: Final = 100
_LINGER_S: Final = 2.0
_LINGER_READS: Final = 1_000
_DECIMAL: Final = re.compile(r"[0-9]+")
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]+")
_MAX_DIGITS: Final = 20
_CONNECTIONS: Final = 64
_CONNECTIONS_OF_OTHER_USERS: Final = 4
_IDLE_S: Final = 300.0
_OTHER_USER_IDLE_S: Final = 5.0
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
        self._slots_for_others = threading.BoundedSemaphore(_CONNECTIONS_OF_OTHER_USERS)
        self.relays = threading.BoundedSemaphore(RELAYS)

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
            # A flood of connections must neither start threads without end nor keep others out.
            served = _is_served(owner_of(connection))
            slots = self._slots if served else self._slots_for_others
            if slots.acquire(timeout=1.0 if served else 0.0):
                handler = _RequestHandler if served else _OtherUsersHandler
                threading.Thread(target=self._serve, args=(connection, address, handler, slots), daemon=True).start()
            else:
                connection.close()

    def _serve(
        self, connection: socket.socket, address: Any, handler: type[_RequestHandler], slots: threading.Semaphore
    ) -> None:
        try:
            with connection, suppress(Exception):  # a client may disconnect at any time, or send what cannot be parsed
                handler(connection, address, cast("Any", self))
                connection.shutdown(socket.SHUT_WR)
        finally:
            slots.release()


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
            if self.command == "GET" and self.headers.get("Upgrade", "").lower() == "websocket":
                self._connect_to_browser()
                return
            body, content_type = self._body(), self.headers.get("Content-Type", "")
            status, kind, content = self._request(self.command, self.path, content_type, body)
        except RequestError as error:
            self._refuse(error)
            return
        self._send(status, kind, content)

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
        self._send(error.status, 0, error.content())
        # Whoever still sends has to be listened to, or the connection is reset before the answer is read.
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_LINGER_S)
            for _ in range(_LINGER_READS):
                if not self.rfile.read1(1 << 20):
                    break

    def _send(self, status: int, kind: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", KINDS[kind])
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _request(self, method: str, target: str, content_type: str = "", body: bytes = b"") -> tuple[int, int, bytes]:
        server = cast("ApiServer", self.server)
        try:
            return server.process.request(method, target, content_type, body, server.reply_s)
        except TaskError as error:
            raise RequestError(504 if error.code == "sandbox_timeout" else 503, error.message) from None

    def _connect_to_browser(self) -> None:
        """Serve a WebSocket until it ends. Raises RequestError."""
        server = cast("ApiServer", self.server)
        self.close_connection = True
        target, key = find_target(urlsplit(self.path).path.rstrip("/")), accept_key(self.headers)
        answer = self._request("GET", "/v1/browser/info")  # starts it
        if answer[0] == HTTPStatus.BAD_GATEWAY:
            answer = self._request("GET", "/v1/browser/info")  # it had ended
        if answer[0] != HTTPStatus.OK:
            self._send(*answer)
            return
        if not server.relays.acquire(blocking=False):
            raise RequestError(503, f"{RELAYS} programs are connected to the browser; no more than that can be")
        try:
            with server.process.connect_to_browser(target) as inner:
                self.send_response(HTTPStatus.SWITCHING_PROTOCOLS)
                for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", key)):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.flush()
                relay(self.connection, inner)
        except TaskError as error:
            raise RequestError(503, error.message) from None
        finally:
            server.relays.release()

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
        lengths, encodings = self.headers.get_all("Content-Length", []), self.headers.get_all("Transfer-Encoding", [])
        if len(lengths) + len(encodings) > 1:
            raise RequestError(400, "the length of the request is given more than once")
        if encodings:
            if encodings[0].strip().lower() != "chunked":
                raise RequestError(501, "of all transfer encodings this sandbox knows 'chunked' only")
            return self._chunks()
        text = (lengths or ["0"])[0].strip()
        if not _DECIMAL.fullmatch(text):
            raise RequestError(400, "Content-Length is no number")
        if len(text) > _MAX_DIGITS or int(text) > _MAX_REQUEST_BYTES:
            raise _too_long()
        length = int(text)
        body = self.rfile.read(length)
        if len(body) != length:
            raise RequestError(400, "the request ended early")
        return body

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            line = self.rfile.readline(1024)
            if not line.endswith(b"\n") or not _HEXADECIMAL.fullmatch(number := line.split(b";")[0].strip()):
                raise RequestError(400, "a chunk has no length")
            length = int(number, 16)
            if len(body) + length > _MAX_REQUEST_BYTES:
                raise _too_long()
            if length == 0:
                for _ in range(_MAX_TRAILERS):
                    if not self.rfile.readline(65536).strip():
                        return bytes(body)
                raise RequestError(431, f"more than {_MAX_TRAILERS} lines follow the last chunk")
            body += self.rfile.read(length)
            if self.rfile.readline(1024).strip():
                raise RequestError(400, "a chunk is longer than it says")


def _too_long() -> RequestError:
    return RequestError(413, f"a request may have {_MAX_REQUEST_BYTES >> 20} MiB")


class _OtherUsersHandler(_RequestHandler):
    """For another user of this machine."""

    timeout = _OTHER_USER_IDLE_S

    def _rejection_reason(self) -> str:
        return "this sandbox belongs to another user"


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


RELAYS: Final = 16
"""Programs that may be connected at a time."""
_CHUNK: Final = 1 << 16
_KEY_SUFFIX: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 §1.3
_PATH: Final = re.compile(r"/devtools/(?:browser(?:/[\w-]{0,80})?|page/(?P<page>[\w-]{1,80}))", re.ASCII)


def find_target(path: str) -> str:
    """What a path leads to: `browser`, or the id of a page. Raises RequestError."""
    if (found := _PATH.fullmatch(path)) is None:
        raise RequestError(404, "there is no WebSocket; the browser's is at /devtools/browser")
    return found["page"] or "browser"


def accept_key(headers: Message) -> str:
    """What a WebSocket handshake is answered with (RFC 6455 §4.2.2). Raises RequestError."""
    key = headers.get("Sec-WebSocket-Key", "").strip()
    try:
        valid = len(base64.b64decode(key, validate=True)) == 16
    except ValueError:
        valid = False
    if not valid or "upgrade" not in headers.get("Connection", "").lower():
        raise RequestError(400, "this is no WebSocket handshake")
    if headers.get("Sec-WebSocket-Version") != "13":
        raise RequestError(426, "the version of WebSockets is 13")
    return base64.b64encode(hashlib.sha1(key.encode() + _KEY_SUFFIX, usedforsecurity=False).digest()).decode()


def relay(client: socket.socket, inner: socket.socket) -> None:
    """Pass bytes on, unread, in both directions until the inner end is closed.

    The client's own connection stays outside: who has a TCP socket can connect it anew, to wherever the host reaches.
    """
    client.settimeout(None)
    outward = threading.Thread(target=_pass_on, args=(inner, client, socket.SHUT_RDWR), daemon=True)
    outward.start()
    # A client that sends no more may still wait for what the browser has to say.
    _pass_on(client, inner, socket.SHUT_WR)
    outward.join()


def _pass_on(source: socket.socket, target: socket.socket, at_the_end: int) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(at_the_end)

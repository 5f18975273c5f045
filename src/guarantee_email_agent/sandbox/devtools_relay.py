"""The way of a program outside to the browser inside: a WebSocket at the API's port, whose bytes pass through unread.

The client's own connection stays outside: who has a TCP socket can connect it anew, to wherever the host reaches.
"""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import threading
from contextlib import suppress
from email.message import Message
from typing import Final

from guarantee_email_agent.sandbox.inside.api_request import RequestError

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
    """Pass bytes on in both directions until the inner end is closed."""
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

"""How requests and replies look on the socket between the server outside and the process inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

READY: Final = b"ready\n"
"""What the process inside says first, once its rights are gone."""

REQUEST_BYTES: Final = 16
"""A request is: number (4 bytes), length of the head (4), length of the body (8), head, body."""
REPLY_BYTES: Final = 16
"""A reply is: number (4 bytes), HTTP status (2), kind of content (2), length (8), content."""

KINDS: Final = ("application/json", "application/octet-stream", "image/png", "image/jpeg")
"""Kinds of content by number, so that nothing from inside can end up in a header."""

_SEPARATOR: Final = "\0"


def read_exactly(read: Callable[[int], bytes], count: int) -> bytes:
    """So many bytes from what `read(at most)` gives. Raises EOFError where it gives no more."""
    data = bytearray()
    while len(data) < count:
        chunk = read(min(count - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def pack_request(number: int, method: str, target: str, content_type: str, body: bytes) -> bytes:
    head = _SEPARATOR.join((method, target, content_type)).encode("utf-8", "replace")
    return b"".join((number.to_bytes(4, "big"), len(head).to_bytes(4, "big"), len(body).to_bytes(8, "big"), head, body))


def request_lengths(start: bytes | bytearray) -> tuple[int, int, int]:
    """Number, length of the head, length of the body."""
    return int.from_bytes(start[:4], "big"), int.from_bytes(start[4:8], "big"), int.from_bytes(start[8:16], "big")


def unpack_head(head: bytes) -> tuple[str, str, str]:
    """Method, target, content type."""
    method, target, content_type = head.decode("utf-8", "replace").split(_SEPARATOR)
    return method, target, content_type


def pack_reply(number: int, status: int, kind: int, content: bytes) -> bytes:
    head = number.to_bytes(4, "big") + status.to_bytes(2, "big") + kind.to_bytes(2, "big")
    return b"".join((head, len(content).to_bytes(8, "big"), content))


def reply_parts(start: bytes | bytearray) -> tuple[int, int, int, int]:
    """Number, HTTP status, kind of content, length of the content."""
    ends = ((0, 4), (4, 6), (6, 8), (8, 16))
    number, status, kind, length = (int.from_bytes(start[begin:end], "big") for begin, end in ends)
    return number, status, kind, length

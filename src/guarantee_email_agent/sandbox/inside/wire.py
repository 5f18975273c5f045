"""How requests and replies look on the socket between the server outside and the process inside."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .api_request import ApiRequest, Reply

if TYPE_CHECKING:
    import asyncio  # the server outside needs none

READY: Final = b"ready\n"
"""The first bytes from the process inside, once it has dropped its rights."""

REQUEST: Final = struct.Struct(">IIQ")
"""A request is: number, length of the head, length of the body; then head and body."""
REPLY: Final = struct.Struct(">IHHQ")
"""A reply is: number, HTTP status, kind of content, length of the content; then the content."""

KINDS: Final = ("application/json", "application/octet-stream", "image/png", "image/jpeg")
"""Kinds of content by number, so that nothing from inside can end up in a header."""


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
    # No character of a request line or a header ends it for JSON.
    head = json.dumps((method, target, content_type)).encode()
    return b"".join((REQUEST.pack(number, len(head), len(body)), head, body))


def unpack_head(head: bytes) -> tuple[str, str, str]:
    """Method, target, content type."""
    method, target, content_type = json.loads(head)
    return method, target, content_type


def pack_reply(number: int, status: int, kind: int, content: bytes) -> bytes:
    return REPLY.pack(number, status, kind, len(content)) + content


async def receive_request(reader: asyncio.StreamReader) -> tuple[int, ApiRequest]:
    """The request and its number. Raises EOFError."""
    number, head, body = REQUEST.unpack(await reader.readexactly(REQUEST.size))
    method, target, content_type = unpack_head(await reader.readexactly(head))
    return number, ApiRequest(method, target, content_type, await reader.readexactly(body))


async def receive_reply(reader: asyncio.StreamReader, longest: int) -> Reply:
    """Raises EOFError, also for one that is longer than `longest` bytes."""
    _, status, kind, length = REPLY.unpack(await reader.readexactly(REPLY.size))
    if length > longest:
        raise EOFError(f"it answered with more than {longest >> 20} MiB")
    return Reply(status, kind, await reader.readexactly(length))

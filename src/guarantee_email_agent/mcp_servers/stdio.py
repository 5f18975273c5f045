"""MCP messages on stdin and stdout, one a line, until the client is done and every call is answered.

The SDK's own transport cancels calls in work when the input ends, and cannot stop while a read is blocked.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

_CHUNK = 65_536  # bytes, what a pipe holds
_LINES_AHEAD = 64  # read before they are worked on
_Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


class StandardStreams:
    """The process's standard streams as a pair of message streams. `on_end` is called when no more calls will come."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._line_slots = threading.Semaphore(_LINES_AHEAD)
        self._unanswered: set[types.RequestId] = set()
        # Of its own: an answer must not wait for a call that waits.
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="stdout")
        self._answered = asyncio.Event()

    def end(self) -> None:
        """Take no further message; to be called on the event loop."""
        self._lines.put_nowait(None)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[_Streams]:
        input_fd, output_fd = _claim_standard_streams()
        loop = asyncio.get_running_loop()
        incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
        # A daemon thread, which is never joined: a blocked read cannot be interrupted.
        threading.Thread(target=self._read, args=(input_fd, loop), daemon=True, name="stdin").start()
        async with anyio.create_task_group() as group:
            group.start_soon(self._forward, incoming_send, outgoing.clone())
            group.start_soon(self._write, outgoing_receive, output_fd)
            yield incoming, outgoing

    def _read(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has stopped
            with suppress(OSError):  # as good as the end of input
                for line in _lines(descriptor):
                    self._line_slots.acquire()
                    loop.call_soon_threadsafe(self._lines.put_nowait, line)
            loop.call_soon_threadsafe(self._lines.put_nowait, None)

    async def _forward(
        self,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
        outgoing: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        async with incoming, outgoing:
            while (line := await self._lines.get()) is not None:
                self._line_slots.release()
                if not line.strip():
                    continue
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError:
                    await outgoing.send(SessionMessage(_parse_error(line)))
                    continue
                if isinstance(message, types.JSONRPCRequest):
                    self._unanswered.add(message.id)
                elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
                    self._mark_answered((message.params or {}).get("requestId"))  # it never will be
                await incoming.send(SessionMessage(message))
            self._on_end()
            while self._unanswered:
                self._answered.clear()
                await self._answered.wait()

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage], descriptor: int) -> None:
        async with outgoing:
            async for item in outgoing:
                await self._write_one(item.message, descriptor)
                del item  # may be a mail of megabytes, which is not to stay until the next message

    async def _write_one(self, message: types.JSONRPCMessage, descriptor: int) -> None:
        line = _serialize(message)
        with suppress(BrokenPipeError):  # the client is gone; the end of input follows
            await asyncio.get_running_loop().run_in_executor(self._writing, _write_all, descriptor, line, b"\n")
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._mark_answered(message.id)

    def _mark_answered(self, request: object) -> None:
        if isinstance(request, int | str):
            self._unanswered.discard(request)
        self._answered.set()


def _claim_standard_streams() -> tuple[int, int]:
    """Copies of stdin and stdout for the protocol; what prints by mistake goes to stderr, what reads finds the end."""
    input_fd, output_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return input_fd, output_fd


def _lines(descriptor: int) -> Iterator[bytes]:
    parts: list[bytes] = []
    while chunk := os.read(descriptor, _CHUNK):
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for part in rest:
            yield b"".join(parts)
            parts = [part]


def _write_all(descriptor: int, *parts: bytes) -> None:
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view) :]


def _serialize(message: types.JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # half a character (a lone surrogate), which JSON in UTF-8 cannot hold
        request_id = message.id if isinstance(message, types.JSONRPCResponse) else None
        error = types.ErrorData(code=types.INTERNAL_ERROR, message="the answer cannot be written as JSON")
        return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error).model_dump_json().encode()


def _parse_error(line: bytes) -> types.JSONRPCError:
    """The answer to a line that is no message: without one its sender would wait until its deadline."""
    request_id: types.RequestId | None = None
    with suppress(ValueError, RecursionError):
        match json.loads(line):  # an id is no boolean, which is a number to Python, and has no half characters
            case {"id": found} if type(found) is int or (isinstance(found, str) and found.isprintable()):
                request_id = found
    error = types.ErrorData(code=types.PARSE_ERROR, message="the line is no JSON-RPC message in valid JSON")
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)

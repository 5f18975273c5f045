"""The Chrome DevTools Protocol over a pair of pipes: JSON messages that end in a zero byte."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from .api_request import RequestError

MAX_MESSAGE: Final = 64 << 20
GONE: Final = 502
"""Status of what cannot be done since the browser has ended."""
PAGE_GONE: Final = 410
"""Status of what cannot be done since the page was closed, crashed or hangs."""

Listener = Callable[[dict[str, Any]], None]


class DevTools:
    """The one connection to the browser. Each session has a listener, which also hears of the sessions below it."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.WriteTransport) -> None:
        self._reader = reader
        self._transport = transport
        self._number = 0
        self._waiting: dict[int, tuple[str, Listener]] = {}
        self._listeners: dict[str, Listener] = {}
        self.ended = asyncio.create_task(self._read())
        """Done once the browser has closed the connection."""

    @classmethod
    async def connect(cls, read_descriptor: int, write_descriptor: int) -> DevTools:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_MESSAGE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_descriptor, "rb", 0))
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write_descriptor, "wb", 0))
        return cls(reader, transport)

    def close(self) -> None:
        self.ended.cancel()
        self._transport.abort()

    async def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """The result. Raises RequestError for what the browser refuses, and once it has ended."""
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.send(
            {"method": method, "params": parameters} | ({"sessionId": session} if session else {}),
            lambda message: None if reply.done() else reply.set_result(message),
        )
        message = await reply
        if "error" in message:
            raise RequestError(message.get("status", 400), f"the browser: {message['error'].get('message', 'refused')}")
        result = message.get("result")
        return result if isinstance(result, dict) else {}

    def send(self, message: dict[str, Any], on_reply: Listener) -> None:
        """Raises RequestError once the browser has ended, or takes nothing any more."""
        if self.ended.done() or self._transport.get_write_buffer_size() > MAX_MESSAGE:
            raise RequestError(GONE, "the browser has ended")
        self._number += 1
        self._waiting[self._number] = (str(message.get("sessionId", "")), on_reply)
        self._transport.write(json.dumps({**message, "id": self._number}).encode() + b"\0")

    def listen(self, session: str, listener: Listener) -> None:
        self._listeners[session] = listener

    def forget(self, listener: Listener) -> None:
        self._listeners = {key: value for key, value in self._listeners.items() if value is not listener}

    def fail_session(self, session: str, reason: str) -> None:
        """Answer for a page that will not."""
        for number, (waiting, on_reply) in list(self._waiting.items()):
            if waiting == session:
                del self._waiting[number]
                on_reply({"error": {"message": reason}, "status": PAGE_GONE})

    async def _read(self) -> None:
        try:
            while True:
                self._handle(json.loads((await self._reader.readuntil(b"\0"))[:-1]))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            """It has ended, or has a message that is too long."""
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            """It does not keep to its protocol."""
        finally:
            waiting, self._waiting = self._waiting, {}
            for _, on_reply in waiting.values():
                on_reply({"error": {"message": "it has ended"}, "status": GONE})

    def _handle(self, message: dict[str, Any]) -> None:
        if "id" in message:
            if (waiting := self._waiting.pop(message["id"], None)) is not None:
                waiting[1](message)
            return
        session = str(message.get("sessionId", ""))
        listener = self._listeners.get(session)
        below = str(message.get("params", {}).get("sessionId", ""))
        if listener is not None and message.get("method") == "Target.attachedToTarget":
            self._listeners[below] = self._listeners.get(below, listener)
        if message.get("method") == "Target.detachedFromTarget" and below:
            self._listeners.pop(below, None)
            self.fail_session(below, "the page was closed")
        if listener is not None:
            listener(message)


_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_CONTROL: Final = (_CLOSE, _PING, _PONG)
_MAX_CONTROL: Final = 125
_NORMAL, _PROTOCOL_ERROR, _TOO_BIG = 1000, 1002, 1009


class WebSocket:
    """max_bytes: of a message, and of what waits for a client that does not read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._max_bytes = max_bytes

    async def receive(self) -> bytes | None:
        """The next message; None at the end of the connection, also where it is no WebSocket's."""
        message = bytearray()
        try:
            while True:
                first, second = await self._reader.readexactly(2)
                opcode, length = first & 0x0F, second & 0x7F
                if length > _MAX_CONTROL:
                    length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8), "big")
                # Bits for extensions that were not agreed on, no mask, a control message that is long or in pieces.
                if first & 0x70 or not second & 0x80 or (opcode in _CONTROL and (length > 125 or first < 0x80)):
                    self._close(_PROTOCOL_ERROR)
                    return None
                if len(message) + length > self._max_bytes:
                    self._close(_TOO_BIG)
                    return None
                mask = await self._reader.readexactly(4)
                payload = _unmask(await self._reader.readexactly(length), mask)
                if opcode == _CLOSE:
                    self._close(_NORMAL)
                    return None
                if opcode == _PING:
                    self._send_frame(_PONG, payload)
                elif opcode != _PONG:
                    message += payload
                    if first & 0x80:
                        return bytes(message)
        except (asyncio.IncompleteReadError, OSError):
            return None

    def send(self, message: bytes) -> None:
        """Without waiting. A client that does not read is disconnected."""
        if self._writer.transport.get_write_buffer_size() > self._max_bytes:
            self._writer.transport.abort()
        else:
            self._send_frame(_TEXT, message)

    def _close(self, code: int) -> None:
        self._send_frame(_CLOSE, code.to_bytes(2, "big"))

    def _send_frame(self, opcode: int, payload: bytes) -> None:
        length = len(payload)
        if length < 126:
            head = bytes((0x80 | opcode, length))
        elif length < 1 << 16:
            head = bytes((0x80 | opcode, 126)) + length.to_bytes(2, "big")
        else:
            head = bytes((0x80 | opcode, 127)) + length.to_bytes(8, "big")
        self._writer.write(head + payload)


def _unmask(payload: bytes, mask: bytes) -> bytes:
    length = len(payload)
    key = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")


async def serve_client(devtools: DevTools, target: str, connection: socket.socket) -> None:
    """Until either side ends. target: id of a page, or `browser`."""
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    try:
        await _DevToolsClient(devtools, WebSocket(reader, writer, MAX_MESSAGE)).run(target)
    except RequestError:
        """There is no such page, or the browser has ended: the connection ends as the browser's own would."""
    finally:
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()


class _DevToolsClient:
    """Has a session of its own, so that its numbers and events are nobody else's."""

    def __init__(self, devtools: DevTools, web_socket: WebSocket) -> None:
        self._devtools = devtools
        self._web_socket = web_socket
        self._session = ""
        self._listener = self._pass_on  # a bound method is a new object each time, and this one is compared

    async def run(self, target: str) -> None:
        method, parameters = "Target.attachToBrowserTarget", dict[str, Any]()
        if target != "browser":
            method, parameters = "Target.attachToTarget", {"targetId": target, "flatten": True}
        self._session = (await self._devtools.call(method, **parameters))["sessionId"]
        self._devtools.listen(self._session, self._listener)
        try:
            await self._serve()
        finally:
            self._devtools.forget(self._listener)
            with suppress(RequestError):
                # What it attached to and made wait goes on.
                detach = {"method": "Target.detachFromTarget", "params": {"sessionId": self._session}}
                self._devtools.send(detach, lambda _: None)

    async def _serve(self) -> None:
        receiving = asyncio.ensure_future(self._web_socket.receive())
        try:
            while True:
                await asyncio.wait((receiving, self._devtools.ended), return_when=asyncio.FIRST_COMPLETED)
                if not receiving.done() or (text := receiving.result()) is None:
                    return
                message = json.loads(text)
                number, session = message["id"], message.get("sessionId")
                message["sessionId"] = session or self._session
                self._devtools.send(message, partial(self._reply, number))
                receiving = asyncio.ensure_future(self._web_socket.receive())
        except (ValueError, RecursionError, TypeError, KeyError):
            """What is no message of the protocol ends the connection."""
        finally:
            receiving.cancel()

    def _reply(self, number: object, message: dict[str, Any]) -> None:
        self._pass_on({**message, "id": number})

    def _pass_on(self, message: dict[str, Any]) -> None:
        if message.get("sessionId") == self._session:
            message = {key: value for key, value in message.items() if key != "sessionId"}
        self._web_socket.send(json.dumps(message).encode())

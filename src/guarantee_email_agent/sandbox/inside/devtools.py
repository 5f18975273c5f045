"""The Chrome DevTools Protocol over a pair of pipes: JSON messages that end in a zero byte."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Final

from .api_request import RequestError

MAX_MESSAGE: Final = 64 << 20
GONE: Final = 502
"""Status of what cannot be done since the browser has ended."""
PAGE_GONE: Final = 410
"""Status of what cannot be done since the page was closed, crashed or hangs."""

Listener = Callable[[dict[str, Any]], None]


class DevTools:
    """The one connection to the browser. Each session may have a listener."""

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
        if message.get("method") == "Target.detachedFromTarget":
            ended = str(message.get("params", {}).get("sessionId", ""))
            self._listeners.pop(ended, None)
            self.fail_session(ended, "the page was closed")
        if (listener := self._listeners.get(str(message.get("sessionId", "")))) is not None:
            listener(message)

"""The Chrome DevTools Protocol over a pair of pipes: JSON messages that end in a zero byte."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

_MAX_MESSAGE = 64 << 20


class DevTools:
    """The one connection to the browser. Each session may have a listener."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.WriteTransport) -> None:
        self._reader, self._transport = reader, transport
        self._number = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Callable[[dict[str, Any]], None]] = {}
        self._ended = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, read_descriptor: int, write_descriptor: int) -> DevTools:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_MAX_MESSAGE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_descriptor, "rb", 0))
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write_descriptor, "wb", 0))
        return cls(reader, transport)

    def close(self) -> None:
        self._ended.cancel()
        self._transport.abort()

    async def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        self._number += 1
        reply = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        message = {"id": self._number, "method": method, "params": parameters}
        self._transport.write(json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        answer = await reply
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer.get("result", {})
        return result

    def listen(self, session: str, listener: Callable[[dict[str, Any]], None]) -> None:
        self._listeners[session] = listener

    async def _read(self) -> None:
        try:
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    self._waiting.pop(message["id"]).set_result(message)
                elif listener := self._listeners.get(message.get("sessionId", "")):
                    listener(message)
        except (asyncio.IncompleteReadError, OSError):
            for waiting in self._waiting.values():
                waiting.set_result({"error": "the browser has ended"})

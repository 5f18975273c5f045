"""A program outside that speaks to the browser over a WebSocket, such as Playwright, as if the browser were its own."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from functools import partial
from typing import Any

from .api_request import RequestError
from .devtools import MAX_MESSAGE, DevTools
from .websocket import WebSocket


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

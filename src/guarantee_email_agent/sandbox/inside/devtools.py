"""The Chrome DevTools Protocol over a pair of pipes: JSON messages that end in a zero byte."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Sequence
from typing import Any, Final

from .api_request import RequestError

_MAX_MESSAGE: Final = 64 << 20
_KEPT_EVENTS: Final = 1_000


class DevTools:
    """One connection, used by one thread. deadline: monotonic seconds by which the operation in work has to be done."""

    def __init__(self, read_descriptor: int, write_descriptor: int) -> None:
        self._read = read_descriptor
        self._write = write_descriptor
        self._number = 0
        self._received = bytearray()
        self.deadline = 0.0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)

    def remaining_s(self) -> float:
        return self.deadline - time.monotonic()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The result. Raises RequestError for what the browser refuses, and at the deadline."""
        number = self._send(method, session, parameters)
        while (message := self._next_message(self.deadline)) is not None:
            if message.get("id") == number:
                if "error" in message:
                    raise RequestError(400, f"the browser: {message['error'].get('message', 'it refused')}")
                result = message.get("result")
                return result if isinstance(result, dict) else {}
        raise RequestError(408, "the browser did not finish in time")

    def wait_for(self, methods: Sequence[str], session: str | None, until: float) -> dict[str, Any] | None:
        """The first event of one of these kinds; None where none came before `until` (monotonic seconds)."""
        while True:
            for position, event in enumerate(self.events):
                if event.get("method") in methods and event.get("sessionId") == session:
                    return self.events.pop(position)
            if time.monotonic() >= min(until, self.deadline):
                return None
            self._next_message(min(until, self.deadline))

    def drain(self) -> None:
        """Take in what has come meanwhile."""
        while self._next_message(time.monotonic()):
            pass

    def discard_events(self, prefix: str) -> None:
        self.events = [event for event in self.events if not str(event.get("method")).startswith(prefix)]

    def _send(self, method: str, session: str | None, parameters: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            if not select.select([], [self._write], [], max(self.remaining_s(), 0))[1]:
                raise RequestError(408, "the browser does not listen any more")
            data = data[os.write(self._write, data[:65536]) :]
        return self._number

    def _next_message(self, until: float) -> dict[str, Any] | None:
        """The next answer or event, which is kept; None where none came before `until`."""
        while (end := self._received.find(b"\0")) < 0:
            if not select.select([self._read], [], [], max(until - time.monotonic(), 0))[0]:
                return None
            chunk = os.read(self._read, 1 << 18)
            if not chunk or len(self._received) > _MAX_MESSAGE:
                raise RequestError(502, "the browser has ended")
            self._received += chunk
        message = json.loads(bytes(self._received[:end]))
        del self._received[: end + 1]
        if "id" not in message:
            self._handle_event(message)
        return message if isinstance(message, dict) else {}

    def _handle_event(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Page.javascriptDialogOpening":
            # Nobody is there to close it, and the page waits until somebody does.
            self._send("Page.handleJavaScriptDialog", event.get("sessionId"), {"accept": True})
        else:
            self.events.append(event)
            del self.events[:-_KEPT_EVENTS]

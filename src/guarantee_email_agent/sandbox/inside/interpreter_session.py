"""An interpreter that keeps its variables from one piece of code to the next."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from .api_request import RequestError
from .captured_output import CapturedOutput
from .process_starter import ProcessStarter
from .running_command import RunningCommand

_MAX_CODE: Final = 1 << 20
_MAX_REPLY: Final = 16 << 20
_INTERRUPT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Execution:
    """What a piece of code did. status: `ok`, `error` or `timeout`. outputs: as Jupyter's messages have them."""

    status: str
    number: int
    stdout: str
    stderr: str
    outputs: list[dict[str, Any]]

    def traceback(self) -> list[str]:
        return [line for output in self.outputs for line in output.get("traceback", [])]


class _Replies(CapturedOutput):
    """Lines of JSON. The code that runs may write some of its own, so nothing is taken for granted."""

    __slots__ = ("_line", "received")

    def __init__(self) -> None:
        super().__init__()
        self._line = bytearray()
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        *lines, rest = (self._line + chunk).split(b"\n")
        self._line = rest[:_MAX_REPLY]
        for line in lines:
            with suppress(ValueError, RecursionError):
                reply = json.loads(line)
                if isinstance(reply, dict) and isinstance(reply.get("outputs"), list):
                    self.received.put_nowait(reply)


class InterpreterSession:
    """command: starts one of `interpreter_programs`. created, used: seconds since 1970. idle_s: it ends when it was
    not used for so long."""

    def __init__(self, starter: ProcessStarter, command: Sequence[str], name: str, folder: str, idle_s: float) -> None:
        self.name = name
        self.folder = folder
        self.created = self.used = time.time()
        self.idle_s = idle_s
        self.count = 0
        self._turn = asyncio.Lock()
        self._out, self._errors, self._replies = CapturedOutput(), CapturedOutput(), _Replies()
        outputs = {self._out: (1,), self._errors: (2,), self._replies: (4,)}
        self._command = RunningCommand(
            starter,
            command,
            folder,
            outputs,
            stdin=True,
            on_exit=lambda: self._replies.received.put_nowait({**_ENDED, "number": self.count}),
        )

    @property
    def running(self) -> bool:
        return self._turn.locked()

    @property
    def has_ended(self) -> bool:
        return not self._command.running

    def close(self) -> None:
        self._command.close()

    async def execute(self, code: str, timeout_s: float) -> Execution:
        """Raises RequestError where the code is too long. What came before it is waited for."""
        async with self._turn:
            self.count += 1
            self._out.clear()
            self._errors.clear()
            request = json.dumps({"number": self.count, "code": code}).encode() + b"\n"
            if len(request) > _MAX_CODE or not (self._command.running and self._command.write(request)):
                problem = "the code is longer than 1 MiB, or the session has ended. Write it to a file, and run that"
                raise RequestError(413, problem)
            reply = await self._reply(timeout_s)
            status = "timeout" if reply is None else "ok" if reply.get("status") == "ok" else "error"
            if reply is None:
                self._command.send_signal(signal.SIGINT)
                reply = await self._reply(_INTERRUPT_S)
            if reply is None:
                self._command.kill("timeout")
                await self._command.wait()
            self._command.read_available()
            self.used = time.time()
            printed = {"stdout": self._out.text(), "stderr": self._errors.text()}
            streams = [{"output_type": "stream", "name": name, "text": text} for name, text in printed.items() if text]
            results = [_clean(output) for output in (reply or _ENDED)["outputs"] if isinstance(output, dict)]
            return Execution(status, self.count, **printed, outputs=[*streams, *results])

    async def _reply(self, timeout_s: float) -> dict[str, Any] | None:
        """To the latest request; None where there is none in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while (reply := await self._replies.received.get()).get("number") != self.count:
                    pass
                return reply
        return None


_ENDED: Final[dict[str, Any]] = {
    "status": "error",
    "outputs": [
        {"output_type": "error", "ename": "DeadKernelError", "evalue": "the interpreter has ended", "traceback": []}
    ],
}


def _clean(output: dict[str, Any]) -> dict[str, Any]:
    """With the types that a client expects, whatever the code wrote."""
    cleaned: dict[str, Any] = {"output_type": str(output.get("output_type"))}
    for name, kind in (("data", dict), ("metadata", dict), ("execution_count", int), ("ename", str), ("evalue", str)):
        if isinstance(value := output.get(name), kind):
            cleaned[name] = value
    if isinstance(lines := output.get("traceback"), list):
        cleaned["traceback"] = [str(line) for line in lines]
    return cleaned

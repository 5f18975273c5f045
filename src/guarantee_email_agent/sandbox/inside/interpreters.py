"""The interpreters that keep their variables, of one language."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, success
from .files import Files
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand
from .sessions import Sessions

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


DEFAULT_S: Final = 30
"""Seconds that a piece of code may take where nothing is said."""
MAX_SESSIONS: Final = 16


class Interpreters:
    """interpreter: where its program is, None where the machine has none. program: what it runs, from
    `interpreter_programs`. idle_s: a session that nobody uses for so long ends. max_s: for one piece of code."""

    def __init__(
        self,
        starter: ProcessStarter,
        files: Files,
        interpreter: str | None,
        program: tuple[str, str],
        *,
        idle_s: float,
        max_s: float,
    ) -> None:
        self.sessions = Sessions[InterpreterSession](MAX_SESSIONS)
        self.interpreter = interpreter
        self.idle_s = idle_s
        self.max_s = max_s
        self._starter = starter
        self._files = files
        self._program = program

    def create(self, arguments: Arguments, idle_s: float | None = None) -> InterpreterSession:
        """Raises RequestError."""
        if self.interpreter is None:
            raise RequestError(501, "this machine has nothing to run that with")
        folder = self._files.folder(arguments.optional_path("cwd"))
        name = self.sessions.free_name(arguments.optional_text("session_id"))
        idle_s = self.idle_s if idle_s is None else idle_s
        session = InterpreterSession(self._starter, (self.interpreter, *self._program), name, folder, idle_s)
        self._end_when_idle(self.sessions.add(session))
        return session

    async def execute(self, arguments: Arguments) -> tuple[InterpreterSession, Execution]:
        """Run code in the session that is asked for, a new one if need be. Raises RequestError."""
        code, timeout_s, name = arguments.text("code"), self.timeout_s(arguments), arguments.optional_text("session_id")
        if name in self.sessions and not (session := self.sessions.find(str(name))).has_ended:
            return session, await session.execute(code, timeout_s)
        if name in self.sessions:
            self.sessions.close(session)
        session = self.create(arguments)
        return session, await session.execute(code, timeout_s)

    def timeout_s(self, arguments: Arguments) -> float:
        timeout = arguments.number("timeout")
        return min((DEFAULT_S if timeout is None else timeout) or self.max_s, self.max_s)

    def _end_when_idle(self, session: InterpreterSession) -> None:
        left = session.idle_s if session.running else session.used + session.idle_s - time.time()
        if left <= 0 or session.has_ended:
            self.sessions.close(session)
        elif session.name in self.sessions:
            asyncio.get_running_loop().call_later(left, self._end_when_idle, session)


_KERNEL: Final = "python3"
_KERNELS: Final = (_KERNEL, f"python{sys.version_info.major}.{sys.version_info.minor}")


class Jupyter:
    def __init__(self, interpreters: Interpreters) -> None:
        self._interpreters = interpreters
        self._sessions = interpreters.sessions

    async def info(self, _: Arguments) -> Reply:
        return success(
            {
                "default_kernel": _KERNEL,
                "available_kernels": list(_KERNELS),
                "active_sessions": len(self._sessions),
                "session_timeout_seconds": int(self._interpreters.idle_s),
                "max_sessions": self._sessions.limit,
                "description": f"Python {sys.version.split()[0]} that keeps its variables; outputs as text",
                "kernel_detection": "the Python that runs the sandbox",
            }
        )

    async def create(self, arguments: Arguments) -> Reply:
        kernel, name = _kernel(arguments), arguments.optional_text("session_id")
        known = name in self._sessions
        session = self._sessions.find(str(name)) if known else self._interpreters.create(arguments)
        message = "Session exists" if known else "Session created"
        return success({"session_id": session.name, "kernel_name": kernel, "message": message}, message)

    async def execute(self, arguments: Arguments) -> Reply:
        kernel = _kernel(arguments)
        session, execution = await self._interpreters.execute(arguments)
        result = {
            "kernel_name": kernel,
            "session_id": session.name,
            "status": execution.status,
            "execution_count": execution.number,
            "outputs": execution.outputs,
            "code": arguments.text("code"),
            "msg_id": f"{session.name}-{execution.number}",
        }
        return success(result, "Code executed")

    async def list_sessions(self, _: Arguments) -> Reply:
        sessions = {
            session.name: {
                "kernel_name": _KERNEL,
                "last_used": session.used,
                "age_seconds": int(time.time() - session.created),
            }
            for session in self._sessions.all()
        }
        return success({"sessions": sessions})

    async def delete(self, arguments: Arguments) -> Reply:
        self._sessions.close(self._sessions.find(arguments.text("session_id")))
        return success(None, "Session ended")

    async def delete_all(self, _: Arguments) -> Reply:
        return success({"cleaned": self._sessions.close(*self._sessions.all())}, "Sessions ended")


def _kernel(arguments: Arguments) -> str:
    kernel = arguments.optional_text("kernel_name") or _KERNEL
    if kernel not in _KERNELS:
        raise InvalidArgumentError("kernel_name", f"must be one of {', '.join(_KERNELS)}")
    return kernel

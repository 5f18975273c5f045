"""The interpreters that keep their variables, of one language."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, success
from .files import Files
from .interpreter_session import Execution, InterpreterSession
from .process_starter import ProcessStarter
from .sessions import Sessions

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

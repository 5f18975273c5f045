"""The Jupyter endpoints. There is no kernel of Jupyter's: an interpreter of ours answers as one would."""

from __future__ import annotations

import sys
import time
from typing import Final

from .api_request import Arguments, InvalidArgumentError, Reply, success
from .interpreters import Interpreters

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

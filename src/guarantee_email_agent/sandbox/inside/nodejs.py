"""The Node.js endpoints: programs by themselves, and sessions that keep their variables."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from .api_request import Arguments, Reply, RequestError, success
from .captured_output import CapturedOutput
from .code_runner import CodeRunner
from .interpreter_session import InterpreterSession
from .interpreters import Interpreters
from .process_starter import ProcessStarter
from .running_command import RunningCommand

_VERSION_S: Final = 10.0


class NodeJs:
    def __init__(self, starter: ProcessStarter, code: CodeRunner, interpreters: Interpreters) -> None:
        self._starter = starter
        self._code = code
        self._interpreters = interpreters
        self._sessions = interpreters.sessions

    async def info(self, _: Arguments) -> Reply:
        node = self._interpreters.interpreter
        if node is None:
            raise RequestError(501, "this machine has no Node.js")
        npm = os.path.join(os.path.dirname(node), "npm")
        version = await self._version(node)
        information = {
            "node_version": version,
            "npm_version": await self._version(npm) if os.access(npm, os.X_OK) else "",
            "supported_languages": ["javascript"],
            "description": f"Node.js {version} of this machine",
            "available_versions": [f"node{version.lstrip('v').partition('.')[0]}"],
            "current_version": f"node{version.lstrip('v').partition('.')[0]}",
        }
        return success(information)

    async def execute(self, arguments: Arguments) -> Reply:
        if arguments.optional_text("version") is not None:
            raise RequestError(501, "this sandbox has the one Node.js of this machine. Leave 'version' out")
        if not arguments.flag("stateful") and arguments.optional_text("session_id") is None:
            result = await self._code.run("javascript", arguments)
            return success(result, "Code executed")
        session, execution = await self._interpreters.execute(arguments)
        result = {
            "language": "javascript",
            "status": execution.status,
            "execution_count": execution.number,
            "outputs": execution.outputs,
            "code": arguments.text("code"),
            "stdout": execution.stdout,
            "stderr": execution.stderr,
            "exit_code": 0 if execution.status == "ok" else 1,
            "session_id": session.name,
        }
        return success(result, "Code executed")

    async def create(self, arguments: Arguments) -> Reply:
        idle_s, name = arguments.timeout("max_idle_time"), arguments.optional_text("session_id")
        if name in self._sessions:
            session = self._sessions.find(str(name))
            return success({"session_id": name, "created": False, "session": _describe(session)}, "Session exists")
        session = self._interpreters.create(arguments, idle_s)
        return success({"session_id": session.name, "created": True, "session": _describe(session)}, "Session created")

    async def list_sessions(self, _: Arguments) -> Reply:
        return success({"sessions": {session.name: _describe(session) for session in self._sessions.all()}})

    async def show(self, arguments: Arguments) -> Reply:
        return success({"session": _describe(self._sessions.find(arguments.text("session_id")))})

    async def update(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("session_id"))
        if arguments.optional_text("cwd") is not None:
            raise RequestError(501, "a running session stays in its folder. Use process.chdir in it")
        session.idle_s = arguments.timeout("max_idle_time") or session.idle_s
        return success({"updated": True, "session": _describe(session)})

    async def delete(self, arguments: Arguments) -> Reply:
        self._sessions.close(self._sessions.find(arguments.text("session_id")))
        return success({"deleted": True}, "Session ended")

    async def _version(self, program: str) -> str:
        output = CapturedOutput()
        command = RunningCommand(self._starter, (program, "--version"), "/", {output: (1, 2)})
        await command.wait(hard_timeout_s=_VERSION_S)
        command.close()
        return output.text()


def _describe(session: InterpreterSession) -> dict[str, Any]:
    """Times in milliseconds, as the client has them."""
    return {
        "session_id": session.name,
        "cwd": session.folder,
        "created_at": 1000 * session.created,
        "last_used": 1000 * session.used,
        "max_idle_time": int(1000 * session.idle_s),
        "age_seconds": int(time.time() - session.used),
        "state": "EXECUTING" if session.running else "IDLE",
    }

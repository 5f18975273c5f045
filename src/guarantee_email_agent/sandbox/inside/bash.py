"""Bash sessions: like those of the shell, with standard output and error apart, to be read from any offset."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, choose, encode, success
from .files import Files
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, shorten
from .sessions import Sessions
from .shell import MAX_SESSIONS, ShellSession, command_text, format_time, start_command

_POLL_S: Final = 0.05
_WAIT_S: Final = 30.0
_SIGNALS: Final = {name: signal.Signals[name] for name in ("SIGTERM", "SIGKILL", "SIGINT")}


class BashSession(ShellSession):
    """errors: what the command wrote to standard error; `output` has the rest."""

    def __init__(self, name: str, folder: str) -> None:
        super().__init__(name, folder, 0.0)
        self.errors = CapturedOutput()
        self.count = 0

    def begin(self, text: str, folder: str) -> None:
        super().begin(text, folder)
        self.errors = CapturedOutput()
        self.count += 1

    def command_info(self) -> dict[str, Any]:
        killed_for = None if self.command is None else self.command.killed_for
        ended = "timed_out" if killed_for == "hard_timeout" else "killed" if killed_for else "completed"
        return {
            "command_id": f"{self.name}-{self.count}",
            "command": self.text or "",
            "status": "running" if self.running else ended,
            "exit_code": self.exit_code,
        }

    def describe(self) -> dict[str, Any]:
        return {
            "session_id": self.name,
            "status": "ready",
            "working_dir": self.folder,
            "created_at": format_time(self.created),
            "last_used_at": format_time(self.used),
            "current_command": self.text if self.running else None,
            "command_count": self.count,
        }


class Bash:
    """command_s: after so many seconds a command is ended."""

    def __init__(self, starter: ProcessStarter, files: Files, shell: str, command_s: float) -> None:
        self._starter = starter
        self._files = files
        self._shell = shell
        self._command_s = command_s
        self._sessions = Sessions[BashSession](MAX_SESSIONS)

    async def create(self, arguments: Arguments) -> Reply:
        if arguments.optional_text("snapshot_path"):
            raise RequestError(501, "this sandbox reads no snapshots. Run `source` in the session")
        return success(self._session(arguments).describe(), "Session created")

    async def execute(self, arguments: Arguments) -> Reply:
        environment = arguments.text_values("env")
        if any(not (name.isascii() and name.isidentifier()) or "\0" in value for name, value in environment.items()):
            raise InvalidArgumentError("env", "must have names and values that a shell can take")
        text = command_text(arguments)
        timeout_s, hard = arguments.timeout("timeout"), arguments.timeout("hard_timeout")
        background, longest = arguments.flag("async_mode"), arguments.integer("max_output_length")
        session = self._session(arguments)
        if session.running:
            raise RequestError(409, f"session {session.name}: a command still runs. Wait for it, or kill it")
        session.begin(text, session.folder)
        pipes = {session.output: (1,), session.errors: (2,)}
        command = start_command(self._starter, self._shell, session, pipes, environment)
        if not background:
            hard_s = self._command_s if hard is None else min(hard, self._command_s)
            await command.wait(timeout_s=timeout_s, hard_timeout_s=hard_s)
        printed = {"stdout": session.output.text(shortened=False), "stderr": session.errors.text(shortened=False)}
        if longest and not background:
            printed = {name: shorten(text, max(longest, 1)) for name, text in printed.items()}
        offsets = {"offset": session.output.total, "stderr_offset": session.errors.total}
        return success({"session_id": session.name, **session.command_info(), **printed, **offsets}, "Command executed")

    async def output(self, arguments: Arguments) -> Reply:
        session = self._command_of(arguments)
        offset, errors_offset = arguments.integer("offset") or 0, arguments.integer("stderr_offset") or 0
        wait_s = arguments.number("wait_timeout")
        until = time.monotonic() + ((_WAIT_S if wait_s is None else wait_s) or self._command_s)
        while arguments.flag("wait") and session.running and time.monotonic() < until:
            if session.output.total > offset or session.errors.total > errors_offset:
                break
            await asyncio.sleep(_POLL_S)
        result = {
            "session_id": session.name,
            "stdout": session.output.text_from(offset),
            "stderr": session.errors.text_from(errors_offset),
            "offset": session.output.total,
            "stderr_offset": session.errors.total,
            "command": session.command_info() if session.command is not None else None,
        }
        return success(result)

    async def write(self, arguments: Arguments) -> Reply:
        session = self._command_of(arguments)
        if session.command is None or not session.command.write(encode(arguments.text("input"))):
            raise RequestError(409, f"session {session.name}: no command runs that takes more input")
        return success(None, "Written")

    async def kill(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("session_id"))
        number = choose("signal", arguments.optional_text("signal") or "SIGTERM", _SIGNALS)
        if session.command is not None and session.running:
            session.command.killed_for = "terminated"
            session.command.send_signal(number)
            return success(None, f"{number.name} sent")
        return success(None, "No command runs")

    async def list_sessions(self, _: Arguments) -> Reply:
        return success([session.describe() for session in self._sessions.all()])

    async def close(self, arguments: Arguments) -> Reply:
        self._sessions.close(self._sessions.find(arguments.text("session_id")))
        return success(None, "Session ended")

    def _session(self, arguments: Arguments) -> BashSession:
        """The session that is asked for, a new one if need be, in the folder that is asked for."""
        name, folder = arguments.optional_text("session_id"), arguments.optional_path("exec_dir")
        if folder is not None:
            folder = self._files.folder(folder)
        if name in self._sessions:
            session = self._sessions.find(str(name))
        else:
            session = self._sessions.add(BashSession(self._sessions.free_name(name), self._starter.home))
        session.folder = folder or session.folder
        return session

    def _command_of(self, arguments: Arguments) -> BashSession:
        """The session; its latest command is the only one that is known. Raises RequestError."""
        session = self._sessions.find(arguments.text("session_id"))
        wanted = arguments.optional_text("command_id")
        if wanted is not None and wanted != session.command_info()["command_id"]:
            raise RequestError(404, f"session {session.name} knows its latest command only, not {wanted[:80]}")
        return session

"""Shell sessions. A session keeps its folder, variables and functions from one command to the next, but no jobs."""

from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, encode, success
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand
from .sessions import Sessions

_SILENCE_S: Final = 120
MAX_SESSIONS: Final = 64
_WAIT_S: Final = 30.0
_MAX_RECORDS: Final = 20
_STATE_BYTES: Final = 1 << 20
_DEFAULT_PIPE_BYTES: Final = 1 << 16
_ACTIVE_S: Final = 300
_KILL_S: Final = 5.0

# Descriptor 3 brings what the session knows, 4 takes it back; `exit` inside the command keeps it too.
_SCRIPT: Final = (
    'trap \'{ unset -v $2; printf "%s\\0" "$PWD"; declare -p; declare -f; } >&4 2>/dev/null\' EXIT; '
    '. /dev/fd/3 >/dev/null 2>&1; exec 3<&-; eval "$1" 4>&-'
)


class ShellSession:
    """What is known of a session. created, used: seconds since 1970."""

    def __init__(self, name: str, folder: str, silence_s: float) -> None:
        self.name = name
        self.folder = folder
        self.created = self.used = time.time()
        self.silence_s = silence_s
        self.text: str | None = None
        self.command: RunningCommand | None = None
        self.output = CapturedOutput()
        self.state = b""
        self.status = "completed"
        self._records: list[dict[str, Any]] = []

    @property
    def running(self) -> bool:
        return self.command is not None and self.command.running

    @property
    def exit_code(self) -> int | None:
        return None if self.command is None else self.command.exit_code

    def begin(self, text: str, folder: str) -> None:
        """Go on to another command."""
        if self.command is not None:
            self._records = [*self._records, self._record(shortened=True)][-_MAX_RECORDS:]
            self.command.close()
        self.text, self.folder, self.used = text, folder, time.time()
        self.output, self.status = CapturedOutput(), "running"

    def close(self) -> None:
        if self.command is not None:
            self.command.close()

    def settle(self, reason: str) -> str:
        """The status that the end of a wait leaves."""
        if self.status != "terminated":
            self.status = reason
        return self.status

    def save_state(self, left: CapturedOutput) -> None:
        """Take over what an ended command left: its folder, variables and functions."""
        folder, found, state = (left.whole() or b"").partition(b"\0")
        # A command that was killed left nothing; then the session goes on from what it knew before.
        if found and len(state) <= _STATE_BYTES:
            self.folder, self.state = os.fsdecode(folder), state

    def result(self, status: str, *, shortened: bool) -> dict[str, Any]:
        return {
            "session_id": self.name,
            "command": self.text,
            "status": status,
            "output": self.output.text(shortened=shortened),
            "console": [] if self.text is None else [*self._records, self._record(shortened=shortened)],
            "exit_code": self.exit_code,
        }

    def _record(self, *, shortened: bool) -> dict[str, Any]:
        output = self.output.text(shortened=shortened)
        return {"ps1": f"{self.folder} $", "command": self.text or "", "output": output}


class Shell:
    """command_s: after so many seconds a command that is waited for is ended."""

    def __init__(self, starter: ProcessStarter, shell: str, command_s: float) -> None:
        self._starter = starter
        self._shell = shell
        self._command_s = command_s
        self._sessions = Sessions[ShellSession](MAX_SESSIONS)

    async def execute(self, arguments: Arguments) -> Reply:
        text = command_text(arguments)
        # A sandbox knows no difference between the folder of a link and the one behind it; `truncate` is for the reply.
        arguments.flag("preserve_symlinks")
        shortened = arguments.flag("truncate", default=True)
        timeout, hard = arguments.timeout("timeout"), arguments.timeout("hard_timeout")
        background, silence = arguments.flag("async_mode"), arguments.number("no_change_timeout")
        session = self._session_for(arguments)
        if silence is None and arguments.number("timeout") != 0:  # 0 asks for a wait without any limit of its own
            silence = session.silence_s
        command = self._start(session, text, self._folder(session, arguments))
        if background:
            return success(session.result("running", shortened=shortened), "The command runs")
        reason = await command.wait(
            timeout_s=timeout,
            silence_s=silence or None,
            hard_timeout_s=self._command_s if hard is None else min(hard, self._command_s),
        )
        message = f"The command was ended: {command.killed_for}" if command.killed_for else "Command executed"
        return success(session.result(session.settle(reason), shortened=shortened), message)

    async def view(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("id"))
        return success(session.result("running" if session.running else session.status, shortened=True))

    async def wait(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("id"))
        seconds = arguments.number("max_wait_seconds")
        if seconds is None:
            seconds = arguments.number("seconds")
        if session.command is None:
            return success({"status": "completed"})
        longest = _WAIT_S if seconds is None else seconds or self._command_s
        reason = await session.command.wait(timeout_s=min(longest, self._command_s))
        return success({"status": session.settle(reason)})

    async def write(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("id"))
        text = arguments.text("input") + ("\n" if arguments.flag("press_enter") else "")
        if session.command is None or not session.running:
            raise RequestError(409, f"session {session.name}: no command runs that could take input")
        if not session.command.write(encode(text)):
            raise RequestError(409, f"session {session.name}: the command takes no more input")
        return success({"status": "running"})

    async def kill(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("id"))
        status, message = session.status, "No command runs"
        if session.command is not None and session.running:
            session.status = status = "terminated"
            session.command.kill("terminated")
            await session.command.wait(timeout_s=_KILL_S)
            message = "Done"
        code = session.exit_code
        return success({"status": status, "exit_code": code, "returncode": code}, message)

    async def create(self, arguments: Arguments) -> Reply:
        name = arguments.optional_text("id")
        if name in self._sessions:
            session = self._sessions.find(str(name))
        else:
            session = self._new(name, arguments.number("no_change_timeout"))
            session.folder = self._folder(session, arguments)
        return success({"session_id": session.name, "working_dir": session.folder})

    async def update(self, arguments: Arguments) -> Reply:
        session = self._sessions.find(arguments.text("id"))
        if (silence := arguments.number("no_change_timeout")) is not None:
            session.silence_s = silence
        return success({"session_id": session.name, "no_change_timeout": session.silence_s})

    async def list_sessions(self, _: Arguments) -> Reply:
        sessions = {
            session.name: {
                "working_dir": session.folder,
                "created_at": format_time(session.created),
                "last_used_at": format_time(session.used),
                "age_seconds": int(time.time() - session.created),
                "status": "running" if session.running else "ready",
                "current_command": session.text if session.running else None,
            }
            for session in self._sessions.all()
        }
        return success({"sessions": sessions})

    async def statistics(self, _: Arguments) -> Reply:
        total = len(self._sessions)
        active = sum(time.time() - session.used < _ACTIVE_S for session in self._sessions.all())
        numbers = {"total_sessions": total, "active_sessions": active, "idle_sessions": total - active}
        limits = {"max_sessions": MAX_SESSIONS, "session_timeout": 0, "usage_ratio": total / MAX_SESSIONS}
        return success(numbers | limits)

    async def close_all(self, _: Arguments) -> Reply:
        return self._closed(*self._sessions.all())

    async def close_one(self, arguments: Arguments) -> Reply:
        return self._closed(self._sessions.find(arguments.text("session_id")))

    def note_kill(self, pid: int, reason: str) -> None:
        """Remember why a process was ended, for the reply to the command that it belonged to."""
        for session in self._sessions.all():
            command = session.command
            if command is None or not command.running or command.killed_for == reason:
                continue
            if pid == command.pid or _session_leader(pid) == command.pid:
                command.killed_for = reason
                session.output.add(f"\n[A process was ended: {reason}]\n".encode())

    def _session_for(self, arguments: Arguments) -> ShellSession:
        name = arguments.optional_text("id")
        if name is None or name not in self._sessions:
            return self._new(name, None)
        session = self._sessions.find(name)
        if session.running:
            text = (session.text or "")[:80]
            raise RequestError(409, f"session {name}: '{text}' still runs. Wait for it, or kill it")
        return session

    def _new(self, name: str | None, silence: float | None) -> ShellSession:
        name = self._sessions.free_name(name)
        session = ShellSession(name, self._starter.home, _SILENCE_S if silence is None else silence)
        return self._sessions.add(session)

    def _folder(self, session: ShellSession, arguments: Arguments) -> str:
        wanted, strict = arguments.optional_path("exec_dir"), arguments.flag("strict")
        for folder in (wanted, session.folder, self._starter.home, "/"):
            if folder is not None and os.path.isdir(folder) and os.access(folder, os.X_OK):
                return folder
            if strict and folder is not None:
                raise RequestError(400, f"{folder}: is no folder to run a command in")
        return "/"

    def _start(self, session: ShellSession, text: str, folder: str) -> RunningCommand:
        session.begin(text, folder)
        return start_command(self._starter, self._shell, session, {session.output: (1, 2)})

    def _closed(self, *sessions: ShellSession) -> Reply:
        names = self._sessions.close(*sessions)
        return success({"cleaned": names}, f"{len(names)} sessions ended")


def start_command(
    starter: ProcessStarter,
    shell: str,
    session: ShellSession,
    outputs: Mapping[CapturedOutput, Sequence[int]],
    environment: Mapping[str, str] | None = None,
) -> RunningCommand:
    """The session's new command, with what the session knows. Raises RequestError.

    environment: variables of this command alone.
    """
    environment = environment or {}
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    text += session.text or ""
    known, left = _pipe_with(session.state), CapturedOutput()
    try:
        session.command = RunningCommand(
            starter,
            (shell, "--noprofile", "--norc", "-c", _SCRIPT, "bash", text, " ".join(environment)),
            session.folder,
            {**outputs, left: (4,)},
            extra={3: known},
            stdin=True,
            on_exit=lambda: session.save_state(left),
        )
    finally:
        os.close(known)
    return session.command


def command_text(arguments: Arguments) -> str:
    text = arguments.text("command")
    if "\0" in text:
        raise InvalidArgumentError("command", "must not hold a zero byte")
    if len(encode(text)) > 100_000:
        raise InvalidArgumentError("command", "is longer than 100,000 bytes. Write it to a file, and run that")
    return text


def _session_leader(pid: int) -> int | None:
    with suppress(OSError):
        return os.getsid(pid)
    return None


def _pipe_with(content: bytes) -> int:
    """A descriptor to read `content` from; a pipe, since the disk may be full."""
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        size = len(content)
        with suppress(OSError):  # what does not fit is forgotten
            if size <= _DEFAULT_PIPE_BYTES or fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, _STATE_BYTES) >= size:
                os.write(theirs, content)
    finally:
        os.close(theirs)
    os.set_blocking(ours, True)
    return ours


def format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

"""Shell sessions. A session keeps its folder, variables and functions from one command to the next, but no jobs."""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from contextlib import suppress
from typing import Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, encode, success
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand

_MAX_SESSIONS: Final = 64
_STATE_BYTES: Final = 1 << 20
_DEFAULT_PIPE_BYTES: Final = 1 << 16

# Descriptor 3 brings what the session knows, 4 takes it back; `exit` inside the command keeps it too.
_SCRIPT: Final = (
    'trap \'{ printf "%s\\0" "$PWD"; declare -p; declare -f; } >&4 2>/dev/null\' EXIT; '
    '. /dev/fd/3 >/dev/null 2>&1; exec 3<&-; eval "$1" 4>&-'
)


class _Session:
    """What is known of a session, and its latest command. used: by a clock that only goes on."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder, self.state = name, folder, b""
        self.used = time.monotonic()
        self.text = ""
        self.command: RunningCommand | None = None
        self.output = CapturedOutput()

    @property
    def running(self) -> bool:
        return self.command is not None and self.command.running

    def close(self) -> None:
        if self.command is not None:
            self.command.close()

    def save_state(self, left: CapturedOutput) -> None:
        """Take over what an ended command left: its folder, variables and functions."""
        folder, found, state = (left.whole() or b"").partition(b"\0")
        # A command that was killed left nothing; then the session goes on from what it knew before.
        if found and len(state) <= _STATE_BYTES:
            self.folder, self.state = os.fsdecode(folder), state


class Shell:
    """command_s: after so many seconds a command is ended."""

    def __init__(self, starter: ProcessStarter, shell: str, command_s: float) -> None:
        self._starter = starter
        self._shell = shell
        self._command_s = command_s
        self._sessions: dict[str, _Session] = {}
        self._numbers = itertools.count(1)

    async def execute(self, arguments: Arguments) -> Reply:
        text = _command_text(arguments)
        shortened = arguments.flag("truncate", default=True)
        if arguments.flag("async_mode"):
            raise RequestError(501, "every command is waited for. Let the shell run it in the background: COMMAND &")
        limits = (arguments.timeout("timeout"), arguments.timeout("hard_timeout"), self._command_s)
        session = self._session_for(arguments.optional_text("id"))
        session.close()
        session.text, session.folder, session.output = text, self._folder(session, arguments), CapturedOutput()
        command = self._start(session)
        status = await command.wait(min(filter(None, limits)))
        message = f"The command was ended: {command.killed_for}" if command.killed_for else "Command executed"
        output = session.output.text(shortened=shortened)
        result = {
            "session_id": session.name,
            "command": text,
            "status": status,
            "output": output,
            "console": [{"ps1": f"{session.folder} $", "command": text, "output": output}],
            "exit_code": command.exit_code,
        }
        return success(result, message)

    def note_kill(self, pid: int, reason: str) -> None:
        """Remember why a process was ended, for the reply to the command that it belonged to."""
        for session in self._sessions.values():
            command = session.command
            if command is None or not command.running or command.killed_for == reason:
                continue
            if pid == command.pid or _session_leader(pid) == command.pid:
                command.killed_for = reason
                session.output.add(f"\n[A process was ended: {reason}]\n".encode())

    def _session_for(self, name: str | None) -> _Session:
        """To run a command in. Where there are as many as may be, the one that was used longest ago makes room."""
        session = None if name is None else self._sessions.get(name)
        if session is not None:
            if session.running:
                problem = f"'{session.text[:80]}' still runs. Wait for it"
                raise RequestError(409, f"session {name}: {problem}")
            session.used = time.monotonic()
            return session
        if name is None:
            name = next(number for number in map(str, self._numbers) if number not in self._sessions)
        elif not name or len(name) > 200:
            raise InvalidArgumentError("id", "must have 1 to 200 characters")
        if len(self._sessions) >= _MAX_SESSIONS:
            idle = [session for session in self._sessions.values() if not session.running]
            if not idle:
                raise RequestError(503, f"{_MAX_SESSIONS} sessions are busy already. End some of them")
            self._sessions.pop(min(idle, key=lambda session: session.used).name).close()
        session = self._sessions[name] = _Session(name, self._starter.home)
        return session

    def _folder(self, session: _Session, arguments: Arguments) -> str:
        wanted = arguments.optional_path("exec_dir")
        for folder in (wanted,) if wanted else (session.folder, self._starter.home, "/"):
            if os.path.isdir(folder) and os.access(folder, os.X_OK):
                return folder
        raise RequestError(400, f"{folder}: is no folder to run a command in")

    def _start(self, session: _Session) -> RunningCommand:
        """The session's new command, with what the session knows. Raises RequestError."""
        known, left = _pipe_with(session.state), CapturedOutput()
        try:
            session.command = RunningCommand(
                self._starter,
                (self._shell, "--noprofile", "--norc", "-c", _SCRIPT, "bash", session.text),
                session.folder,
                {session.output: (1, 2), left: (4,)},
                extra={3: known},
                on_exit=lambda: session.save_state(left),
            )
        finally:
            os.close(known)
        return session.command


def _command_text(arguments: Arguments) -> str:
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

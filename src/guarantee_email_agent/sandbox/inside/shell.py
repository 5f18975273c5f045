"""Shell sessions. A session keeps its folder, variables and functions from one command to the next, but no jobs."""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from contextlib import suppress
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, Reply, RequestError, encode, success
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand

_SILENCE_S: Final = 120
_MAX_SESSIONS: Final = 64
_WAIT_S: Final = 30.0
_STATE_BYTES: Final = 1 << 20
_DEFAULT_PIPE_BYTES: Final = 1 << 16
_KILL_S: Final = 5.0

# Descriptor 3 brings what the session knows, 4 takes it back; `exit` inside the command keeps it too.
_SCRIPT: Final = (
    'trap \'{ printf "%s\\0" "$PWD"; declare -p; declare -f; } >&4 2>/dev/null\' EXIT; '
    '. /dev/fd/3 >/dev/null 2>&1; exec 3<&-; eval "$1" 4>&-'
)


class _Session:
    """What is known of a session, and its latest command. used: by a clock that only goes on."""

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.folder = folder
        self.used = time.monotonic()
        self.text = ""
        self.command: RunningCommand | None = None
        self.output = CapturedOutput()
        self.state = b""
        self.status = "completed"

    @property
    def running(self) -> bool:
        return self.command is not None and self.command.running

    @property
    def exit_code(self) -> int | None:
        return None if self.command is None else self.command.exit_code

    def begin(self, text: str, folder: str) -> None:
        """Go on to another command."""
        self.close()
        self.text, self.folder, self.output, self.status = text, folder, CapturedOutput(), "running"

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
        output = self.output.text(shortened=shortened)
        return {
            "session_id": self.name,
            "command": self.text,
            "status": status,
            "output": output,
            "console": [{"ps1": f"{self.folder} $", "command": self.text, "output": output}],
            "exit_code": self.exit_code,
        }


class Shell:
    """command_s: after so many seconds a command that is waited for is ended."""

    def __init__(self, starter: ProcessStarter, shell: str, command_s: float) -> None:
        self._starter = starter
        self._shell = shell
        self._command_s = command_s
        self._sessions: dict[str, _Session] = {}
        self._numbers = itertools.count(1)

    async def execute(self, arguments: Arguments) -> Reply:
        text = _command_text(arguments)
        shortened = arguments.flag("truncate", default=True)
        timeout, hard = arguments.timeout("timeout"), arguments.timeout("hard_timeout")
        background, silence = arguments.flag("async_mode"), arguments.number("no_change_timeout")
        session = self._session_for(arguments.optional_text("id"))
        if silence is None and arguments.number("timeout") != 0:  # 0 asks for a wait without any limit of its own
            silence = _SILENCE_S
        session.begin(text, self._folder(session, arguments))
        command = self._start(session)
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
        session = self._find(arguments)
        return success(session.result("running" if session.running else session.status, shortened=True))

    async def wait(self, arguments: Arguments) -> Reply:
        session, command = self._find_running(arguments)
        seconds = arguments.number("max_wait_seconds")
        if seconds is None:
            seconds = arguments.number("seconds")
        longest = _WAIT_S if seconds is None else seconds or self._command_s
        reason = await command.wait(timeout_s=min(longest, self._command_s))
        return success({"status": session.settle(reason)})

    async def write(self, arguments: Arguments) -> Reply:
        session, command = self._find_running(arguments)
        text = arguments.text("input") + ("\n" if arguments.flag("press_enter") else "")
        if not command.write(encode(text)):
            raise RequestError(409, f"session {session.name}: no command runs that takes more input")
        return success({"status": "running"})

    async def kill(self, arguments: Arguments) -> Reply:
        session, command = self._find_running(arguments)
        status, message = session.status, "No command runs"
        if session.running:
            session.status = status = "terminated"
            command.kill("terminated")
            await command.wait(timeout_s=_KILL_S)
            message = "Done"
        code = session.exit_code
        return success({"status": status, "exit_code": code, "returncode": code}, message)

    def note_kill(self, pid: int, reason: str) -> None:
        """Remember why a process was ended, for the reply to the command that it belonged to."""
        for session in self._sessions.values():
            command = session.command
            if command is None or not command.running or command.killed_for == reason:
                continue
            if pid == command.pid or _session_leader(pid) == command.pid:
                command.killed_for = reason
                session.output.add(f"\n[A process was ended: {reason}]\n".encode())

    def _find(self, arguments: Arguments) -> _Session:
        name = arguments.text("id")
        if (session := self._sessions.get(name)) is None:
            raise RequestError(404, f"there is no session {name[:80]}")
        session.used = time.monotonic()
        return session

    def _find_running(self, arguments: Arguments) -> tuple[_Session, RunningCommand]:
        """The session and its latest command, which may have ended."""
        session = self._find(arguments)
        if session.command is None:
            raise RequestError(409, f"session {session.name} has run no command yet")
        return session, session.command

    def _session_for(self, name: str | None) -> _Session:
        """To run a command in. Where there are as many as may be, the one that was used longest ago makes room."""
        session = None if name is None else self._sessions.get(name)
        if session is not None:
            if session.running:
                problem = f"'{session.text[:80]}' still runs. Wait for it, or kill it"
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
                stdin=True,
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

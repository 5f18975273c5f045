"""Shell sessions. A session keeps its folder, variables and functions from one command to the next, but no jobs."""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from contextlib import suppress
from typing import Any, Final

from .api_request import ApiRequest, Arguments, InvalidArgumentError, RequestError
from .captured_output import CapturedOutput
from .process_starter import ProcessStarter
from .running_command import CommandWait, RunningCommand

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
    'trap \'{ printf "%s\\0" "$PWD"; declare -p; declare -f; } >&4 2>/dev/null\' EXIT; '
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
        self._sessions: dict[str, ShellSession] = {}
        self._numbers = itertools.count(1)

    def execute(self, request: ApiRequest, arguments: Arguments) -> None:
        text = arguments.text("command")
        if "\0" in text:
            raise InvalidArgumentError("command", "must not hold a zero byte")
        if len(text.encode("utf-8", "replace")) > 100_000:
            raise InvalidArgumentError("command", "is longer than 100,000 bytes. Write it to a file, and run that")
        # A sandbox knows no difference between the folder of a link and the one behind it; `truncate` is for the reply.
        arguments.flag("preserve_symlinks")
        shortened = arguments.flag("truncate", default=True)
        timeout, hard = arguments.number("timeout"), arguments.number("hard_timeout")
        background, silence = arguments.flag("async_mode"), arguments.number("no_change_timeout")
        session = self._session_for(arguments)
        command = self._start(session, text, self._folder(session, arguments))
        if background:
            request.answer(session.result("running", shortened=shortened), "The command runs")
            return

        def done(reason: str) -> None:
            message = f"The command was ended: {command.killed_for}" if command.killed_for else "Command executed"
            request.answer(session.result(session.settle(reason), shortened=shortened), message)

        CommandWait(
            self._starter,
            command,
            done,
            timeout_s=timeout,
            silence_s=session.silence_s if silence is None else silence,
            hard_timeout_s=self._command_s if hard is None else min(hard, self._command_s),
        )

    def view(self, request: ApiRequest, arguments: Arguments) -> None:
        session = self._find(arguments)
        request.answer(session.result("running" if session.running else session.status, shortened=True))

    def wait(self, request: ApiRequest, arguments: Arguments) -> None:
        session = self._find(arguments)
        seconds = arguments.number("max_wait_seconds") or arguments.number("seconds") or _WAIT_S
        if session.command is None:
            request.answer({"status": "completed"})
            return
        CommandWait(
            self._starter,
            session.command,
            lambda reason: request.answer({"status": session.settle(reason)}),
            timeout_s=min(seconds, self._command_s),
        )

    def write(self, request: ApiRequest, arguments: Arguments) -> None:
        session = self._find(arguments)
        text = arguments.text("input") + ("\n" if arguments.flag("press_enter") else "")
        if session.command is None or not session.running:
            raise RequestError(409, f"session {session.name}: no command runs that could take input")
        if not session.command.write(text.encode("utf-8", "replace")):
            raise RequestError(409, f"session {session.name}: the command takes no more input")
        request.answer({"status": "running"})

    def kill(self, request: ApiRequest, arguments: Arguments) -> None:
        session = self._find(arguments)

        def answer(status: str, message: str = "Done") -> None:
            code = session.exit_code
            request.answer({"status": status, "exit_code": code, "returncode": code}, message)

        if session.command is None or not session.running:
            answer(session.status, "No command runs")
            return
        session.status = "terminated"
        session.command.kill("terminated")
        CommandWait(self._starter, session.command, lambda _: answer("terminated"), timeout_s=_KILL_S)

    def create(self, request: ApiRequest, arguments: Arguments) -> None:
        name = arguments.optional_text("id")
        session = self._sessions.get(name) if name is not None else None
        if session is None:
            session = self._new(name, arguments.number("no_change_timeout"))
            session.folder = self._folder(session, arguments)
        request.answer({"session_id": session.name, "working_dir": session.folder})

    def update(self, request: ApiRequest, arguments: Arguments) -> None:
        session = self._find(arguments)
        if (silence := arguments.number("no_change_timeout")) is not None:
            session.silence_s = silence
        request.answer({"session_id": session.name, "no_change_timeout": session.silence_s})

    def list_sessions(self, request: ApiRequest, _: Arguments) -> None:
        sessions = {
            session.name: {
                "working_dir": session.folder,
                "created_at": _format_time(session.created),
                "last_used_at": _format_time(session.used),
                "age_seconds": int(time.time() - session.created),
                "status": "running" if session.running else "ready",
                "current_command": session.text if session.running else None,
            }
            for session in self._sessions.values()
        }
        request.answer({"sessions": sessions})

    def statistics(self, request: ApiRequest, _: Arguments) -> None:
        total = len(self._sessions)
        active = sum(time.time() - session.used < _ACTIVE_S for session in self._sessions.values())
        numbers = {"total_sessions": total, "active_sessions": active, "idle_sessions": total - active}
        limits = {"max_sessions": MAX_SESSIONS, "session_timeout": 0, "usage_ratio": total / MAX_SESSIONS}
        request.answer(numbers | limits)

    def close_all(self, request: ApiRequest, _: Arguments) -> None:
        self._close_and_answer(request, list(self._sessions.values()))

    def close_one(self, request: ApiRequest, name: str) -> None:
        self._close_and_answer(request, [self._find_by_name(name)])

    def note_kill(self, pid: int, reason: str) -> None:
        """Remember why a process was ended, for the reply to the command that it belonged to."""
        for session in self._sessions.values():
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
        session = self._sessions[name]
        if session.running:
            text = (session.text or "")[:80]
            raise RequestError(409, f"session {name}: '{text}' still runs. Wait for it, or kill it")
        return session

    def _new(self, name: str | None, silence: float | None) -> ShellSession:
        if len(self._sessions) >= MAX_SESSIONS:
            idle = [session for session in self._sessions.values() if not session.running]
            if not idle:
                raise RequestError(503, f"{MAX_SESSIONS} sessions run commands already. End some of them")
            self._close(min(idle, key=lambda session: session.used))
        if name is None:
            name = next(number for number in map(str, self._numbers) if number not in self._sessions)
        elif not name or len(name) > 200:
            raise InvalidArgumentError("id", "must have 1 to 200 characters")
        self._sessions[name] = ShellSession(name, self._starter.home, _SILENCE_S if silence is None else silence)
        return self._sessions[name]

    def _folder(self, session: ShellSession, arguments: Arguments) -> str:
        wanted, strict = arguments.optional_text("exec_dir"), arguments.flag("strict")
        for folder in (wanted, session.folder, self._starter.home, "/"):
            if folder is not None and os.path.isdir(folder) and os.access(folder, os.X_OK):
                return folder
            if strict and folder is not None:
                raise RequestError(400, f"{folder}: is no folder to run a command in")
        return "/"

    def _start(self, session: ShellSession, text: str, folder: str) -> RunningCommand:
        session.begin(text, folder)
        known, left = _pipe_with(session.state), CapturedOutput()
        try:
            session.command = command = RunningCommand(
                self._starter,
                (self._shell, "--noprofile", "--norc", "-c", _SCRIPT, "bash", text),
                folder,
                {session.output: (1, 2), left: (4,)},
                extra={3: known},
                stdin=True,
            )
        finally:
            os.close(known)
        command.on_exit.append(lambda: session.save_state(left))
        return command

    def _close(self, session: ShellSession) -> None:
        self._sessions.pop(session.name, None)
        if session.command is not None:
            session.command.close()

    def _close_and_answer(self, request: ApiRequest, sessions: list[ShellSession]) -> None:
        for session in sessions:
            self._close(session)
        names = [session.name for session in sessions]
        request.answer({"cleaned": names}, f"{len(names)} sessions ended")

    def _find(self, arguments: Arguments) -> ShellSession:
        return self._find_by_name(arguments.text("id"))

    def _find_by_name(self, name: str) -> ShellSession:
        if name not in self._sessions:
            raise RequestError(404, f"there is no session {name[:80]}")
        session = self._sessions[name]
        session.used = time.time()
        return session


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


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

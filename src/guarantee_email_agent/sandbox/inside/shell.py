"""Shell sessions. A session keeps its folder, variables and functions from one command to the next, but no jobs."""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from .api_request import Arguments, Failure, Invalid, Request
from .captured_output import CapturedOutput
from .event_loop import Loop
from .process_starter import Starter
from .running_command import Command, Wait

SILENT_S: Final = 120
MAX_SESSIONS: Final = 64
_WAIT_S: Final = 30.0
_RECORDS: Final = 20
_STATE_BYTES: Final = 1 << 20
_PIPE_BYTES: Final = 1 << 16
_ACTIVE_S: Final = 300

# Descriptor 3 brings what the session knows, 4 takes it back; `exit` inside the command keeps it too.
_SCRIPT: Final = (
    'trap \'{ printf "%s\\0" "$PWD"; declare -p; declare -f; } >&4 2>/dev/null\' EXIT; '
    '. /dev/fd/3 >/dev/null 2>&1; exec 3<&-; eval "$1" 4>&-'
)


class Session:
    """What is known of a session. created, used: seconds since 1970."""

    def __init__(self, name: str, folder: str, now: float, silent_s: float) -> None:
        self.name = name
        self.folder = folder
        self.created = self.used = now
        self.silent_s = silent_s
        self.text: str | None = None
        self.command: Command | None = None
        self.output = CapturedOutput()
        self.state = b""
        self.status = "completed"
        self.earlier: list[dict[str, Any]] = []

    @property
    def running(self) -> bool:
        return self.command is not None and self.command.running

    @property
    def exit_code(self) -> int | None:
        return None if self.command is None else self.command.exit_code


class Shell:
    """home: where a session starts. command_s: after so many seconds a command that is waited for is ended."""

    def __init__(
        self, loop: Loop, starter: Starter, shell: str, environment: Mapping[str, str], home: str, command_s: float
    ) -> None:
        self._loop = loop
        self._starter = starter
        self._shell = shell
        self._environment = environment
        self._home = home
        self._command_s = command_s
        self._sessions: dict[str, Session] = {}
        self._numbers = itertools.count(1)

    def execute(self, request: Request, arguments: Arguments) -> None:
        text = arguments.text("command")
        if "\0" in text:
            raise Invalid("command", "must not hold a zero byte")
        if len(text.encode("utf-8", "replace")) > 100_000:
            raise Invalid("command", "is longer than 100,000 bytes. Write it to a file, and run that")
        # A sandbox knows no difference between the folder of a link and the one behind it; `truncate` is for the reply.
        arguments.flag("preserve_symlinks")
        shortened = arguments.flag("truncate", default=True)
        timeout, hard = arguments.number("timeout"), arguments.number("hard_timeout")
        background, silent = arguments.flag("async_mode"), arguments.number("no_change_timeout")
        session = self._session_for(arguments)
        folder = self._folder(session, arguments)
        command = self._start(session, text, folder)
        if background:
            request.answer(self._result(session, "running", shortened), "The command runs")
            return
        longest = min(hard if hard is not None else self._command_s, self._command_s)
        Wait(
            self._loop,
            command,
            lambda reason: request.answer(
                self._result(session, self._settled(session, reason), shortened), _said(session)
            ),
            timeout_s=timeout,
            silent_s=silent if silent is not None else session.silent_s,
            hard_s=longest,
        )

    def view(self, request: Request, arguments: Arguments) -> None:
        session = self._known(arguments.text("id"))
        result = self._result(session, session.status if not session.running else "running", shortened=True)
        result["command"] = session.text
        request.answer(result)

    def wait(self, request: Request, arguments: Arguments) -> None:
        session = self._known(arguments.text("id"))
        seconds = arguments.number("max_wait_seconds") or arguments.number("seconds") or _WAIT_S
        if session.command is None:
            request.answer({"status": "completed"})
            return
        Wait(
            self._loop,
            session.command,
            lambda reason: request.answer({"status": self._settled(session, reason)}),
            timeout_s=min(seconds, self._command_s),
        )

    def write(self, request: Request, arguments: Arguments) -> None:
        session = self._known(arguments.text("id"))
        text = arguments.text("input") + ("\n" if arguments.flag("press_enter") else "")
        if session.command is None or not session.running:
            raise Failure(409, f"session {session.name}: no command runs that could take input")
        if not session.command.write(text.encode("utf-8", "replace")):
            raise Failure(409, f"session {session.name}: the command takes no more input")
        request.answer({"status": "running"})

    def kill(self, request: Request, arguments: Arguments) -> None:
        session = self._known(arguments.text("id"))
        if session.command is None or not session.running:
            code = session.exit_code
            request.answer({"status": session.status, "exit_code": code, "returncode": code}, "No command runs")
            return
        session.status = "terminated"
        session.command.kill("terminated")
        Wait(
            self._loop,
            session.command,
            lambda _: request.answer(
                {"status": "terminated", "exit_code": session.exit_code, "returncode": session.exit_code}
            ),
            timeout_s=5.0,
        )

    def create(self, request: Request, arguments: Arguments) -> None:
        name = arguments.optional_text("id")
        session = self._sessions.get(name) if name is not None else None
        if session is None:
            session = self._new(name, arguments.number("no_change_timeout"))
            session.folder = self._folder(session, arguments)
        request.answer({"session_id": session.name, "working_dir": session.folder})

    def update(self, request: Request, arguments: Arguments) -> None:
        session = self._known(arguments.text("id"))
        if (silent := arguments.number("no_change_timeout")) is not None:
            session.silent_s = silent
        request.answer({"session_id": session.name, "no_change_timeout": session.silent_s})

    def listed(self, request: Request) -> None:
        sessions = {}
        for session in self._sessions.values():
            sessions[session.name] = {
                "working_dir": session.folder,
                "created_at": _time(session.created),
                "last_used_at": _time(session.used),
                "age_seconds": int(time.time() - session.created),
                "status": "running" if session.running else "ready",
                "current_command": session.text if session.running else None,
            }
        request.answer({"sessions": sessions})

    def statistics(self, request: Request) -> None:
        total = len(self._sessions)
        active = sum(time.time() - session.used < _ACTIVE_S for session in self._sessions.values())
        numbers = {"total_sessions": total, "active_sessions": active, "idle_sessions": total - active}
        more = {"max_sessions": MAX_SESSIONS, "session_timeout": 0, "usage_ratio": total / MAX_SESSIONS}
        request.answer(numbers | more)

    def clean_up(self, request: Request, name: str | None) -> None:
        """End one session, or all of them, with the commands that run in them."""
        gone = list(self._sessions.values()) if name is None else [self._known(name)]
        for session in gone:
            self._close(session)
        request.answer({"cleaned": [session.name for session in gone]}, f"{len(gone)} sessions ended")

    def killed(self, pid: int, reason: str) -> None:
        """Remember why a process was ended, for the reply to the command that it belonged to."""
        for session in self._sessions.values():
            command = session.command
            if command is None or not command.running or command.killed_for == reason:
                continue
            if pid == command.pid or _leader(pid) == command.pid:
                command.killed_for = reason
                session.output.add(f"\n[A process was ended: {reason}]\n".encode())

    def _session_for(self, arguments: Arguments) -> Session:
        name = arguments.optional_text("id")
        if name is None or name not in self._sessions:
            return self._new(name, None)
        session = self._sessions[name]
        if session.running:
            raise Failure(409, f"session {name}: '{(session.text or '')[:80]}' still runs. Wait for it, or kill it")
        return session

    def _new(self, name: str | None, silent: float | None) -> Session:
        if len(self._sessions) >= MAX_SESSIONS:
            idle = [session for session in self._sessions.values() if not session.running]
            if not idle:
                raise Failure(503, f"{MAX_SESSIONS} sessions run commands already. End some of them")
            self._close(min(idle, key=lambda session: session.used))
        if name is None:
            name = next(number for number in map(str, self._numbers) if number not in self._sessions)
        elif not name or len(name) > 200:
            raise Invalid("id", "must have 1 to 200 characters")
        now = time.time()
        session = Session(name, self._home, now, SILENT_S if silent is None else silent)
        self._sessions[name] = session
        return session

    def _folder(self, session: Session, arguments: Arguments) -> str:
        wanted = arguments.optional_text("exec_dir")
        strict = arguments.flag("strict")
        for folder in (wanted, session.folder, self._home, "/"):
            if folder is not None and os.path.isdir(folder) and os.access(folder, os.X_OK):
                return folder
            if strict and folder is not None:
                raise Failure(400, f"{folder}: is no folder to run a command in")
        return "/"

    def _start(self, session: Session, text: str, folder: str) -> Command:
        if session.command is not None:
            session.earlier = [*session.earlier, self._record(session, shortened=True)][-_RECORDS:]
            session.command.close()
        session.text, session.output, session.used, session.status = text, CapturedOutput(), time.time(), "running"
        session.folder = folder
        known, left = _filled(session.state), CapturedOutput()
        try:
            command = Command(
                self._loop,
                self._starter,
                (self._shell, "--noprofile", "--norc", "-c", _SCRIPT, "bash", text),
                self._environment,
                folder,
                {1: session.output, 2: session.output, 4: left},
                extra={3: known},
                stdin=True,
            )
        finally:
            os.close(known)
        session.command = command
        command.on_change.append(lambda: _keep_state(session, left))
        return command

    def _close(self, session: Session) -> None:
        self._sessions.pop(session.name, None)
        if session.command is not None:
            session.command.close()

    def _known(self, name: str) -> Session:
        if name not in self._sessions:
            raise Failure(404, f"there is no session {name[:80]}")
        session = self._sessions[name]
        session.used = time.time()
        return session

    def _settled(self, session: Session, reason: str) -> str:
        if session.status != "terminated":
            session.status = reason
        return session.status

    def _record(self, session: Session, *, shortened: bool) -> dict[str, Any]:
        return {
            "ps1": f"{session.folder} $",
            "command": session.text or "",
            "output": session.output.text(shortened=shortened),
        }

    def _result(self, session: Session, status: str, shortened: bool) -> dict[str, Any]:
        console = [*session.earlier, self._record(session, shortened=shortened)] if session.text is not None else []
        return {
            "session_id": session.name,
            "command": session.text,
            "status": status,
            "output": session.output.text(shortened=shortened),
            "console": console,
            "exit_code": session.exit_code,
        }


def _said(session: Session) -> str:
    killed = session.command.killed_for if session.command is not None else None
    return f"The command was ended: {killed}" if killed else "Command executed"


def _leader(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _keep_state(session: Session, left: CapturedOutput) -> None:
    """Take over what an ended command left: its folder, variables and functions."""
    folder, found, state = (left.whole() or b"").partition(b"\0")
    # A command that was killed left nothing; then the session goes on from what it knew before.
    if found and len(state) <= _STATE_BYTES:
        session.folder, session.state = os.fsdecode(folder), state


def _filled(content: bytes) -> int:
    """A descriptor to read `content` from; a pipe, since the disk may be full."""
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if len(content) <= _PIPE_BYTES or fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, _STATE_BYTES) >= len(content):
            os.write(theirs, content)
    except OSError:
        pass  # what does not fit is forgotten
    finally:
        os.close(theirs)
    os.set_blocking(ours, True)
    return ours


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

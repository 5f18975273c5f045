"""Running a program that came as text, in the languages that the sandbox has."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from .api_request import Arguments, Reply, RequestError, choose, encode, success
from .files import Files
from .interpreters import DEFAULT_S, Interpreters, InterpreterSession
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand

_SUFFIXES: Final = {"python": ".py", "javascript": ".js"}


class CodeRunner:
    """interpreters: by language."""

    def __init__(self, starter: ProcessStarter, files: Files, interpreters: Mapping[str, Interpreters]) -> None:
        self._starter = starter
        self._files = files
        self._interpreters = interpreters
        self._numbers = itertools.count(1)

    async def execute(self, arguments: Arguments) -> Reply:
        language = arguments.text("language")
        interpreters = choose("language", language, self._interpreters)
        if not arguments.flag("stateful"):
            return success(await self.run(language, arguments), "Code executed")
        session, execution = await interpreters.execute(arguments)
        result = {
            "language": language,
            "status": execution.status,
            "outputs": execution.outputs,
            "code": arguments.text("code"),
            "stdout": execution.stdout,
            "stderr": execution.stderr,
            "exit_code": 0 if execution.status == "ok" else 1,
            "traceback": execution.traceback(),
            "session_id": session.name,
        }
        return success(result, "Code executed")

    async def run(self, language: str, arguments: Arguments) -> dict[str, Any]:
        """What a program did that starts from nothing. Raises RequestError."""
        interpreters, code = self._interpreters[language], arguments.text("code")
        timeout_s, stdin = interpreters.timeout_s(arguments), arguments.optional_text("stdin")
        if interpreters.interpreter is None:
            raise RequestError(501, f"this machine has nothing to run {language} with")
        files, cwd = arguments.text_values("files"), self._files.folder(arguments.optional_path("cwd"))
        place = f"/tmp/.code-{os.getpid()}-{next(self._numbers)}"  # noqa: S108 - inside
        script, input_file = f"{place}/program{_SUFFIXES[language]}", f"{place}/input"
        out, errors = CapturedOutput(), CapturedOutput()
        try:
            for path, content in {**files, script: code, input_file: stdin or ""}.items():
                self._files.store(os.path.join(place, path), encode(content))
            opened = os.open(input_file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                argv, folder = (interpreters.interpreter, script), place if files else cwd
                pipes = {out: (1,), errors: (2,)}
                command = RunningCommand(self._starter, argv, folder, pipes, extra={0: opened})
            finally:
                os.close(opened)
            reason = await command.wait(hard_timeout_s=timeout_s)
            command.close()
        finally:
            self._remove(place, _SUFFIXES[language])
        status = "timeout" if reason == "hard_timeout" else "ok" if command.exit_code == 0 else "error"
        printed = {"stdout": out.text(shortened=False), "stderr": errors.text(shortened=False)}
        outputs = [{"output_type": "stream", "name": name, "text": text} for name, text in printed.items() if text]
        result = {"language": language, "status": status, "outputs": outputs, "code": code, **printed}
        traceback = printed["stderr"].splitlines() if status == "error" else []
        return result | {"exit_code": command.exit_code, "traceback": traceback}

    async def list_languages(self, _: Arguments) -> Reply:
        languages = [
            {
                "language": language,
                "description": f"Runs with {interpreters.interpreter}",
                "default_timeout": DEFAULT_S,
                "max_timeout": int(interpreters.max_s),
                "details": {"bin": interpreters.interpreter},
            }
            for language, interpreters in self._interpreters.items()
            if interpreters.interpreter is not None
        ]
        return success({"languages": languages})

    def _remove(self, place: str, suffix: str) -> None:
        with suppress(OSError):
            os.unlink(f"{place}/input")
            os.unlink(f"{place}/program{suffix}")
            os.rmdir(place)
            return
        # What the program left there may take long to remove, or go on growing.
        with suppress(RequestError):
            self._starter.fork(lambda: _remove_tree(place))


def _remove_tree(place: str) -> None:
    import shutil  # few programs leave anything

    shutil.rmtree(place, ignore_errors=True)


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

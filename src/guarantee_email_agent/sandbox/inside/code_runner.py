"""Running a program that came as text, in the languages that the sandbox has."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from .api_request import Arguments, Reply, RequestError, choose, encode, success
from .captured_output import CapturedOutput
from .files import Files
from .interpreters import DEFAULT_S, Interpreters
from .process_starter import ProcessStarter
from .running_command import RunningCommand

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

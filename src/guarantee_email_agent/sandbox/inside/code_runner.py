"""Running a program that came as text, in the languages that the sandbox has."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from .api_request import Arguments, Reply, RequestError, choose, encode, success
from .files import Files
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand

_SUFFIXES: Final = {"python": ".py", "javascript": ".js"}
_DEFAULT_S: Final = 30
"""Seconds that a program may take where nothing is said."""


class CodeRunner:
    """interpreters: by language, None where the machine has none. max_s: for one program."""

    def __init__(
        self, starter: ProcessStarter, files: Files, interpreters: Mapping[str, str | None], max_s: float
    ) -> None:
        self._starter = starter
        self._files = files
        self._interpreters = interpreters
        self._max_s = max_s
        self._numbers = itertools.count(1)

    async def execute(self, arguments: Arguments) -> Reply:
        """Each program starts from nothing. Raises RequestError."""
        language, code = arguments.text("language"), arguments.text("code")
        interpreter, timeout = choose("language", language, self._interpreters), arguments.number("timeout")
        if interpreter is None:
            raise RequestError(501, f"this machine has nothing to run {language} with")
        if arguments.flag("stateful") or arguments.optional_text("session_id") is not None:
            remedy = "Run all of it as one program, or keep what is needed in files"
            raise RequestError(501, f"this sandbox keeps no variables from one program to the next. {remedy}")
        folder = self._files.folder(arguments.optional_path("cwd"))
        place = f"/tmp/.code-{os.getpid()}-{next(self._numbers)}"  # noqa: S108 - inside
        script = f"{place}/program{_SUFFIXES[language]}"
        out, errors = CapturedOutput(), CapturedOutput()
        try:
            self._files.store(script, encode(code))
            command = RunningCommand(self._starter, (interpreter, script), folder, {out: (1,), errors: (2,)})
            timeout_s = min((_DEFAULT_S if timeout is None else timeout) or self._max_s, self._max_s)
            reason = await command.wait(hard_timeout_s=timeout_s)
            command.close()
        finally:
            self._remove(place, script)
        status = "timeout" if reason == "hard_timeout" else "ok" if command.exit_code == 0 else "error"
        printed = {"stdout": out.text(shortened=False), "stderr": errors.text(shortened=False)}
        outputs = [{"output_type": "stream", "name": name, "text": text} for name, text in printed.items() if text]
        result = {"language": language, "status": status, "outputs": outputs, "code": code, **printed}
        traceback = printed["stderr"].splitlines() if status == "error" else []
        return success({**result, "exit_code": command.exit_code, "traceback": traceback}, "Code executed")

    def _remove(self, place: str, script: str) -> None:
        with suppress(OSError):
            os.unlink(script)
            os.rmdir(place)
            return
        # What the program left there may take long to remove, or go on growing.
        with suppress(RequestError):
            self._starter.fork(lambda: _remove_tree(place))


def _remove_tree(place: str) -> None:
    import shutil  # few programs leave anything

    shutil.rmtree(place, ignore_errors=True)

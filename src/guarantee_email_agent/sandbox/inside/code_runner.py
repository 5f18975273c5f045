"""Running a program that came as text, in the languages that the sandbox has."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from .api_request import ApiRequest, Arguments, RequestError, choose
from .captured_output import CapturedOutput
from .files import Files
from .process_starter import ProcessStarter
from .running_command import CommandWait, RunningCommand

DEFAULT_S: Final = 30
_SUFFIXES: Final = {"python": ".py", "javascript": ".js"}


class CodeRunner:
    """interpreters: language → program; None where the machine has none. max_s: for one run."""

    def __init__(
        self, starter: ProcessStarter, files: Files, interpreters: Mapping[str, str | None], max_s: float
    ) -> None:
        self._starter = starter
        self._files = files
        self._interpreters = interpreters
        self._max_s = max_s
        self._numbers = itertools.count(1)

    def execute(self, request: ApiRequest, arguments: Arguments) -> None:
        language, code = arguments.text("language"), arguments.text("code")
        suffix = choose("language", language, _SUFFIXES)
        if arguments.flag("stateful"):
            raise RequestError(501, "this sandbox keeps no state between programs. Leave 'stateful' out, or use a file")
        interpreter = self._interpreters.get(language)
        if interpreter is None:
            raise RequestError(501, f"this machine has nothing to run {language} with")
        folder = self._files.resolve(arguments.optional_text("cwd") or self._starter.home)
        if not os.path.isdir(folder):
            raise RequestError(400, f"{folder}: is no folder to run a program in")
        script = f"/tmp/.code-{os.getpid()}-{next(self._numbers)}{suffix}"  # noqa: S108 - inside
        self._files.store(script, code.encode("utf-8", "replace"))
        out, errors = CapturedOutput(), CapturedOutput()
        try:
            command = RunningCommand(self._starter, (interpreter, script), folder, {out: (1,), errors: (2,)})
        except BaseException:
            _remove(script)
            raise

        def done(reason: str) -> None:
            _remove(script)
            status = "timeout" if reason == "hard_timeout" else "ok" if command.exit_code == 0 else "error"
            printed = {"stdout": out.text(), "stderr": errors.text()}
            outputs = [{"output_type": "stream", "name": name, "text": text} for name, text in printed.items() if text]
            result = {"language": language, "status": status, "outputs": outputs, "code": code, **printed}
            traceback = printed["stderr"].splitlines() if status == "error" else []
            request.answer(result | {"exit_code": command.exit_code, "traceback": traceback}, "Code executed")
            command.close()

        timeout = arguments.number("timeout")
        longest = min(DEFAULT_S if timeout is None else timeout, self._max_s)
        CommandWait(self._starter, command, done, hard_timeout_s=longest)

    def list_languages(self, request: ApiRequest, _: Arguments) -> None:
        times = {"default_timeout": DEFAULT_S, "max_timeout": int(self._max_s)}
        languages = [
            {"language": language, "description": f"Runs with {program}", **times, "details": {"bin": program}}
            for language, program in self._interpreters.items()
            if program is not None
        ]
        request.answer({"languages": languages})


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)

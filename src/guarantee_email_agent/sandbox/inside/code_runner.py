"""Running a program that came as text, in the languages that the sandbox has."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any, Final

from .api_request import Arguments, Failure, Invalid, Request
from .captured_output import CapturedOutput
from .event_loop import Loop
from .files import Files
from .process_starter import Starter
from .running_command import Command, Wait

DEFAULT_S: Final = 30
_ENDINGS: Final = {"python": ".py", "javascript": ".js"}


class Code:
    """interpreters: language → program; None where the machine has none. longest_s: for one run."""

    def __init__(
        self,
        loop: Loop,
        starter: Starter,
        files: Files,
        interpreters: Mapping[str, str | None],
        environment: Mapping[str, str],
        home: str,
        longest_s: float,
    ) -> None:
        self._loop = loop
        self._starter = starter
        self._files = files
        self._interpreters = interpreters
        self._environment = environment
        self._home = home
        self._longest_s = longest_s
        self._numbers = itertools.count(1)

    def execute(self, request: Request, arguments: Arguments) -> None:
        language, code = arguments.text("language"), arguments.text("code")
        if language not in _ENDINGS:
            raise Invalid("language", f"must be one of {', '.join(_ENDINGS)}")
        if arguments.flag("stateful"):
            raise Failure(501, "this sandbox keeps no state between programs. Leave 'stateful' out, or use a file")
        interpreter = self._interpreters.get(language)
        if interpreter is None:
            raise Failure(501, f"this machine has nothing to run {language} with")
        folder = self._files.resolve(arguments.optional_text("cwd") or self._home)
        if not os.path.isdir(folder):
            raise Failure(400, f"{folder}: is no folder to run a program in")
        script = f"/tmp/.code-{os.getpid()}-{next(self._numbers)}{_ENDINGS[language]}"  # noqa: S108 - inside
        self._files.store(script, code.encode("utf-8", "replace"))
        out, errors = CapturedOutput(), CapturedOutput()
        try:
            command = Command(
                self._loop, self._starter, (interpreter, script), self._environment, folder, {1: out, 2: errors}
            )
        except BaseException:
            _remove(script)
            raise

        def done(reason: str) -> None:
            _remove(script)
            request.answer(_result(language, code, command, reason, out, errors), "Code executed")
            command.close()

        timeout = arguments.number("timeout")
        Wait(
            self._loop,
            command,
            done,
            hard_s=min(DEFAULT_S if timeout is None else timeout, self._longest_s),
        )

    def described(self, request: Request) -> None:
        languages = []
        for language, interpreter in self._interpreters.items():
            if interpreter is not None:
                times = {"default_timeout": DEFAULT_S, "max_timeout": int(self._longest_s)}
                described = {"language": language, "description": f"Runs with {interpreter}", **times}
                languages.append(described | {"details": {"bin": interpreter}})
        request.answer({"languages": languages})


def _result(
    language: str, code: str, command: Command, reason: str, out: CapturedOutput, errors: CapturedOutput
) -> dict[str, Any]:
    status = "timeout" if reason == "hard_timeout" else "ok" if command.exit_code == 0 else "error"
    stdout, stderr = out.text(), errors.text()
    outputs = [
        {"output_type": "stream", "name": name, "text": text}
        for name, text in (("stdout", stdout), ("stderr", stderr))
        if text
    ]
    trace = stderr.splitlines() if status == "error" and stderr else []
    result = {"language": language, "status": status, "outputs": outputs, "code": code, "stdout": stdout}
    return result | {"stderr": stderr, "exit_code": command.exit_code, "traceback": trace}


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return

"""Which path of the API leads where, and the one that runs a program."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from guarantee_email_agent.isolation.processes import kill_group

from .api_request import (
    ApiRequest,
    Arguments,
    Reply,
    RequestError,
    Result,
    choose,
    encode,
    pack_reply,
    receive_reply,
    success,
)
from .files import DOWNLOAD_BYTES, OPERATIONS, Files, edit
from .process_starter import ProcessStarter
from .running_command import CapturedOutput, RunningCommand
from .shell import Shell

VERSION: Final = "1.7.0"
"""The version of the API that this is modelled on."""
_SEARCH_S: Final = 30.0
_REPLY_BYTES: Final = 64 << 20

_NOT_OFFERED: Final = (
    "this sandbox does not offer that, but a shell, programs, files and a browser. "
    "With --sandbox docker there is all of AIO Sandbox"
)

Handler = Callable[[Arguments], Awaitable[Reply]]


class Api:
    """Answers requests. config: from `ServedSandbox` outside."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._starter = ProcessStarter(
            config["environment"], config["home"], config["process_limits"], config["oom_score"]
        )
        self._files = Files(config["home"])
        self.shell = Shell(self._starter, config["shell"], config["command_s"])
        self._browser: Any = None
        interpreters = {"python": config["python"], "javascript": config["node"]}
        code = CodeRunner(self._starter, self._files, interpreters, config["command_s"])
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/v1/sandbox"): self._describe_sandbox,
            ("POST", "/v1/code/execute"): code.execute,
            ("POST", "/v1/shell/exec"): self.shell.execute,
            ("POST", "/v1/shell/view"): self.shell.view,
            ("POST", "/v1/shell/wait"): self.shell.wait,
            ("POST", "/v1/shell/write"): self.shell.write,
            ("POST", "/v1/shell/kill"): self.shell.kill,
            ("POST", "/v1/file/read"): _answers_with(self._files.read),
            ("POST", "/v1/file/write"): _answers_with(self._files.write),
            ("POST", "/v1/file/replace"): _answers_with(self._files.replace),
            ("POST", "/v1/file/str_replace_editor"): _answers_with(lambda arguments: edit(self._files, arguments)),
            ("GET", "/v1/file/download"): self._download,
            **{("POST", path): self._in_child(operation) for path, operation in OPERATIONS.items()},
        }

    async def reply(self, request: ApiRequest) -> Reply:
        """Never raises, whatever a client sends or an agent does."""
        try:
            return await self._route(request)
        except RequestError as error:
            return error.reply()
        except MemoryError:
            return RequestError(507, f"{request.path}: the result does not fit into memory").reply()
        except OSError as error:
            return RequestError(500, f"{request.path}: {error}").reply()
        except Exception as error:  # noqa: BLE001 - the process goes on, whatever was not foreseen
            problem = f"the sandbox could not deal with this request ({type(error).__name__}: {error})"
            return RequestError(500, f"{request.path}: {problem}").reply()

    async def _route(self, request: ApiRequest) -> Reply:
        path = request.path.rstrip("/")
        if (request.method, path) == ("POST", "/v1/file/upload") and "path" in request.query:
            return success(*self._files.upload_entry(request.query, request.body))
        if path.startswith("/v1/browser"):
            return await self._browse(request)
        if (handler := self._routes.get((request.method, path))) is not None:
            return await handler(request.arguments())
        if taken := [method for method, known in self._routes if known == path]:
            raise RequestError(405, f"{request.path} does not take {request.method}, but {', '.join(taken)}")
        raise RequestError(501 if path.startswith("/v1/") else 404, f"{request.path}: {_NOT_OFFERED}")

    def _in_child(self, operation: Callable[[Files, Arguments], Result]) -> Handler:
        """Do what an agent can make endless in a process of its own, with a deadline."""

        async def handle(arguments: Arguments) -> Reply:
            ours, theirs = socket.socketpair()
            with ours:
                with theirs:
                    pid = self._starter.fork(lambda: _send_result(theirs, lambda: operation(self._files, arguments)))
                try:
                    reader, writer = await asyncio.open_unix_connection(sock=ours)
                    async with asyncio.timeout(_SEARCH_S):
                        return await receive_reply(reader, _REPLY_BYTES)
                except TimeoutError:
                    raise RequestError(408, f"it was not done within {_SEARCH_S:g} s") from None
                except (EOFError, OSError):
                    raise RequestError(500, "it was ended before it was done") from None
                finally:
                    kill_group(pid)
                    writer.close()

        return handle

    async def _download(self, arguments: Arguments) -> Reply:
        return Reply(200, 1, self._files.load(self._files.resolve(arguments.path("path")), DOWNLOAD_BYTES))

    async def _browse(self, request: ApiRequest) -> Reply:
        if self._browser is None:
            from .browser_driver import BrowserProcess  # most sandboxes need none

            self._browser = BrowserProcess(self._starter, self._config["browser"])
        reply: Reply = await self._browser.reply(request)
        return reply

    async def _describe_sandbox(self, _: Arguments) -> Reply:
        system = os.uname()
        home, python, node = self._config["home"], self._config["python"], self._config["node"]
        runtime = {"ver": sys.version.split()[0], "bin": python, "alias": ["python3", "python"]}
        detail = {
            "system": {
                "os": system.sysname,
                "os_version": system.release,
                "arch": system.machine,
                "user": self._config["environment"]["USER"],
                "home_dir": home,
                "workspace": home,
                "timezone": time.tzname[0],
                "occupied_ports": [],
            },
            "runtime": {"python": [runtime], "nodejs": [{"ver": None, "bin": node, "alias": ["node"]}] if node else []},
            "utils": [],
        }
        text = (
            f"{system.sysname} {system.release} ({system.machine}), {self._config['isolation']}\nHome directory: {home}"
        )
        return success(text, "Sandbox", home_dir=home, workspace=home, version=VERSION, detail=detail)


def _answers_with(operation: Callable[[Arguments], Result]) -> Handler:
    async def handle(arguments: Arguments) -> Reply:
        return success(*operation(arguments))

    return handle


def _send_result(channel: socket.socket, operation: Callable[[], Result]) -> None:
    try:
        reply = success(*operation())
    except RequestError as error:
        reply = error.reply()
    channel.sendall(pack_reply(0, reply))


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

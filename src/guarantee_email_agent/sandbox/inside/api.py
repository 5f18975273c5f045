"""Which path of the API leads where."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from .api_request import ApiRequest, Arguments, RequestError, Result
from .code_runner import CodeRunner
from .editor import Editor
from .event_loop import EventLoop, read_available
from .files import DOWNLOAD_BYTES, Files, form_fields
from .process_starter import ProcessStarter, kill_group
from .search import OPERATIONS
from .shell import Shell

VERSION: Final = "1.7.0"
"""The version of the API that this is modelled on."""
_SEARCH_S: Final = 30.0
_REPLY_BYTES: Final = 64 << 20

Handler = Callable[[ApiRequest, Arguments], None]


class Api:
    """Answers requests. config: from `ServedSandbox` outside."""

    def __init__(self, loop: EventLoop, config: Mapping[str, Any]) -> None:
        self._loop = loop
        self._config = config
        self._starter = ProcessStarter(loop, config["environment"], config["home"], config["process_limits"])
        self._files = Files(config["home"])
        self.shell = Shell(self._starter, config["shell"], config["command_s"])
        self._browser: Any = None
        interpreters = {"python": config["python"], "javascript": config["node"]}
        code = CodeRunner(self._starter, self._files, interpreters, config["command_s"])
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/v1/sandbox"): self._describe_sandbox,
            ("GET", "/v1/code/info"): code.list_languages,
            ("POST", "/v1/code/execute"): code.execute,
            ("POST", "/v1/shell/exec"): self.shell.execute,
            ("POST", "/v1/shell/view"): self.shell.view,
            ("POST", "/v1/shell/wait"): self.shell.wait,
            ("POST", "/v1/shell/write"): self.shell.write,
            ("POST", "/v1/shell/kill"): self.shell.kill,
            ("POST", "/v1/shell/sessions/create"): self.shell.create,
            ("POST", "/v1/shell/sessions/update"): self.shell.update,
            ("GET", "/v1/shell/sessions"): self.shell.list_sessions,
            ("GET", "/v1/shell/sessions/stats"): self.shell.statistics,
            ("DELETE", "/v1/shell/sessions"): self.shell.close_all,
            ("POST", "/v1/file/read"): _answers_with(self._files.read),
            ("POST", "/v1/file/write"): _answers_with(self._files.write),
            ("POST", "/v1/file/replace"): _answers_with(self._files.replace),
            ("POST", "/v1/file/str_replace_editor"): _answers_with(Editor(self._files).edit),
            ("GET", "/v1/file/download"): self._download,
        }

    def handle(self, request: ApiRequest) -> None:
        """Answer now or later. Never raises for what a client or an agent does."""
        try:
            self._route(request)
        except RequestError as error:
            request.fail(error)
        except OSError as error:
            request.fail(RequestError(500, f"{request.path}: {error}"))
        except MemoryError:
            request.fail(RequestError(507, f"{request.path}: the result does not fit into memory"))

    def _route(self, request: ApiRequest) -> None:
        key = (request.method, request.path.rstrip("/"))
        if key == ("POST", "/v1/file/upload"):
            if "path" in request.query:
                request.answer(*self._files.upload_entry(request.query, request.body))
            else:
                request.answer(*self._files.upload(form_fields(request.content_type, request.body)))
        elif key in self._routes:
            self._routes[key](request, request.arguments())
        elif key[0] == "POST" and key[1] in OPERATIONS:
            self._answer_from_child(request, key[1], request.arguments())
        elif key[0] == "DELETE" and key[1].startswith("/v1/shell/sessions/"):
            self.shell.close_one(request, key[1].rpartition("/")[2])
        elif key[1].startswith("/v1/browser/"):
            self._browse(request)
        elif any(path == key[1] for _, path in self._routes):
            raise RequestError(405, f"{request.path} does not take {request.method}")
        else:
            raise RequestError(404, f"{request.path}: this sandbox does not offer that")

    def _answer_from_child(self, request: ApiRequest, operation: str, arguments: Arguments) -> None:
        """Do what an agent can make endless in a process of its own, with a deadline."""
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            pid = self._starter.fork()
        except RequestError:
            os.close(ours)
            os.close(theirs)
            raise
        if pid == 0:
            _answer_into_pipe(theirs, lambda: OPERATIONS[operation](self._files, arguments))
        os.close(theirs)
        os.set_blocking(ours, False)
        reply = bytearray()

        def read(descriptor: int) -> None:
            chunk = read_available(descriptor)
            if chunk is not None:
                reply.extend(chunk)
                if not chunk or len(reply) > _REPLY_BYTES:
                    finish()

        def finish() -> None:
            timer.cancel()
            self._loop.unwatch(ours)
            os.close(ours)
            kill_group(pid)
            if 2 < len(reply) <= _REPLY_BYTES:
                request.send(int.from_bytes(reply[:2], "big"), 0, bytes(reply[2:]))
            else:
                request.fail(RequestError(500, f"{operation}: it was ended before it was done"))

        def time_out() -> None:
            request.fail(RequestError(408, f"{operation}: not done within {_SEARCH_S:g} s"))
            finish()

        timer = self._loop.after(_SEARCH_S, time_out)
        self._loop.watch(ours, read)

    def _download(self, request: ApiRequest, _: Arguments) -> None:
        path = request.query.get("path")
        if not path or "\0" in path:
            raise RequestError(422, "path: is missing")
        request.send(200, 1, self._files.load(self._files.resolve(path), DOWNLOAD_BYTES))

    def _browse(self, request: ApiRequest) -> None:
        if self._browser is None:
            from .browser_process import BrowserProcess  # most sandboxes need none

            program, own_network = self._config["browser"], self._config["own_network"]
            self._browser = BrowserProcess(self._starter, program, own_network=own_network)
        self._browser.handle(request)

    def _describe_sandbox(self, request: ApiRequest, _: Arguments) -> None:
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
        request.answer(text, "Sandbox", home_dir=home, workspace=home, version=VERSION, detail=detail)


def _answers_with(operation: Callable[[Arguments], Result]) -> Handler:
    return lambda request, arguments: request.answer(*operation(arguments))


def _answer_into_pipe(descriptor: int, operation: Callable[[], Result]) -> None:
    """In the child: write HTTP status (2 bytes) and answer into the pipe, and end."""

    def send(status: int, _: int, content: bytes) -> None:
        with os.fdopen(descriptor, "wb") as pipe:
            pipe.write(status.to_bytes(2, "big") + content)

    try:
        signal.set_wakeup_fd(-1)
        request = ApiRequest("", "", "", b"", send)
        request.answer(*operation())
    except RequestError as error:
        request.fail(error)
    finally:
        os._exit(0)

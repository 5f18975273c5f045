"""Which path of the API leads where."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from .api_request import Arguments, Failure, Request
from .code_runner import Code
from .editor import Editor
from .event_loop import Loop
from .files import Files, form_fields
from .process_starter import Starter, kill_group
from .search import OPERATIONS
from .shell import Shell

VERSION: Final = "1.7.0"
"""The version of the API that this is modelled on."""
_SEARCH_S: Final = 30.0
_RESULT_BYTES: Final = 64 << 20

Handler = Callable[[Request, Arguments], None]


class Api:
    """Answers requests. config: what `worker.py` outside says; see there."""

    def __init__(self, loop: Loop, config: Mapping[str, Any]) -> None:
        self._loop = loop
        self._home: str = config["home"]
        self._environment: dict[str, str] = config["environment"]
        self._starter = Starter(config["process_limits"])
        self._isolation: str = config["isolation"]
        self._files = Files(self._home)
        self._editor = Editor(self._files)
        self.python: str = config["python"]
        shell: str = config["shell"]
        self._interpreters: dict[str, str | None] = {"python": self.python, "javascript": config["node"]}
        self.shell = Shell(loop, self._starter, shell, self._environment, self._home, config["command_s"])
        self._code = Code(
            loop, self._starter, self._files, self._interpreters, self._environment, self._home, config["command_s"]
        )
        self._browser_program: str | None = config["browser"]
        self._browser: Any = None
        self._own_network: bool = config["own_network"]
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/v1/sandbox"): self._context,
            ("GET", "/v1/code/info"): lambda request, _: self._code.described(request),
            ("POST", "/v1/code/execute"): self._code.execute,
            ("POST", "/v1/shell/exec"): self.shell.execute,
            ("POST", "/v1/shell/view"): self.shell.view,
            ("POST", "/v1/shell/wait"): self.shell.wait,
            ("POST", "/v1/shell/write"): self.shell.write,
            ("POST", "/v1/shell/kill"): self.shell.kill,
            ("POST", "/v1/shell/sessions/create"): self.shell.create,
            ("POST", "/v1/shell/sessions/update"): self.shell.update,
            ("GET", "/v1/shell/sessions"): lambda request, _: self.shell.listed(request),
            ("GET", "/v1/shell/sessions/stats"): lambda request, _: self.shell.statistics(request),
            ("DELETE", "/v1/shell/sessions"): lambda request, _: self.shell.clean_up(request, None),
            ("POST", "/v1/file/read"): lambda request, arguments: request.answer(*self._files.read(arguments)),
            ("POST", "/v1/file/write"): lambda request, arguments: request.answer(*self._files.write(arguments)),
            ("POST", "/v1/file/replace"): lambda request, arguments: request.answer(*self._files.replace(arguments)),
            ("POST", "/v1/file/str_replace_editor"): lambda request, arguments: request.answer(
                *self._editor.edit(arguments)
            ),
            ("GET", "/v1/file/download"): self._download,
        }

    def handle(self, request: Request) -> None:
        """Answer now or later. Never raises for what a client or an agent does."""
        try:
            self._route(request)
        except Failure as failure:
            request.fail(failure)
        except OSError as error:
            request.fail(Failure(500, f"{request.path}: {error}"))
        except MemoryError:
            request.fail(Failure(507, f"{request.path}: the result does not fit into memory"))

    def _route(self, request: Request) -> None:
        key = (request.method, request.path.rstrip("/"))
        if key == ("POST", "/v1/file/upload"):
            if "path" in request.query:
                request.answer(*self._files.put(request.query, request.body))
            else:
                request.answer(*self._files.upload(form_fields(request.content_type, request.body)))
        elif key in self._routes:
            self._routes[key](request, request.arguments())
        elif key[0] == "POST" and key[1] in OPERATIONS:
            self._apart(request, key[1], request.arguments())
        elif key[0] == "DELETE" and key[1].startswith("/v1/shell/sessions/"):
            self.shell.clean_up(request, key[1].rpartition("/")[2])
        elif key[1].startswith("/v1/browser/"):
            self._browse(request)
        elif any(path == key[1] for _, path in self._routes):
            raise Failure(405, f"{request.path} does not take {request.method}")
        else:
            raise Failure(404, f"{request.path}: this sandbox does not offer that")

    def _apart(self, request: Request, operation: str, arguments: Arguments) -> None:
        """Do what an agent can make endless in a process of its own, with a deadline."""
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            pid = self._starter.fork()
        except Failure:
            os.close(ours)
            os.close(theirs)
            raise
        if pid == 0:
            _work(theirs, lambda inner: inner.answer(*OPERATIONS[operation](self._files, arguments)), request)
        os.close(theirs)
        os.set_blocking(ours, False)
        result = bytearray()

        def read(descriptor: int) -> None:
            try:
                chunk = os.read(descriptor, 1 << 18)
            except BlockingIOError:
                return
            result.extend(chunk)
            if not chunk or len(result) > _RESULT_BYTES:
                finish()

        def finish() -> None:
            timer.cancel()
            self._loop.unwatch(ours)
            os.close(ours)
            kill_group(pid)
            if result[:1] == b"+" and len(result) <= _RESULT_BYTES:
                request.passed_on(int.from_bytes(result[1:3], "big"), bytes(result[3:]))
            else:
                request.fail(Failure(500, f"{operation}: it was ended before it was done"))

        def late() -> None:
            request.fail(Failure(408, f"{operation}: not done within {_SEARCH_S:g} s"))
            finish()

        timer = self._loop.after(_SEARCH_S, late)
        self._loop.watch(ours, read)

    def _download(self, request: Request, _: Arguments) -> None:
        path = request.query.get("path")
        if not path or "\0" in path:
            raise Failure(422, "path: is missing")
        request.content(1, self._files.download(path))

    def _browse(self, request: Request) -> None:
        if self._browser is None:
            from .browser_process import Browser

            self._browser = Browser(
                self._loop,
                self._starter,
                self._browser_program,
                self._environment,
                self._home,
                own_network=self._own_network,
            )
        self._browser.handle(request)

    def _context(self, request: Request, _: Arguments) -> None:
        system = os.uname()
        user = self._environment["USER"]
        python = {"ver": sys.version.split()[0], "bin": self.python, "alias": ["python3", "python"]}
        node = self._interpreters["javascript"]
        detail = {
            "system": {
                "os": system.sysname,
                "os_version": system.release,
                "arch": system.machine,
                "user": user,
                "home_dir": self._home,
                "workspace": self._home,
                "timezone": time.tzname[0],
                "occupied_ports": [],
            },
            "runtime": {"python": [python], "nodejs": [{"ver": None, "bin": node, "alias": ["node"]}] if node else []},
            "utils": [],
        }
        text = f"{system.sysname} {system.release} ({system.machine}), {self._isolation}\nHome directory: {self._home}"
        request.answer(text, "Sandbox", home_dir=self._home, workspace=self._home, version=VERSION, detail=detail)


def _work(descriptor: int, operation: Callable[[Request], None], original: Request) -> None:
    """In the process apart: answer into the pipe and end."""

    def send(status: int, _: int, content: bytes) -> None:
        with os.fdopen(descriptor, "wb") as pipe:
            pipe.write(b"+" + status.to_bytes(2, "big") + content)

    code = 1
    try:
        signal.set_wakeup_fd(-1)
        inner = Request(original.method, original.path, "", b"", send)
        try:
            operation(inner)
        except Failure as failure:
            inner.fail(failure)
        code = 0
    finally:
        os._exit(code)

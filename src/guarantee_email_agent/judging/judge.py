"""Let a `test.py` on the host judge the record of a run, in a process of its own.

    verdict = judge(Path("tasks/greeting/test.py"), {"task_result": "Hello"})

`JudgePool` does the same for many at a time, and knows what isolation this machine gives. Its servers, one for each
judge at a time, are started once and then fork.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from guarantee_email_agent.judging import judge_protocol
from guarantee_email_agent.judging.judge_dependencies import DependencyError, interpreter_for
from guarantee_email_agent.judging.judge_protocol import LINUX, Isolation, JudgeLimits
from guarantee_email_agent.judging.resource_usage import remove_tree
from guarantee_email_agent.judging.verdict import Verdict, verdict_of

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_LIMITS = JudgeLimits()
MAX_JUDGE_BYTES = 10_000_000
_PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_REPLY_MARGIN_S = 10.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
# The package may be importable through our own sys.path alone, which a judge must not inherit.
_PROGRAM = (
    "import sys; root = {root!r}; sys.path.insert(0, root); "
    "from guarantee_email_agent.judging.judge_server import main; sys.path.remove(root); "
    "main({control}, {temp!r}, network={network}, no_namespaces_because={because!r})"
)


def judge(
    path: Path, record: Mapping[str, Any], timeout_s: float = DEFAULT_TIMEOUT_S, *, network: bool = False
) -> Verdict:
    """Call `test(record)` of the Python file at `path`; never raises for what the judge does.

    timeout_s: seconds, after which everything that the judge started is killed. The pool behind it is started with the
    first call, grows with the threads that call at the same time, and ends with this process.
    """
    return _pool_of(os.getpid()).judge(path, record, timeout_s, network=network)


@cache
def _pool_of(process: int) -> JudgePool:  # noqa: ARG001 - a process that was forked from ours must not share our servers
    pool = JudgePool()
    atexit.register(pool.close)
    return pool


class JudgePool(AbstractContextManager["JudgePool"]):
    """Judges records, as many at a time as threads ask. A context manager: leaving it ends its processes.

    fresh: a new interpreter for every judge instead of a fork of one that is there, which is safe on Linux alone.
    namespaces: False does without them, as on a machine that does not allow them.
    """

    def __init__(self, *, fresh: bool = not LINUX, namespaces: bool = LINUX) -> None:
        self._fresh = fresh
        self._no_namespaces_because = None if namespaces else "not asked for" if LINUX else "only Linux has them"
        self._lock = threading.Lock()
        self._idle: defaultdict[bool, list[_JudgeServer]] = defaultdict(list)
        self._closed = False

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(
        self,
        path: Path,
        record: Mapping[str, Any],
        timeout_s: float = DEFAULT_TIMEOUT_S,
        *,
        limits: JudgeLimits = DEFAULT_LIMITS,
        network: bool = False,
    ) -> Verdict:
        """The verdict of `test(record)` in the Python file at `path`; never raises for what the judge does.

        timeout_s: seconds from the start of its process. network: whether the judge has one.
        """
        if (problem := _file_problem(path)) is not None:
            return Verdict("error", error=problem)
        try:
            python = interpreter_for(path) or (sys.executable if self._fresh else None)
        except DependencyError as error:
            return Verdict("error", error=str(error))
        try:
            body = json.dumps(record, default=str).encode()
        except Exception as error:  # noqa: BLE001 - a record from Python may hold any object
            return Verdict("error", error=f"cannot be given this record, which is no JSON: {error}")
        request = {"path": os.path.abspath(path), "timeout_s": timeout_s, "limits": asdict(limits), "python": python}
        return self._ask_server(request, body, limits, network)

    def isolation(self, *, network: bool = False) -> Isolation:
        """The isolation of judges on this machine, found out by starting a server."""
        server = self._acquire_server(network)
        self._release_server(server)
        return server.isolation

    def close(self) -> None:
        """End every server that is idle; one at work ends with its judge."""
        with self._lock:
            self._closed = True
            servers = [server for idle in self._idle.values() for server in idle]
            self._idle.clear()
        for server in servers:
            server.close()

    def _ask_server(self, request: Mapping[str, Any], body: bytes, limits: JudgeLimits, network: bool) -> Verdict:
        timeout_s: float = request["timeout_s"]
        try:
            server = self._acquire_server(network)
        except (OSError, EOFError) as error:
            return Verdict("error", error=f"could not be started: {error}")
        try:
            reply, answer = server.ask(request, body, timeout_s + _REPLY_MARGIN_S)
        except TimeoutError:
            server.kill()
            return Verdict("error", error=f"gave no verdict within {timeout_s:g} s, and could not be stopped in order")
        except (EOFError, OSError):
            server.kill()
            return Verdict("error", error="ended the process that watches it")
        except BaseException:
            server.close()  # it ends the judge with all that it started
            raise
        if reply["end"] == "unstoppable":
            server.kill()
        else:
            self._release_server(server)
        return verdict_of(reply, answer, timeout_s, limits, network=network)

    def _acquire_server(self, network: bool) -> _JudgeServer:
        with self._lock:
            if self._idle[network]:
                return self._idle[network].pop()
        server = _JudgeServer(network, self._no_namespaces_because)
        if server.unavailable is not None:
            server.close()
            self._no_namespaces_because = server.unavailable
            server = _JudgeServer(network, self._no_namespaces_because)
        return server

    def _release_server(self, server: _JudgeServer) -> None:
        with self._lock:
            if not self._closed:
                self._idle[server.network].append(server)
                return
        server.close()


def _file_problem(judge: Path) -> str | None:
    try:
        status = os.stat(judge)
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist. Write it, with a function test(result)"
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if not stat.S_ISREG(status.st_mode):
        return "is no file. Write one, with a function test(result)"
    if status.st_size > MAX_JUDGE_BYTES:
        return f"is larger than {MAX_JUDGE_BYTES:,} bytes. Move its data to a file beside it"
    return None


class _JudgeServer:
    """Our end of one judge's server. unavailable: why it cannot do what was asked for, None where it can."""

    def __init__(self, network: bool, no_namespaces_because: str | None) -> None:
        if os.name != "posix":
            raise OSError("judges run on Linux and macOS")
        self.network = network
        self._control, theirs = socket.socketpair()
        with theirs:
            program = _PROGRAM.format(
                root=_PACKAGE_ROOT,
                control=theirs.fileno(),
                temp=tempfile.gettempdir(),
                network=network,
                because=no_namespaces_because,
            )
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
                start_new_session=True,
            )
        self._temp_dir: str | None = None
        try:
            self._control.settimeout(_REPLY_MARGIN_S)
            hello, _ = judge_protocol.receive(self._control)
        except BaseException:
            self.kill()
            raise
        self.unavailable: str | None = hello.get("unavailable")
        if self.unavailable is None:
            self.isolation = Isolation(**hello["isolation"])
            self._temp_dir = hello["temp_dir"]

    def ask(self, request: Mapping[str, Any], body: bytes, timeout_s: float) -> tuple[dict[str, Any], bytes]:
        """Raises EOFError or OSError where the server is gone, TimeoutError where it does not answer in time."""
        self._control.settimeout(timeout_s)
        judge_protocol.send(self._control, request, body)
        return judge_protocol.receive(self._control)

    def close(self) -> None:
        """The server ends by itself once its socket is closed."""
        self._control.close()
        try:
            self._process.wait(_REPLY_MARGIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._control.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        if self._temp_dir is not None:
            with suppress(OSError):
                remove_tree(self._temp_dir)

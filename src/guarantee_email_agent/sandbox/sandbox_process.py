"""The process inside a sandbox as seen from outside: started, asked over a socket, ended."""

from __future__ import annotations

import contextlib
import itertools
import marshal
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from itertools import accumulate
from pkgutil import iter_modules
from typing import Any, Final

from guarantee_email_agent.isolation import processes
from guarantee_email_agent.sandbox import inside
from guarantee_email_agent.sandbox.inside.api_request import KINDS, READY, REPLY, Reply, pack_request, read_exactly
from guarantee_email_agent.utils.errors import TaskError

MAX_REPLY_BYTES: Final = 128 << 20
_START_S: Final = 20.0
_EXIT_S: Final = 3.0

# The first thing inside. Rights go before anything else happens, and the rest of the code is read after that.
_BOOTSTRAP: Final = """\
import marshal, os, sys
channel = int(sys.argv[1])
def take(count):
    data = bytearray()
    while len(data) < count:
        chunk = os.read(channel, min(count - len(data), 1 << 20))
        if not chunk:
            os._exit(3)
        data += chunk
    return bytes(data)
config, packages, codes = marshal.loads(take(int.from_bytes(take(8), "big")))
for path, content in config["files_to_create"]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)
# Opened for later, while this is still our own entry to write to.
config["oom_score"] = os.open("/proc/self/oom_score_adj", os.O_RDWR)
user = config["user"]
if user is not None:
    try:
        # It has to see in time what hundreds of busy processes take; its children get the usual priority back.
        os.setpriority(os.PRIO_PROCESS, 0, -10)
        with open("/proc/self/autogroup", "w") as file:
            file.write("-10")
    except OSError:
        pass
    os.chown(config["home"], user, user)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # Nothing that is bound to the user id before may be left.
    assert os.getresuid() == (user, user, user)
else:
    try:
        import ctypes
        # PR_SET_DUMPABLE 0: no process inside may trace this one. Without a process namespace
        # PR_SET_CHILD_SUBREAPER 1: what loses its parent becomes our child, so that it can be found and ended.
        ctypes.CDLL(None).prctl(*((4, 0) if config["pid_namespace"] else (36, 1)), 0, 0, 0)
    except Exception:
        pass
if config["lifeline"] is not None:
    try:
        os.close(config["lifeline_end"])
    except OSError:
        pass
os.write(channel, b"ready\\n")
for name in packages:
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = []
class Importer:
    @staticmethod
    def find_spec(name, path, target=None):
        return type(sys.__spec__)(name, Importer) if name in codes else None
    @staticmethod
    def create_module(spec):
        return None
    @staticmethod
    def exec_module(module):
        exec(codes[module.__name__], module.__dict__)
sys.meta_path.insert(0, Importer)
sys.modules["ssl"] = None  # a third of what asyncio takes to load, and nothing here needs it
from inside.main import run
run(channel, config)
"""


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """How to start the process.

    wrapper: bubblewrap's command, which comes before the interpreter; empty for a process that nothing is wrapped
    around. config: of `inside.main.run`. pass_fds: closed once passed. confine:
    called with the process inside before that does anything.
    """

    wrapper: Sequence[str]
    config: Mapping[str, Any]
    python: str
    pass_fds: tuple[int, ...] = ()
    folder: str | None = None
    confine: Callable[[int], None] | None = None


class SandboxProcess:
    """The process and the socket to it. `request` may be called from many threads at once."""

    def __init__(self, spec: LaunchSpec) -> None:
        self._spec = spec
        self._ours, self._theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._pending: dict[int, Future[Reply]] = {}
        self._numbers = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        self._inner_pid: int | None = None
        self._problem: str | None = None
        self._ready = threading.Event()
        self._has_ended = False
        # The kernel ends the process with the thread that started it, so that thread stays: it reads the replies.
        self._thread = threading.Thread(target=self._run, name="sandbox", daemon=True)

    def start(self) -> None:
        """Raises TaskError where it does not come up."""
        self._thread.start()
        if not self._ready.wait(_START_S):
            self._problem = f"it was not ready within {_START_S:g} s"
        if self._problem is not None:
            problem = self._problem
            self.close()
            remedy = ". Use --sandbox docker, or --sandbox none, which isolates nothing" if self._spec.wrapper else ""
            raise TaskError(f"the sandbox did not start: {problem.rstrip('.')}{remedy}", "sandbox_start")

    def request(self, method: str, target: str, body: bytes, timeout_s: float) -> Reply:
        """Raises TaskError once the process is gone."""
        future: Future[Reply] = Future()
        with self._lock:
            if self._has_ended:
                raise self._ended_error()
            number = next(self._numbers) % (1 << 32)
            self._pending[number] = future
        try:
            with self._sending:
                self._ours.sendall(pack_request(number, method, target, body))
            return future.result(timeout_s)
        except TimeoutError:
            raise TaskError(f"the sandbox gave no answer within {timeout_s:g} s", "sandbox_timeout") from None
        except (OSError, EOFError):
            raise self._ended_error() from None
        finally:
            with self._lock:
                self._pending.pop(number, None)

    def close(self) -> None:
        """End the process and with it everything inside. May be called twice, and from any thread."""
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(_START_S)

    def _run(self) -> None:
        try:
            self._launch()
            self._ready.set()
            self._read_replies()
        except (ConnectionError, EOFError):
            self._problem = self._problem or self._last_error_line()
        except OSError as error:
            self._problem = self._problem or f"{error}"
        finally:
            self._terminate()

    def _launch(self) -> None:
        spec = self._spec
        status_read, status_write = os.pipe()
        wrapper = [*spec.wrapper[:1], "--json-status-fd", str(status_write), *spec.wrapper[1:]] if spec.wrapper else []
        channel = self._theirs.fileno()
        try:
            self._process = subprocess.Popen(
                [*wrapper, spec.python, "-I", "-S", "-B", "-c", _BOOTSTRAP, str(channel)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(channel, *((status_read, status_write) if wrapper else ()), *spec.pass_fds),
                cwd=spec.folder,
                env={},
            )
        finally:
            for descriptor in (status_write, *spec.pass_fds):
                os.close(descriptor)
            self._theirs.close()
        # bubblewrap keeps its end of the status pipe for as long as it lives, so on the same pipe the process
        # inside learns of its end.
        self._inner_pid = _read_inner_pid(status_read)
        os.close(status_read)
        if spec.confine is not None and self._inner_pid is not None:
            spec.confine(self._inner_pid)
        lifeline = {"lifeline": status_read if wrapper else None, "lifeline_end": status_write}
        content = marshal.dumps(({**spec.config, **lifeline}, *_inside_modules()))
        self._ours.sendall(len(content).to_bytes(8, "big") + content)
        if read_exactly(self._ours.recv, len(READY)) != READY:
            raise EOFError

    def _read_replies(self) -> None:
        while True:
            number, status, kind, length = REPLY.unpack(read_exactly(self._ours.recv, REPLY.size))
            if length > MAX_REPLY_BYTES or not 200 <= status < 600 or kind >= len(KINDS):
                self._problem = "what came out of it made no sense"
                return
            content = read_exactly(self._ours.recv, length)
            with self._lock:
                future = self._pending.pop(number, None)
            if future is not None:
                future.set_result(Reply(status, kind, content))

    def _terminate(self) -> None:
        with self._lock:
            self._has_ended = True
            pending, self._pending = list(self._pending.values()), {}
        self._ours.close()
        if self._process is not None:
            if not _wait_for_exit(self._process, _EXIT_S):
                # Not ours to wait for any longer: the first process inside takes everything else with it.
                if self._inner_pid is not None:
                    with contextlib.suppress(OSError):
                        os.kill(self._inner_pid, signal.SIGKILL)
                self._process.kill()
            self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()
        for future in pending:
            future.set_exception(EOFError())
        self._ready.set()

    def _last_error_line(self) -> str:
        text = ""
        if self._process is not None and self._process.stderr is not None:
            _wait_for_exit(self._process, 1.0)
            descriptor = self._process.stderr.fileno()
            os.set_blocking(descriptor, False)
            with contextlib.suppress(OSError):
                text = os.read(descriptor, 8192).decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "it ended at once"

    def _ended_error(self) -> TaskError:
        return TaskError(f"the sandbox has ended{f': {self._problem}' if self._problem else ''}", "sandbox_ended")


def _wait_for_exit(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Whether it ended in time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)
    return process.returncode is not None


@cache
def _inside_modules() -> tuple[list[str], dict[str, Any]]:
    """The packages for inside, and our modules by name, compiled: the interpreter inside is the one that runs us."""
    names = {f"inside.{module.name}": f"{inside.__name__}.{module.name}" for module in iter_modules(inside.__path__)}
    names[processes.__name__] = processes.__name__
    specs: list[tuple[str, Any]] = [(name, find_spec(origin)) for name, origin in names.items()]
    packages = ["inside", *accumulate(processes.__package__.split("."), "{}.{}".format)]
    # From the file: pytest puts a loader of its own in place, which has no `get_code`.
    return packages, {name: SourceFileLoader(spec.name, spec.origin).get_code(spec.name) for name, spec in specs}


def _read_inner_pid(descriptor: int) -> int | None:
    """The id of the first process inside from bubblewrap's status; None where it reported none."""
    text = b""
    while b"}" not in text and (chunk := os.read(descriptor, 4096)):
        text += chunk
    found = re.search(rb'"child-pid"\s*:\s*(\d+)', text)
    return int(found[1]) if found is not None else None

"""The process inside a sandbox as seen from outside: started, asked over a socket, ended."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from guarantee_email_agent.sandbox.inside import wire
from guarantee_email_agent.utils.errors import TaskError

MAX_REPLY_BYTES: Final = 128 << 20
_START_S: Final = 20.0
_END_S: Final = 3.0
_PACKAGE: Final = "inside"
# In the order in which they can be executed: each needs only those before it.
_MODULES: Final = (
    *("wire", "event_loop", "captured_output", "api_request", "process_starter", "running_command", "files", "search"),
    *("editor", "shell", "code_runner", "memory_usage", "memory_guard", "devtools", "key_names", "browser_page"),
    *("browser_actions", "browser_driver", "browser_process", "api", "main"),
)

# The first thing inside. Rights go before anything else happens, and the rest of the code is read after that was said.
_FIRST: Final = """\
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
config, codes = marshal.loads(take(int.from_bytes(take(8), "big")))
for path, content in config["made_files"]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)
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
        # PR_SET_DUMPABLE 0: nobody inside may look into this process. Without a process namespace
        # PR_SET_CHILD_SUBREAPER 1: what loses its parent becomes our child, so that it can be found and ended.
        ctypes.CDLL(None).prctl(*((4, 0) if config["first"] else (36, 1)), 0, 0, 0)
    except Exception:
        pass
if config["lifeline"] is not None:
    try:
        os.close(config["lifeline_end"])
    except OSError:
        pass
os.write(channel, b"ready\\n")
package = type(sys)(config["package"])
package.__path__ = []
sys.modules[config["package"]] = package
for name, code in codes:
    module = type(sys)(config["package"] + "." + name)
    module.__package__ = config["package"]
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    exec(code, module.__dict__)
sys.modules[config["package"] + ".main"].run(channel, config)
"""


@dataclass(frozen=True, slots=True)
class Start:
    """How to start the process.

    wrapper: what comes before the interpreter, made from the descriptor that bubblewrap reports its status on; none
    for a process that nothing is wrapped around. config: what `inside.main.run` is told. pass_fds: closed once passed.
    """

    wrapper: Callable[[int], Sequence[str]] | None
    config: Mapping[str, Any]
    python: str
    pass_fds: tuple[int, ...] = ()
    folder: str | None = None
    environment: Mapping[str, str] | None = None


@dataclass(slots=True)
class _Waiting:
    event: threading.Event
    reply: tuple[int, int, bytes] | None = None


class Worker:
    """The process and the socket to it. `request` may be called from many threads at once."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._ours, self._theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._inner: int | None = None
        self._problem: str | None = None
        self._ready = threading.Event()
        self._over = False
        self._closing = threading.Lock()
        self._errors_read = -1
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
            remedy = ". Use --sandbox docker, or --sandbox none, which isolates nothing" if self._start.wrapper else ""
            raise TaskError(f"the sandbox did not start: {problem.rstrip('.')}{remedy}", "sandbox_start")

    def request(
        self, method: str, target: str, content_type: str, body: bytes, timeout_s: float
    ) -> tuple[int, int, bytes]:
        """HTTP status, kind of content (see `wire.KINDS`), content. Raises TaskError once the process is gone."""
        with self._lock:
            if self._over:
                raise TaskError(f"the sandbox has ended{self._why()}", "sandbox_ended")
            self._number = (self._number + 1) % (1 << 32)
            number, waiting = self._number, _Waiting(threading.Event())
            self._waiting[number] = waiting
        try:
            with self._sending:
                self._ours.sendall(wire.pack_request(number, method, target, content_type, body))
        except OSError:
            self._forget(number)
            raise TaskError(f"the sandbox has ended{self._why()}", "sandbox_ended") from None
        if not waiting.event.wait(timeout_s):
            self._forget(number)
            raise TaskError(f"the sandbox gave no answer within {timeout_s:g} s", "sandbox_timeout")
        if waiting.reply is None:
            raise TaskError(f"the sandbox has ended{self._why()}", "sandbox_ended")
        return waiting.reply

    def close(self) -> None:
        """End the process and with it everything inside. May be called twice, and from any thread."""
        with self._closing:
            with contextlib.suppress(OSError):
                self._ours.shutdown(socket.SHUT_RDWR)
            if self._thread.is_alive() and self._thread is not threading.current_thread():
                self._thread.join(_START_S)

    def _run(self) -> None:
        try:
            self._launch()
            self._ready.set()
            self._read_replies()
        except (ConnectionError, _GoneError):
            self._problem = self._problem or self._said()
        except OSError as error:
            self._problem = self._problem or f"{error}"
        finally:
            self._end()

    def _launch(self) -> None:
        start = self._start
        status_read, status_write = os.pipe()
        self._errors_read, errors_write = os.pipe()
        os.set_blocking(self._errors_read, False)
        wrapper = list(start.wrapper(status_write)) if start.wrapper is not None else []
        channel = self._theirs.fileno()
        try:
            self._process = subprocess.Popen(
                [*wrapper, start.python, "-I", "-S", "-B", "-c", _FIRST, str(channel)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors_write,
                pass_fds=(channel, *((status_read, status_write) if wrapper else ()), *start.pass_fds),
                cwd=start.folder,
                env=dict(start.environment or {}),
            )
        finally:
            for descriptor in (status_write, errors_write, *start.pass_fds):
                os.close(descriptor)
            self._theirs.close()
        # bubblewrap keeps its end of the status pipe for as long as it lives, so the same pipe tells the process inside
        # that it is gone.
        self._inner = _inner_pid(status_read)
        os.close(status_read)
        lifeline = {"lifeline": status_read if wrapper else None, "lifeline_end": status_write}
        self._ours.sendall(_with_code(dict(start.config) | lifeline | {"package": _PACKAGE}))
        if self._exactly(len(wire.READY)) != wire.READY:
            raise _GoneError

    def _read_replies(self) -> None:
        while True:
            number, status, kind, length = wire.reply_parts(self._exactly(wire.REPLY_BYTES))
            if length > MAX_REPLY_BYTES or not 200 <= status < 600 or kind >= len(wire.KINDS):
                self._problem = "what came out of it made no sense"
                return
            content = self._exactly(length)
            with self._lock:
                waiting = self._waiting.pop(number, None)
            if waiting is not None:
                waiting.reply = (status, kind, content)
                waiting.event.set()

    def _exactly(self, count: int) -> bytes:
        """So many bytes. Raises _GoneError at the end of the socket."""
        parts = bytearray()
        while len(parts) < count:
            chunk = self._ours.recv(min(count - len(parts), 1 << 20))
            if not chunk:
                raise _GoneError
            parts += chunk
        return bytes(parts)

    def _end(self) -> None:
        with self._lock:
            self._over = True
            waiting, self._waiting = list(self._waiting.values()), {}
        self._ours.close()
        if self._process is not None:
            if not _ended(self._process, _END_S):
                # Not ours to wait for any longer: the first process inside takes everything else with it.
                if self._inner is not None:
                    with contextlib.suppress(OSError):
                        os.kill(self._inner, signal.SIGKILL)
                self._process.kill()
            self._process.wait()
        if self._errors_read >= 0:
            os.close(self._errors_read)
            self._errors_read = -1
        for one in waiting:
            one.event.set()
        self._ready.set()

    def _said(self) -> str:
        """What the process said last on its way out."""
        if self._process is not None:
            _ended(self._process, 1.0)
        try:
            text = os.read(self._errors_read, 8192).decode("utf-8", "replace").strip()
        except OSError:
            text = ""
        return text.splitlines()[-1] if text else "it ended at once"

    def _why(self) -> str:
        return f": {self._problem}" if self._problem else ""

    def _forget(self, number: int) -> None:
        with self._lock:
            self._waiting.pop(number, None)


class _GoneError(Exception):
    """The other end of the socket is closed."""


def _ended(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the end of a process; the standard library's own way looks only every 50 ms."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return process.poll() is not None
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def _with_code(config: Mapping[str, Any]) -> bytes:
    import marshal

    content = marshal.dumps((dict(config), _codes()))
    return len(content).to_bytes(8, "big") + content


_cached_codes: list[tuple[str, Any]] = []


def _codes() -> list[tuple[str, Any]]:
    """Our modules for inside, compiled: the interpreter inside is the one that runs us."""
    if not _cached_codes:
        from importlib.util import find_spec

        found = []
        for name in _MODULES:
            spec = find_spec(f"guarantee_email_agent.sandbox.inside.{name}")
            loader: Any = spec.loader if spec is not None else None
            found.append((name, loader.get_code(spec.name if spec is not None else name)))
        _cached_codes.extend(found)
    return _cached_codes


def _inner_pid(descriptor: int) -> int | None:
    """The id of the first process inside, as bubblewrap tells it; None where nothing was told."""
    text = b""
    while b"}" not in text and (chunk := os.read(descriptor, 4096)):
        text += chunk
    found = re.search(rb'"child-pid"\s*:\s*(\d+)', text)
    return int(found[1]) if found is not None else None

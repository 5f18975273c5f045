"""Let a `test.py` on the host judge the record of a run, in a process of its own.

    verdict = judge(Path("tasks/greeting/test.py"), {"task_result": "Hello"})

`JudgePool` does the same for many at a time, and knows what isolation this machine gives. Its servers, one for each
judge at a time, are started once and then fork.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import logging
import os
import select
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from guarantee_email_agent.isolation.processes import judge_users
from guarantee_email_agent.judging import judge_protocol
from guarantee_email_agent.judging.judge_dependencies import DependencyError, interpreter_for
from guarantee_email_agent.judging.judge_protocol import LINUX, Isolation, JudgeLimits
from guarantee_email_agent.judging.resource_usage import remove_tree
from guarantee_email_agent.judging.verdict import Verdict, verdict_of

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_LIMITS = JudgeLimits()
MAX_JUDGE_BYTES = 10_000_000
_PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_REPLY_MARGIN_S = 10.0
_ATTEMPTS_TO_START = 3
_ALL_SEALS = 15  # F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
# The package may be importable through our own sys.path alone, which a judge must not inherit.
_PROGRAM = (
    "import sys; root = {root!r}; sys.path.insert(0, root); "
    "from guarantee_email_agent.judging.judge_supervisor import main; sys.path.remove(root); "
    "main({control}, {temp!r}, network={network}, no_namespaces_because={because!r})"
)


def judge(
    path: Path,
    record: Mapping[str, Any],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    network: bool = False,
    sandbox_port: int | None = None,
    withheld_port: int | None = None,
) -> Verdict:
    """Call `test(record)` of the Python file at `path`; never raises for what the judge does.

    timeout_s: seconds, after which everything that the judge started is killed. The others: as for `JudgePool.judge`.
    The pool behind it is started with the first call, grows with the threads that call at the same
    time, and ends with this process.
    """
    return _pool_of(os.getpid()).judge(
        path, record, timeout_s, network=network, sandbox_port=sandbox_port, withheld_port=withheld_port
    )


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
        self._warned = False

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
        sandbox_port: int | None = None,
        withheld_port: int | None = None,
    ) -> Verdict:
        """The verdict of `test(record)` in the Python file at `path`; never raises for what the judge does.

        timeout_s: seconds from the start of its process. network: whether the judge has this machine's. sandbox_port:
        the one port that it reaches otherwise, at its own 127.0.0.1 and at ours; where there are no namespaces, it has
        the network for it. withheld_port: of a sandbox that it is not to look into; where it tried, and was kept from
        it, a `failed` would say nothing of the agent and is an error.
        """
        if (problem := _file_problem(path)) is not None:
            return Verdict("error", error=problem)
        try:
            python = interpreter_for(path) or (sys.executable if self._fresh else None)
        except DependencyError as error:
            return Verdict("error", error=str(error))
        request = {"path": os.path.abspath(path), "timeout_s": timeout_s, "limits": asdict(limits), "python": python}
        request |= {"nonce": os.urandom(16).hex(), "sandbox_port": None if network else sandbox_port}
        head = {"judge": request["path"], "nonce": request["nonce"], "most_bytes": limits.verdict_bytes}
        head["withheld_port"] = withheld_port
        try:
            task = _task_file(json.dumps(head).encode() + b"\n" + json.dumps(record, default=str).encode())
        except OSError as error:
            return Verdict("error", error=f"cannot be given this record: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - a record from Python may hold any object
            return Verdict("error", error=f"cannot be given this record, which is no JSON: {error}")
        try:
            reply, answer = self._ask_server(request, task, network)
        except _NoReplyError as error:
            return Verdict("error", error=str(error))
        finally:
            os.close(task)
        return verdict_of(reply, answer, timeout_s, limits, network=network, sandbox=sandbox_port is not None)

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

    def _ask_server(self, request: Mapping[str, Any], task: int, network: bool) -> tuple[dict[str, Any], bytes]:
        """What the judge's supervisor replies. Raises _NoReplyError."""
        timeout_s: float = request["timeout_s"]
        problem = ""
        for _ in range(_ATTEMPTS_TO_START):
            try:
                server = self._acquire_server(network)
            except (OSError, EOFError) as error:
                raise _NoReplyError(f"could not be started: {error}") from None
            try:
                reply, answer = server.ask(request, task, timeout_s + _REPLY_MARGIN_S)
            except _NotStartedError as error:
                server.kill()  # an earlier judge has ended it, where nothing prevents that, or its folder is gone
                problem = str(error)
                continue
            except TimeoutError:
                server.kill()
                problem = f"gave no verdict within {timeout_s:g} s, and could not be stopped in order"
                raise _NoReplyError(problem) from None
            except (EOFError, OSError):
                server.kill()
                raise _NoReplyError("ended the process that watches it") from None
            except BaseException:
                server.close()  # it ends the judge with all that it started
                raise
            if reply["end"] == "unstoppable":
                server.kill()
            else:
                self._release_server(server)
            return reply, answer
        raise _NoReplyError(f"could not be started: {problem}")

    def _acquire_server(self, network: bool) -> _JudgeServer:
        while True:
            with self._lock:
                idle = self._idle[network].pop() if self._idle[network] else None
            if idle is None:
                break
            if not idle.is_outdated():
                return idle
            idle.close()
        server = _JudgeServer(network, self._no_namespaces_because)
        if server.unavailable is not None:
            server.close()
            self._no_namespaces_because = server.unavailable
            server = _JudgeServer(network, self._no_namespaces_because)
        self._warn(server.isolation)
        return server

    def _warn(self, isolation: Isolation) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        if (weakness := isolation.weakness()) is not None:
            logger.warning("%s", weakness)

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


def _task_file(content: bytes) -> int:
    """The descriptor of a file without a name that nobody can change any more."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # a container may forbid it, or have no memory for it
            task = os.memfd_create("task", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            try:
                _write_all(task, content)
                fcntl.fcntl(task, fcntl.F_ADD_SEALS, _ALL_SEALS)
                os.lseek(task, 0, os.SEEK_SET)
            except BaseException:
                os.close(task)
                raise
            return task
    writer, name = tempfile.mkstemp()
    try:
        _write_all(writer, content)
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.unlink(name)
        os.close(writer)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _relay(listeners: Sequence[int], port: int) -> AbstractContextManager[object]:
    from guarantee_email_agent.judging.port_relay import PortRelay  # few judges look into a sandbox

    return PortRelay(socket.socket(fileno=listeners[0]), port) if listeners else nullcontext()


def _is_listening(port: int) -> bool:
    """Whether anything does at this port of our 127.0.0.1: else a judge is to find its own closed, too."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), _REPLY_MARGIN_S / 2):
        return True
    return False


class _NoReplyError(Exception):
    """What became of a judge whose supervisor did not reply; to follow the name of its file."""


class _NotStartedError(Exception):
    """Why the server did not start the judge."""


class _JudgeServer:
    """Our end of one judge's server. unavailable: why it cannot do what was asked for, None where it can."""

    def __init__(self, network: bool, no_namespaces_because: str | None) -> None:
        if os.name != "posix":
            raise OSError("judges run on Linux and macOS")
        self.network = network
        self._mounts: BinaryIO | None = None
        with suppress(OSError):  # there is none but on Linux
            self._mounts = open("/proc/self/mountinfo", "rb")  # noqa: SIM115 - open as long as the server
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
        self._folder: str | None = None
        self._user: int | None = None
        try:
            self._control.settimeout(_REPLY_MARGIN_S)
            hello, _, _ = judge_protocol.receive(self._control)
        except BaseException:
            self.kill()
            raise
        self.unavailable: str | None = hello.get("unavailable")
        if self.unavailable is None:
            self.isolation = Isolation(**hello["isolation"])
            self._folder = hello["folder"]
            if (user := hello["user"]) is not None and (network or not self.isolation.namespaces):
                self._user = user
                judge_users.add(user)

    def ask(self, request: Mapping[str, Any], task: int, timeout_s: float) -> tuple[dict[str, Any], bytes]:
        """The supervisor's last message.

        Raises _NotStartedError where no judge was started, EOFError or OSError where its supervisor is gone,
        TimeoutError where that does not answer in time.
        """
        conversation, theirs = socket.socketpair()
        with conversation:
            port = request["sandbox_port"] if self.isolation.namespaces else None
            conversation.settimeout(_REPLY_MARGIN_S)
            try:
                with theirs:
                    socket.send_fds(self._control, [b"+"], [theirs.fileno()])
                listen = port is not None and _is_listening(port)
                judge_protocol.send(conversation, {**request, "listen": listen}, b"", [task])
                reply, answer, descriptors = judge_protocol.receive(conversation)
            except TimeoutError:
                raise _NotStartedError("what starts it does not answer") from None
            except (EOFError, OSError):
                raise _NotStartedError("what starts it ended again and again") from None
            if "started" not in reply:
                raise _NotStartedError(reply["output"])
            conversation.settimeout(timeout_s)
            with nullcontext() if port is None else _relay(descriptors, port):
                reply, answer, _ = judge_protocol.receive(conversation)
            return reply, answer

    def is_outdated(self) -> bool:
        """Whether something was mounted or unmounted since its start, which its judges would not see."""
        if self._mounts is None or not self.isolation.namespaces:
            return False
        changes = select.poll()
        changes.register(self._mounts, select.POLLPRI)
        return bool(changes.poll(0))

    def close(self) -> None:
        """The server ends by itself once its socket is closed."""
        self._let_go()
        try:
            self._process.wait(_REPLY_MARGIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._let_go()
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        if self._folder is not None:
            with suppress(OSError):
                remove_tree(self._folder)

    def _let_go(self) -> None:
        self._control.close()
        if self._mounts is not None:
            self._mounts.close()
        if self._user is not None:
            judge_users.discard(self._user)

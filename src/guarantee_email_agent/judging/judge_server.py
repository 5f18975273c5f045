"""The judge's server: a small interpreter, started once, that puts each judge into a process of its own and watches it.

It judges one record at a time, so that whatever still runs afterwards is that judge's, and is killed. Messages: see
`judge_protocol`; a request is `{"path", "timeout_s", "limits", "python"}` with the record as its body, and the reply
`{"end", "status", "output", "dropped", "duration_ms"}` with the judge's answer. `end` is `answered`, `ended`,
`timeout`, `memory`, `disk`, `too_much`, `unstoppable` or `broken`; `status` is an exit code, or a signal's number
below zero.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

from guarantee_email_agent.judging import judge_process, judge_protocol
from guarantee_email_agent.judging.judge_isolation import (
    JudgeEnvironment,
    NamespacesUnavailableError,
    enter_namespaces,
    without_namespaces,
)
from guarantee_email_agent.judging.judge_protocol import LINUX, MIB, NOT_STARTED, JudgeLimits
from guarantee_email_agent.judging.resource_usage import (
    descendants,
    is_larger,
    memory_of_descendants,
    unlinked_files_of_descendants,
)

_OUR_PACKAGE = __name__.partition(".")[0]
_POLL_S = 0.1
_KILL_TIMEOUT_S = 2.0
_CHUNK = 1 << 18
_ANSWER_HEAD_BYTES = 32 + judge_process.LENGTH_DIGITS
_MAX_DESCRIPTORS = 1024  # far more than the server ever has open


def main(control_fd: int, temp_parent: str, *, network: bool, no_namespaces_because: str | None) -> None:
    """Say hello, `{"isolation", "temp_dir"}` or `{"unavailable": reason}`, and serve until the other end is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where our caller ignores it, no child could be waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which as process 1 is the one signal that a judge could send us
    control = socket.socket(fileno=control_fd)
    temp_dir = os.path.join(temp_parent, f"judge-{os.getpid()}-{os.urandom(4).hex()}")
    os.mkdir(temp_dir, 0o700)
    try:
        if no_namespaces_because is None:
            environment = enter_namespaces(network, temp_dir)
        else:
            environment = without_namespaces(network, temp_dir, no_namespaces_because)
    except NamespacesUnavailableError as error:
        if os.getpid() != 1:
            os.rmdir(temp_dir)
        judge_protocol.send(control, {"unavailable": str(error)})
        return
    gc.collect()
    gc.freeze()
    try:
        judge_protocol.send(control, {"isolation": asdict(environment.isolation), "temp_dir": temp_dir})
        while True:
            request, record = judge_protocol.receive(control)
            limits = JudgeLimits(**request.pop("limits"))
            try:
                reply, answer = _JudgeRun(environment, control, limits, **request).run(record)
            except OSError as error:
                answer = b""
                reply = {"end": "broken", "status": None, "output": str(error), "dropped": 0, "duration_ms": 0}
            judge_protocol.send(control, reply, answer)
    except (EOFError, BrokenPipeError):
        pass
    finally:
        environment.remove_temp_dir()


@dataclass(slots=True)
class _JudgeRun:
    """One judge, from its fork to the end of everything it started."""

    environment: JudgeEnvironment
    control: socket.socket
    limits: JudgeLimits
    path: str
    timeout_s: float
    python: str | None
    nonce: str = field(default_factory=lambda: os.urandom(16).hex())
    output: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    received: bytearray = field(default_factory=bytearray)
    status: int | None = None

    def run(self, record: bytes) -> tuple[dict[str, Any], bytes]:
        self.environment.prepare_temp_dir(self.limits, self.path)
        output, output_in = os.pipe()
        answers, answers_in = os.pipe()
        task = () if self.python is None else (self._write_task_file(record),)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            self._become_judge(output_in, answers_in, record, *task)
        del record
        for descriptor in (output_in, answers_in, *task):
            os.close(descriptor)
        for descriptor in (output, answers):
            os.set_blocking(descriptor, False)
        try:
            end, answer = self._watch(child, output, answers, started + self.timeout_s)
            if not self._kill_all(child):
                end = "unstoppable"
            self._read_output(output)
            self.environment.clear_temp_dir()
        except EOFError:
            self._kill_all(child)
            raise
        finally:
            os.close(output)
            os.close(answers)
        reply = {
            "end": end,
            "status": self.status,
            "output": self.output.decode("utf-8", "replace"),
            "dropped": self.dropped,
            "duration_ms": round((time.monotonic() - started) * 1000, 1),
        }
        return reply, answer

    def _write_task_file(self, record: bytes) -> int:
        """What a fresh interpreter needs to know, in a file without a name."""
        head = {"judge": self.path, "nonce": self.nonce, "most_bytes": self.limits.verdict_bytes}
        if hasattr(os, "memfd_create"):
            task = os.memfd_create("task")
        else:
            import tempfile

            task, name = tempfile.mkstemp()
            os.unlink(name)
        with os.fdopen(os.dup(task), "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + record)
        os.lseek(task, 0, os.SEEK_SET)
        return task

    def _become_judge(self, output: int, answers: int, record: bytes, task: int | None = None) -> NoReturn:
        """In the child. Never returns: what goes wrong here ends the process."""
        try:
            os.dup2(output, 1)
            os.dup2(output, 2)
            kept = sorted(descriptor for descriptor in (2, answers, task, _MAX_DESCRIPTORS) if descriptor is not None)
            for below, above in pairwise(kept):
                os.closerange(below + 1, above)
            os.environ.update(TMPDIR=self.environment.temp_dir, HOME=self.environment.temp_dir)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.environment.confine_judge(self.limits, self.timeout_s)
            with suppress(OSError):
                os.chdir(os.path.dirname(self.path))
            if self.python is None or task is None:
                for name in [name for name in sys.modules if name.partition(".")[0] == _OUR_PACKAGE]:
                    del sys.modules[name]  # a judge that imports it gets its own
                judge_process.answer(self.path, record, self.nonce, answers, self.limits.verdict_bytes)
            os.set_inheritable(answers, True)
            os.set_inheritable(task, True)
            arguments = [self.python, "-I", "-B", judge_process.__file__, str(task), str(answers)]
            os.execv(self.python, arguments)  # noqa: S606 - no shell
        except BaseException as error:  # noqa: BLE001 - nothing of this process may go on as a second server
            with suppress(OSError):
                os.write(2, f"The judge could not be started: {error}\n".encode())
        finally:
            os._exit(NOT_STARTED)

    def _watch(self, child: int, output: int, answers: int, deadline: float) -> tuple[str, bytes]:
        """The reply's `end`, and the judge's answer."""
        ended = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        poller = select.poll()
        for descriptor in (self.control.fileno(), output, answers, ended):
            if descriptor is not None:
                poller.register(descriptor, select.POLLIN)
        most_memory = self.limits.memory_mb * MIB
        check_memory_at = time.monotonic() + _POLL_S
        try:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    return "timeout", b""
                wait_s = min(deadline - now, _POLL_S if ended is not None else _POLL_S / 10)
                ready = {descriptor for descriptor, _ in poller.poll(wait_s * 1000 + 1)}
                if self.control.fileno() in ready:
                    raise EOFError("the caller is gone")
                gone = ended in ready if ended is not None else self._reap(child, os.WNOHANG)
                if output in ready and not self._read_output(output):
                    poller.unregister(output)
                if answers in ready or gone:
                    part, is_open = _read_available(answers)
                    self.received += part
                    if not is_open:
                        with suppress(KeyError):
                            poller.unregister(answers)
                    answer = _parse_answer(self.received, self.nonce.encode())
                    if answer is not None:
                        return "answered", answer
                    if len(self.received) > self.limits.verdict_bytes + 2 * _CHUNK:
                        return "too_much", b""
                if gone:
                    return "ended", b""
                if LINUX and now >= check_memory_at:
                    if memory_of_descendants(most_memory) > most_memory:
                        return "memory", b""
                    if self._is_disk_full():
                        return "disk", b""
                    check_memory_at = time.monotonic() + _POLL_S
        finally:
            if ended is not None:
                os.close(ended)

    def _is_disk_full(self) -> bool:
        if self.environment.isolation.namespaces:
            return False  # there the temporary folder has its size
        folder, most = self.environment.temp_dir, self.limits.temp_mb * MIB
        return is_larger(folder, most) or unlinked_files_of_descendants(folder) > most

    def _read_output(self, output: int) -> bool:
        """False at its end."""
        part, is_open = _read_available(output)
        kept = part[: max(0, self.limits.output_bytes - len(self.output))]
        self.output += kept
        self.dropped += len(part) - len(kept)
        return is_open

    def _reap(self, child: int, options: int) -> bool:
        """Whether the judge has ended; waits for it, or with WNOHANG does not."""
        pid, status = os.waitpid(child, options)
        if pid:
            self.status = os.waitstatus_to_exitcode(status)
        return pid != 0

    def _kill_all(self, child: int) -> bool:
        """Kill the judge and all that it left behind; False where something of it still runs after some seconds."""
        alone = self.environment.isolation.namespaces
        with suppress(ProcessLookupError, PermissionError):
            # As process 1: every process but us, in one step that no fork can outrun.
            os.kill(-1 if alone else -child, signal.SIGKILL)
        if self.status is None:
            self._reap(child, 0)
        give_up_at = time.monotonic() + _KILL_TIMEOUT_S
        with suppress(ChildProcessError):
            while time.monotonic() < give_up_at:
                if os.waitpid(-1, 0 if alone else os.WNOHANG)[0]:
                    continue
                if self.environment.user is not None:
                    _kill_processes_of(self.environment.user)
                    continue
                for pid, _ in descendants() if LINUX else ():
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
            return False
        return True


def _read_available(descriptor: int) -> tuple[bytes, bool]:
    """What is there, but no more than some megabytes; and whether more may come."""
    data = bytearray()
    for _ in range(8):
        try:
            part = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            break
        if not part:
            return bytes(data), False
        data += part
    return bytes(data), True


def _parse_answer(received: bytearray, nonce: bytes) -> bytes | None:
    """The judge's answer, once it is complete; whatever else was written to the channel is no answer."""
    start = received.find(nonce)
    if start < 0 or len(received) < start + _ANSWER_HEAD_BYTES:
        return None
    try:
        length = int(received[start + len(nonce) : start + _ANSWER_HEAD_BYTES], 16)
    except ValueError:  # a judge found out the nonce, and wrote something of its own
        return None
    answer = bytes(received[start + _ANSWER_HEAD_BYTES : start + _ANSWER_HEAD_BYTES + length])
    return answer if answer and len(answer) == length else None


def _kill_processes_of(user: int) -> None:
    """All processes of a user that only judges have, in one step that no fork can outrun."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(killer, 0)

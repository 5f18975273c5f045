"""The judges' server, and the supervisor that it forks for each judge.

The server is a small interpreter, started once, that knows nothing else: neither record nor answer nor what a judge
prints passes through it, so that no judge finds another's in the memory that it gets from here. Our process sends it a
byte with a socket for each judge, over which it speaks to the supervisor. One judge at a time: what still runs
afterwards is that judge's, and is killed.

The supervisor is process 1 where there are namespaces, so that what a judge does to it costs its own verdict and nobody
else's. It reads no record but passes the descriptor on. Our process asks it `{"path", "timeout_s", "limits", "python",
"nonce", "sandbox_port", "listen"}` with the record's descriptor. It answers `{"started": true}`, with the listening
socket where one was asked for, and `{"end", "status", "output", "dropped", "duration_ms"}` with the judge's answer as
the body. `end` is `answered`, `ended`, `timeout`, `memory`, `disk`, `too_much`, `unstoppable` or `broken`; `status` is
an exit code, or a signal's number below zero.
"""

from __future__ import annotations

import gc
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
    is_larger,
    memory_of_descendants,
    unlinked_files_of_descendants,
)

# Found once, and not by each judge: what a child touches has to be copied for it.
_OUR_MODULES = [name for name in sys.modules if name.partition(".")[0] == __name__.partition(".")[0]]
_POLL_S = 0.1
_CHUNK = 1 << 18
_ANSWER_HEAD_BYTES = 32 + judge_process.LENGTH_DIGITS
_MAX_DESCRIPTORS = 1024  # far more than the supervisor ever has open


def supervise(environment: JudgeEnvironment, control: socket.socket) -> None:
    """Run the judge that is asked for, and reply; the judge ends with whoever asked."""
    request, _, [record] = judge_protocol.receive(control)
    limits = JudgeLimits(**request.pop("limits"))
    sandbox_port, listen = request.pop("sandbox_port"), request.pop("listen")
    try:
        listener = environment.enter(limits, request["path"], sandbox_port, listen=listen)
        judge_protocol.send(control, {"started": True}, b"", () if listener is None else (listener.fileno(),))
        if listener is not None:
            listener.close()
        run = _JudgeRun(environment, control, limits, sandbox=sandbox_port is not None, **request)
        reply, answer = run.run(record)
    except BrokenPipeError:
        return
    except OSError as error:
        answer = b""
        reply = {"end": "broken", "status": None, "output": str(error), "dropped": 0, "duration_ms": 0}
    judge_protocol.send(control, reply, answer)


@dataclass(slots=True)
class _JudgeRun:
    """One judge, from its fork to the end of everything it started. sandbox: whether it may look into one."""

    environment: JudgeEnvironment
    control: socket.socket
    limits: JudgeLimits
    path: str
    timeout_s: float
    python: str | None
    nonce: str
    sandbox: bool
    output: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    received: bytearray = field(default_factory=bytearray)
    status: int | None = None

    def run(self, record: int) -> tuple[dict[str, Any], bytes]:
        """record: the descriptor of what `judge_process` reads."""
        output, output_in = os.pipe()
        answers, answers_in = os.pipe()
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            self._become_judge(output_in, answers_in, record)
        for descriptor in (output_in, answers_in, record):
            os.close(descriptor)
        for descriptor in (output, answers):
            os.set_blocking(descriptor, False)
        try:
            end, answer = self._watch(child, output, answers, started + self.timeout_s)
        except EOFError:
            self._end(child)
            raise
        if not self._end(child):
            end = "unstoppable"
        self._read_output(output)
        reply = {
            "end": end,
            "status": self.status,
            "output": self.output.decode("utf-8", "replace"),
            "dropped": self.dropped,
            "duration_ms": round((time.monotonic() - started) * 1000, 1),
        }
        return reply, answer

    def _become_judge(self, output: int, answers: int, record: int) -> NoReturn:
        """In the child. Never returns: what goes wrong here ends the process."""
        try:
            os.dup2(output, 1)
            os.dup2(output, 2)
            # Its own, since flags and locks of an open file belong to all who share it.
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for below, above in pairwise(sorted((2, answers, record, _MAX_DESCRIPTORS))):
                os.closerange(below + 1, above)
            os.environ["TMPDIR"] = os.environ["HOME"] = self.environment.temp_dir
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.environment.confine_judge(self.limits, self.timeout_s, sandbox=self.sandbox)
            with suppress(OSError):
                os.chdir(os.path.dirname(self.path))
            if self.python is None:
                for name in _OUR_MODULES:
                    del sys.modules[name]  # a judge that imports it gets its own
                judge_process.answer(record, answers)
            os.set_inheritable(answers, True)
            os.set_inheritable(record, True)
            arguments = [self.python, "-I", "-B", judge_process.__file__, str(record), str(answers)]
            os.execv(self.python, arguments)  # noqa: S606 - no shell
        except BaseException as error:  # noqa: BLE001 - nothing of this process may go on as a second supervisor
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

    def _end(self, child: int) -> bool:
        """Kill the judge and all that it left behind; False where something of it still runs after some seconds."""
        if self.status is None:
            for target in (child, -child):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(target, signal.SIGKILL)
            self._reap(child, 0)
        ended = self.environment.end_processes()
        self.environment.leave()
        return ended


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


def main(control_fd: int, temp_parent: str, *, network: bool, no_namespaces_because: str | None) -> None:
    """Say hello, `{"isolation", "folder", "user"}` or `{"unavailable": reason}`; serve until the other end is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where our caller ignores it, no child could be waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which as process 1 is the one signal that a judge could send us
    control = socket.socket(fileno=control_fd)
    folder = os.path.join(temp_parent, f"judge-{os.getpid()}-{os.urandom(4).hex()}")
    os.mkdir(folder, 0o711)
    try:
        if no_namespaces_because is None:
            environment = enter_namespaces(network, folder)
        else:
            environment = without_namespaces(network, folder, no_namespaces_because)
    except NamespacesUnavailableError as error:
        judge_protocol.send(control, {"unavailable": str(error)})
        if os.getpid() != 1:
            os.rmdir(folder)
        os._exit(1)
    gc.collect()
    gc.freeze()
    hello = {"isolation": asdict(environment.isolation), "folder": folder, "user": environment.user}
    try:
        judge_protocol.send(control, hello)
        while True:
            _, [conversation] = judge_protocol.receive_descriptors(control, 1)
            _have_judged(environment, control, conversation)
    except (EOFError, BrokenPipeError):
        pass
    finally:
        if no_namespaces_because is not None:
            with suppress(FileNotFoundError):
                os.rmdir(folder)


def _have_judged(environment: JudgeEnvironment, control: socket.socket, conversation: int) -> None:
    """Fork the supervisor that speaks over `conversation`, and wait until nothing is left of its judge."""
    environment.prepare_supervisor()
    supervisor = os.fork()
    if supervisor == 0:
        try:
            control.close()
            with socket.socket(fileno=conversation) as asker, suppress(EOFError, BrokenPipeError):
                supervise(environment, asker)
        finally:
            os._exit(0)
    os.close(conversation)
    os.waitpid(supervisor, 0)
    environment.clean_up()

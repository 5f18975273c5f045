"""The first process of the sandbox: it reads requests from the socket to the outside until that closes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any, Final

from .api import Api
from .api_request import Request
from .event_loop import Loop
from .memory_guard import MemoryGuard
from .wire import REQUEST_BYTES, pack_reply, request_lengths, unpack_head

_CHUNK: Final = 1 << 18
_PATIENCE_S: Final = 2.0
_PAUSE_S: Final = 0.001


class Channel:
    """The socket to the server outside. Nothing here waits: a reply that is not taken yet is kept."""

    def __init__(self, loop: Loop, descriptor: int) -> None:
        self._loop = loop
        self._received = bytearray()
        self._to_send: list[memoryview] = []
        self.api: Api | None = None
        os.set_blocking(descriptor, False)
        os.set_inheritable(descriptor, False)
        # A descriptor is watched for one thing at a time, so sending has one of its own.
        self._sender = os.dup(descriptor)
        loop.watch(descriptor, self._receive)

    def _receive(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._loop.stop()
            return
        self._received += chunk
        while len(self._received) >= REQUEST_BYTES:
            number, head, body = request_lengths(self._received)
            end = REQUEST_BYTES + head + body
            if len(self._received) < end:
                return
            data = bytes(self._received[REQUEST_BYTES:end])
            del self._received[:end]
            self._handle(number, data[:head], data[head:])

    def _handle(self, number: int, head: bytes, body: bytes) -> None:
        method, target, content_type = unpack_head(head)
        assert self.api is not None
        self.api.handle(
            Request(
                method,
                target,
                content_type,
                body,
                lambda status, kind, content: self._send(pack_reply(number, status, kind, content)),
            )
        )

    def _send(self, data: bytes) -> None:
        self._to_send.append(memoryview(data))
        self._flush(self._sender)

    def _flush(self, descriptor: int) -> None:
        while self._to_send:
            try:
                sent = os.write(descriptor, self._to_send[0])
            except BlockingIOError:
                break
            except OSError:
                self._loop.stop()
                return
            if sent == len(self._to_send[0]):
                self._to_send.pop(0)
            else:
                self._to_send[0] = self._to_send[0][sent:]
        if self._to_send and not self._loop.watched(descriptor):
            self._loop.watch(descriptor, self._flush, write=True)
        elif not self._to_send:
            self._loop.unwatch(descriptor)


def run(channel: int, config: Mapping[str, Any]) -> None:
    """Serve until the outside is gone. channel: descriptor of the socket."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o022)
    loop = Loop()
    connection = Channel(loop, channel)
    connection.api = Api(loop, config)
    lifeline = config["lifeline"]
    if lifeline is not None:
        os.set_inheritable(lifeline, False)
        # Its other end is held by the process outside that started us; it says nothing and closes when that is gone.
        loop.watch(lifeline, lambda _: loop.stop())
    if config["guard"] is not None:
        on_kill = connection.api.shell.killed
        MemoryGuard(loop, on_kill, lambda reason: _give_up(loop, reason), **config["guard"])
    loop.after(config["time_s"], lambda: _give_up(loop, f"its time of {config['time_s']:g} s was over"))
    try:
        loop.run()
    finally:
        if config["pid_namespace"]:
            os._exit(0)  # the kernel ends everything else with the first process
        _end_all(config["home"])


def _give_up(loop: Loop, reason: str) -> None:
    """End the sandbox. The outside reads the reason from our standard error."""
    os.write(2, f"{reason}\n".encode())
    loop.stop()


def _end_all(home: str) -> None:
    """Without a process namespace: end what is below us, again and again, since what is ended may just have forked."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_at:
        for pid in _children(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(_PAUSE_S)
    import shutil  # the other sandboxes never need it

    # Whoever started us may be gone.
    shutil.rmtree(home, ignore_errors=True)
    os._exit(0)


def _children(pid: int) -> list[int]:
    """All processes below one, from /proc; none where that cannot be read."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of a program may hold anything but ends at the last bracket.
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found, waiting = [], [pid]
    while waiting:
        above = waiting.pop()
        below = [child for child, parent in parents.items() if parent == above]
        found += below
        waiting += below
    return found

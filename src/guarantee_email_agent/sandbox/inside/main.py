"""The first process of the sandbox: it reads requests from the socket to the outside until that closes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from .api import Api
from .api_request import ApiRequest
from .event_loop import EventLoop, Writer, read_available
from .memory_guard import MemoryGuard
from .wire import REQUEST, pack_reply, unpack_head

_KILL_S: Final = 2.0
_PAUSE_S: Final = 0.001


class RequestChannel:
    """The socket to the server outside: requests come, and are answered over it in any order."""

    def __init__(self, loop: EventLoop, descriptor: int, api: Api) -> None:
        self._loop = loop
        self._api = api
        self._received = bytearray()
        os.set_inheritable(descriptor, False)
        # A descriptor is watched for one thing at a time, so sending has one of its own.
        self._writer = Writer(loop, os.dup(descriptor), loop.stop)
        loop.watch(descriptor, self._receive)

    def _receive(self, descriptor: int) -> None:
        chunk = read_available(descriptor)
        if chunk is None:
            return
        if not chunk:
            self._loop.stop()
            return
        self._received += chunk
        while len(self._received) >= REQUEST.size:
            number, head, body = REQUEST.unpack_from(self._received)
            end = REQUEST.size + head + body
            if len(self._received) < end:
                return
            data = bytes(self._received[REQUEST.size : end])
            del self._received[:end]
            self._api.handle(ApiRequest(*unpack_head(data[:head]), data[head:], partial(self._send, number)))

    def _send(self, number: int, status: int, kind: int, content: bytes) -> None:
        self._writer.write(pack_reply(number, status, kind, content))


def run(channel: int, config: Mapping[str, Any]) -> None:
    """Serve until the outside is gone. channel: descriptor of the socket."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o022)
    loop = EventLoop()
    api = Api(loop, config)
    RequestChannel(loop, channel, api)
    if (lifeline := config["lifeline"]) is not None:
        os.set_inheritable(lifeline, False)
        # Its other end is held by the process outside that started us, and closes when that is gone.
        loop.watch(lifeline, lambda _: loop.stop())
    if config["guard"] is not None:
        MemoryGuard(loop, api.shell.note_kill, lambda reason: _end_sandbox(loop, reason), **config["guard"])
    loop.after(config["time_s"], lambda: _end_sandbox(loop, f"its time of {config['time_s']:g} s was over"))
    try:
        loop.run()
    finally:
        if config["pid_namespace"]:
            os._exit(0)  # the kernel ends everything else with the first process
        _kill_descendants(config["home"])


def _end_sandbox(loop: EventLoop, reason: str) -> None:
    """End the sandbox. The outside reads the reason from our standard error."""
    os.write(2, f"{reason}\n".encode())
    loop.stop()


def _kill_descendants(home: str) -> None:
    """Without a process namespace: end what is below us, again and again, since what is ended may just have forked."""
    deadline = time.monotonic() + _KILL_S
    while time.monotonic() < deadline:
        for pid in _descendants(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
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


def _descendants(pid: int) -> list[int]:
    """All processes below one, from /proc; none where that cannot be read."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            # The name of a program may hold anything but ends at the last bracket.
            parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = [pid]
    for above in found:  # grows by those below
        found += [child for child, parent in parents.items() if parent == above]
    return found[1:]

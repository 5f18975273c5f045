"""Lets a judge in a network namespace of its own reach one port of this machine: that of the sandbox it looks into."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Final, Self

_HOST: Final = "127.0.0.1"
_MAX_CONNECTIONS: Final = 32
"""At the same time; further ones wait until one of them ends."""
_CHUNK: Final = 1 << 16
_CONNECT_TIMEOUT_S: Final = 5.0
_PAUSE_S: Final = 0.05
_RESET: Final = struct.pack("ii", 1, 0)


class PortRelay(AbstractContextManager["PortRelay"]):
    """Passes what `listener` accepts on to a port of 127.0.0.1, in a thread; leaving it closes all of them.

    Raises OSError where too many files are open.
    """

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener, self._port = listener, port
        # The factory keeps it from becoming the event loop of our caller's thread.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        try:
            self._loop = self._runner.get_loop()
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="port-relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._accepting.cancel)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        with self._runner, suppress(asyncio.CancelledError):
            self._runner.run(self._accept())

    async def _accept(self) -> None:
        accepting = asyncio.current_task()
        assert accepting
        self._accepting = accepting
        self._ready.set()
        slots = asyncio.Semaphore(_MAX_CONNECTIONS)
        relays: set[asyncio.Task[None]] = set()

        def end(relay: asyncio.Task[None], connection: socket.socket) -> None:
            relays.discard(relay)
            connection.close()
            slots.release()

        while True:
            await slots.acquire()
            try:
                connection, _ = self._listener.accept()  # not awaited: one that is cancelled then would stay open
            except BlockingIOError:
                slots.release()
                await self._readable()
                continue
            except OSError:  # too many open files, until a connection ends
                slots.release()
                await asyncio.sleep(_PAUSE_S)
                continue
            connection.setblocking(False)
            relays.add(relay := self._loop.create_task(self._relay(connection)))
            relay.add_done_callback(partial(end, connection=connection))

    async def _readable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(self._listener, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(self._listener)

    async def _relay(self, connection: socket.socket) -> None:
        with socket.socket(socket.AF_INET) as sandbox:
            sandbox.setblocking(False)
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):  # wait_for may lose a cancellation (Python 3.11)
                    await self._loop.sock_connect(sandbox, (_HOST, self._port))
            except OSError:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pump(connection, sandbox))
                    both.create_task(self._pump(sandbox, connection))
            except* OSError:  # one end is gone, and the other is told by the end of its connection
                pass

    async def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Until the source has no more, which the sink is told; the other direction may go on."""
        while data := await self._loop.sock_recv(source, _CHUNK):
            await self._loop.sock_sendall(sink, data)
        sink.shutdown(socket.SHUT_WR)

"""Lets a judge in a network namespace of its own reach one port of this machine: that of the sandbox it looks into."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import Final, Self

_HOST: Final = "127.0.0.1"
_MAX_CONNECTIONS: Final = 32
"""At the same time; further ones wait until one of them ends."""
_CHUNK: Final = 1 << 16
_CONNECT_TIMEOUT_S: Final = 5.0
_PAUSE_S: Final = 0.05
_RESET: Final = struct.pack("ii", 1, 0)


class PortRelay(AbstractContextManager["PortRelay"]):
    """Passes what `listener` accepts on to a port of 127.0.0.1, in threads; leaving it closes all of them."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener, self._port = listener, port
        self._slots = threading.Semaphore(_MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="port-relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over.set()
            _shut_down(self._listener, *self._ends)  # wakes whoever waits for one of them
        self._slots.release()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        relays: list[threading.Thread] = []
        while self._slots.acquire() and not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # too many open files, until a connection ends; or there is no listener any more
                self._slots.release()
                time.sleep(0 if self._over.is_set() else _PAUSE_S)
                continue
            relay = threading.Thread(target=self._relay, args=(connection,), daemon=True)
            relay.start()
            relays = [*filter(threading.Thread.is_alive, relays), relay]
        for relay in relays:
            relay.join()

    def _relay(self, connection: socket.socket) -> None:
        ends = {connection}
        try:
            ends.add(sandbox := socket.socket())
            with self._lock:
                if self._over.is_set():
                    return
                self._ends |= ends
            sandbox.settimeout(_CONNECT_TIMEOUT_S)
            sandbox.connect((_HOST, self._port))
            sandbox.settimeout(None)
            outward = threading.Thread(target=_pump, args=(sandbox, connection), daemon=True)
            outward.start()
            _pump(connection, sandbox)
            outward.join()
        except OSError:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        finally:
            with self._lock:
                self._ends -= ends
            for end in ends:
                end.close()
            self._slots.release()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Until the source has no more, which the sink is told; the other direction may go on."""
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # one end is gone, and the other is told by the end of its connection
        _shut_down(source, sink)


def _shut_down(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

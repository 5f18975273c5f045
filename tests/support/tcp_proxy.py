"""A proxy on loopback that cuts connections: what a network does, at the moment that a test chooses."""

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Self


class TcpProxy:
    """Passes bytes on between its `port` and a server's. A context manager.

    `on_request`: told of what a client sent; True lets it pass. False lets it pass too, and then cuts the connection
    before any answer comes back. `rewrite`: parts of answers, and what the client is to get in their place. `answer`:
    what a request gets from the proxy instead of reaching the server; None lets it pass.
    """

    def __init__(
        self,
        target_port: int,
        on_request: Callable[[bytes], bool] = lambda _: True,
        rewrite: Mapping[bytes, bytes] = MappingProxyType({}),
        answer: Callable[[bytes], bytes | None] = lambda _: None,
    ) -> None:
        self._target_port = target_port
        self._on_request = on_request
        self._rewrite = rewrite
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close every connection there is; new ones are still accepted."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            _close(connection)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._target_port))
                self.accepted += 1
                with self._lock:
                    self._open |= {client, server}
                for source, target, watch in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pump, args=(source, target, watch), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, watch: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if watch and (own := self._answer(data)) is not None:
                    source.sendall(own)
                    continue
                if watch and not self._on_request(data):
                    _close(source)  # first, so that no answer can get through
                    target.sendall(data)
                    target.recv(65_536)  # Dovecot mostly drops a command with the end of input right behind it
                    target.shutdown(socket.SHUT_WR)
                    while target.recv(65_536):  # the server finishes what it was told
                        pass
                    break
                for part, other in self._rewrite.items() if not watch else ():
                    data = data.replace(part, other)
                target.sendall(data)
        for connection in (source, target):
            _close(connection)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

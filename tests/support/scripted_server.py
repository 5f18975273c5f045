"""A server on loopback that says what a test tells it to: for answers that no real server can be made to give."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Self


class ScriptedServer:
    """Line by line: `greeting`, then `answer(line)` for every line a client sends; b"" for none. A context manager.

    The connection ends where `answer` gives None, and at once where the greeting is None. With `tls` the client has to
    shake hands first.
    """

    def __init__(
        self, greeting: bytes | None, answer: Callable[[bytes], bytes | None], tls: ssl.SSLContext | None = None
    ) -> None:
        self._greeting = greeting
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._start(self._talk, self._listener.accept()[0])

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            if self._greeting is None:
                return
            connection.sendall(self._greeting)
            with connection.makefile("rb") as lines:
                for line in lines:
                    answer = self._answer(line)
                    if answer is None:
                        break
                    connection.sendall(answer)

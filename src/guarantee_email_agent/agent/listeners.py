"""The sockets on which a running agent can be asked: a TCP port, and a Unix socket for its own user."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.operation_settings import MAX_SOCKET_PATH_BYTES
from guarantee_email_agent.utils.errors import ConfigurationError

_BACKLOG: Final = 64
_LOCK_TRIES: Final = 20
_LOCK_PAUSE_S: Final = 0.05
_PORT_PROBLEMS: Final = {
    errno.EADDRINUSE: "another program has it, perhaps another agent. Name another port, one for each agent",
    errno.EACCES: "this user may not have it. Name one above 1023",
    errno.EADDRNOTAVAIL: "this machine has no such address. Name one of its own in metrics.address",
}


def listen_on_port(address: str, port: int) -> socket.socket:
    """address: an IP address of this machine. Raises ConfigurationError `metrics_port_unusable`."""
    return _listen_on_port(address, port, port)


def check_port(address: str, port: int) -> None:
    """Whether an agent could listen there, were its port free. Raises as `listen_on_port` does."""
    _listen_on_port(address, 0, port).close()


def _listen_on_port(address: str, port: int, named_port: int) -> socket.socket:
    """port: 0 for any. named_port: that of the settings."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_NUMERICHOST
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # with :: it is asked over IPv4, too
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
            listener.bind(place)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        reason = _PORT_PROBLEMS.get(error.errno or 0, f"{error.strerror or error}. Correct metrics.address")
        problem = f"metrics.port: port {named_port} of {address} cannot be used: {reason}"
        raise ConfigurationError(problem, "metrics_port_unusable") from None
    return listener


def listen_on_unix_socket(path: Path) -> socket.socket:
    """A socket of mode 600, in the place of one that a crashed agent left. Raises `metrics_socket_unusable`."""
    _require_short(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _locked(path.parent):
            _remove_stale(path)
            listener.bind(str(path))
            path.chmod(0o600)  # nobody can connect before it listens
            listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _no_place(path, error) from None
    except BaseException:
        listener.close()
        raise
    return listener


def check_unix_socket(path: Path) -> None:
    """Whether an agent could listen there, were no other one listening. Raises as `listen_on_unix_socket` does."""
    _require_short(path)
    try:
        with tempfile.TemporaryDirectory(prefix=".socket-", dir=path.parent):
            _require_socket(path)
    except OSError as error:
        raise _no_place(path, error) from None


def remove_unix_socket(path: Path) -> None:
    """Remove the file of a socket that was closed, unless another agent listens there by now."""
    with suppress(OSError, ConfigurationError), _locked(path.parent):
        _remove_stale(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """So that of two agents that start at once neither removes the socket of the other."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(_LOCK_TRIES):  # others may lock a folder, too, for as long as they like
            with suppress(BlockingIOError):
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(opened)


def _remove_stale(path: Path) -> None:
    if not _require_socket(path):
        return
    if _answers(path):
        raise _socket_unusable(path, "another agent listens there. Name another one, one for each agent")
    path.unlink()


def _require_socket(path: Path) -> bool:
    """Whether there is a socket already; False where there is nothing."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise _socket_unusable(path, "there is a file that is no socket. Name another one")
    return True


def _require_short(path: Path) -> None:
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise _socket_unusable(path, f"its path may have {MAX_SOCKET_PATH_BYTES} bytes at most. Name a shorter one")


def _answers(path: Path) -> bool:
    """Whether somebody listens. Raises OSError where that cannot be found out."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(str(path))
        except BlockingIOError:  # its queue is full
            return True
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


def _no_place(path: Path, error: OSError) -> ConfigurationError:
    return _socket_unusable(path, f"{error.strerror}. Name another one, in a folder of the agent's own")


def _socket_unusable(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(f"metrics.socket: {path} cannot be used: {reason}", "metrics_socket_unusable")

"""Files that travel with the work to a machine that has none of them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

MAX_BUNDLE_BYTES: Final = 256 << 20
_LEFT_OUT: Final = frozenset({"__pycache__", ".git"})


class BundledFile(NamedTuple):
    """path: absolute, as on the machine that it comes from. content: None for a folder. link: where it leads, for one
    that is no more than that.
    """

    path: str
    content: bytes | None
    executable: bool = False
    link: str | None = None


def bundle(paths: Iterable[str | Path]) -> list[BundledFile]:
    """Copies of files, and of folders with all that is in them; what is neither, and what is gone, is left out.

    A relative link stays one, with what it leads to; an absolute one is followed. Raises ConfigurationError for files
    that cannot be read, or that are too large together.
    """
    files: dict[str, BundledFile] = {}
    room = MAX_BUNDLE_BYTES
    waiting = [os.path.abspath(path) for path in paths][::-1]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        if os.path.islink(path) and not os.path.isabs(target := os.readlink(path)):
            files[path] = BundledFile(path, b"", link=target)
            waiting.append(os.path.normpath(os.path.join(os.path.dirname(path), target)))
        elif os.path.isdir(path):
            files[path] = BundledFile(path, None)
            waiting += [os.path.join(path, name) for name in _names(path)]
        elif os.path.isfile(path):
            files[path] = file = _read(path, room)
            room -= len(file.content or b"")
    return list(files.values())


def _names(folder: str) -> list[str]:
    try:
        return sorted(set(os.listdir(folder)) - _LEFT_OUT, reverse=True)
    except OSError as error:
        raise _unreadable(folder, error) from None


def _read(path: str, room: int) -> BundledFile:
    try:
        with open(path, "rb") as file:
            content, mode = file.read(room + 1), os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(content) > room:
        problem = f"more than {MAX_BUNDLE_BYTES >> 20} MiB would have to be sent to the cluster. Move large files away"
        raise ConfigurationError(f"{printable(path)}: {problem}", "executor_too_large")
    return BundledFile(path, content, bool(mode & stat.S_IXUSR))


def _unreadable(path: str, error: OSError) -> ConfigurationError:
    problem = f"{printable(path)}: it cannot be sent to the cluster ({error.strerror}). Check its permissions"
    return ConfigurationError(problem, "executor_file_unreadable")


@contextmanager
def unpacked(files: Iterable[BundledFile]) -> Iterator[str]:
    """The folder with the copies, each under its whole path, that is there for as long as the context is."""
    with tempfile.TemporaryDirectory(prefix="copies-") as folder:
        root = os.path.realpath(folder)
        for file in files:
            _write(f"{root}{file.path}", file)
        yield root


def _write(place: str, file: BundledFile) -> None:
    os.makedirs(place if file.content is None else os.path.dirname(place), exist_ok=True)
    if file.link is not None:
        if not os.path.lexists(place):
            os.symlink(file.link, place)
    elif file.content is not None:
        with open(place, "wb") as copy:
            copy.write(file.content)
            if file.executable:
                os.fchmod(copy.fileno(), os.fstat(copy.fileno()).st_mode | stat.S_IXUSR)

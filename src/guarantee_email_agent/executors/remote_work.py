"""Work on machines that have none of our files: copies go there; results, and what was written, come back."""

from __future__ import annotations

import io
import os
import pickle
import stat
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from guarantee_email_agent.executors.executor import Executor, Item, LocalPath, Result
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


def map_remotely(
    executor: Executor,
    work: Callable[[Item, Path], Result],
    items: Iterable[Item],
    files_of: Callable[[Item], Iterable[str | Path]],
    shared: Iterable[str | Path] = (),
) -> Generator[tuple[Result, Mapping[str, bytes]], None, None]:
    """As `Executor.map_in_order`: each result, and the files that `work` wrote to the folder it is given, by their
    paths from there.

    files_of: the files and folders that an item needs; shared: those that every item does. There, paths in `work` and
    items lead to the copies, and to nothing else; here, what comes back names the originals. Raises ConfigurationError
    for what cannot be sent.
    """
    remote = _RemoteWork(_dumps(work, _outgoing), bundle(shared))
    sent = (_RemoteItem(_dumps(item, _outgoing), bundle(files_of(item))) for item in items)
    with closing(executor.map_in_order(remote, sent)) as results:
        for result in results:
            yield _loads(result, lambda original: original)


class _RemoteItem(NamedTuple):
    item: bytes
    files: list[BundledFile]


@dataclass(frozen=True, slots=True)
class _RemoteWork:
    work: bytes
    shared: list[BundledFile]

    def __call__(self, item: _RemoteItem) -> bytes:
        with unpacked([*self.shared, *item.files]) as root, TemporaryDirectory(prefix="results-") as folder:
            names: dict[str, str] = {}

            def copy(path: tuple[Callable[[str], object], str, str]) -> object:
                make, name, absolute = path
                names[f"{root}{absolute}"] = name
                return make(f"{root}{absolute}")

            def original(value: object) -> object:
                if isinstance(value, bytes):
                    return value.replace(os.fsencode(root), b"") if os.fsencode(root) in value else None
                text = os.fspath(value) if isinstance(value, PurePath) else value
                if type(text) is not str or root not in text:
                    return None
                text = names.get(text) or text.replace(root, "")
                return Path(text) if isinstance(value, PurePath) else text

            result = _loads(self.work, copy)(_loads(item.item, copy), Path(folder))
            return _dumps((result, _contents(folder)), original)


def _contents(folder: str) -> dict[str, bytes]:
    files = [path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _outgoing(value: object) -> tuple[type, str, str] | None:
    if isinstance(value, PurePath):
        return Path, str(value), os.path.abspath(value)
    return (str, str(value), os.path.abspath(value)) if isinstance(value, LocalPath) else None


def _dumps(value: object, replaced: Callable[[object], object]) -> bytes:
    """replaced: what stands in place of an object; None for itself."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> Any:
            return replaced(value)

    file = io.BytesIO()
    Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def _loads(data: bytes, restored: Callable[[Any], object]) -> Any:
    """restored: what an object was that something stands in place of."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> object:
            return restored(pid)

    return Unpickler(io.BytesIO(data)).load()

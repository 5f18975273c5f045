"""Work on machines that have none of our files: copies go there; results, and what was written, come back."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from guarantee_email_agent.executors.executor import Executor, Item, LocalPath, Result
from guarantee_email_agent.executors.file_bundle import BundledFile, bundle, unpacked


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

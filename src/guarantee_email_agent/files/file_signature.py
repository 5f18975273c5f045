"""Whether files are still what they were, told by their status in place of their content."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

FileSignature = tuple[str, int, int, int, int]
"""path, time of the content (ns), time of the status (ns), size, inode: zeros for a file that is not there."""

SETTLED_NS: Final = 2_000_000_000
"""The coarsest time of a file system (FAT): a second writing within it may leave the signature as it was."""

_Value = TypeVar("_Value")


def file_signature(path: str) -> FileSignature:
    """What is not the same once a file was written, replaced, renamed or given other rights."""
    try:
        status = os.stat(path)
    except OSError:
        return path, 0, 0, 0, 0
    return path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class FileCache(Generic[_Value]):
    """What was made of some files, as long as none of them has another signature.

    Files that changed shortly before they were read have to be read again, as Git does it with its index ("racy git").
    now: the wall clock in ns.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._began = 0
        self._signatures: tuple[FileSignature, ...] = ()
        self._value: _Value | None = None

    def begin(self) -> _Value | None:
        """The value, where it holds still; else a reading begins, which `keep` ends."""
        if self._signatures and all(file_signature(each[0]) == each for each in self._signatures):
            return self._value
        self._signatures, self._began = (), self._now()
        return None

    def keep(self, value: _Value, paths: Iterable[str]) -> _Value:
        """value: what was made of the files and folders at `paths` since the reading began."""
        signatures = tuple(map(file_signature, paths))
        if max(max(each[1:3]) for each in signatures) < self._began - SETTLED_NS:
            self._signatures, self._value = signatures, value
        return value

"""Which runs are still going on: each has its byte of a file locked for as long as its process lives.

A process that is killed loses its locks at once, where a process id could be another program's by then.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final


class RunOwners:
    """The lock file beside one store. The system ties such locks to a process, so that a process has one of these."""

    _by_file: Final[dict[str, RunOwners]] = {}

    def __init__(self, file: str) -> None:
        self._file = file
        self._descriptor: int | None = None
        self._own: set[int] = set()

    @classmethod
    def beside(cls, store: Path) -> RunOwners:
        """Those of a store."""
        file = f"{os.path.realpath(store)}-owners"
        return cls._by_file.setdefault(file, cls(file))

    def claim(self, number: int) -> None:
        """Say that the run of that number is this process's."""
        self._own.add(number)
        self._lock(number)

    def release(self, number: int) -> None:
        """The run is over."""
        self._own.discard(number)
        if self._descriptor is not None:
            import fcntl

            if self._own:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, number)
            else:  # this releases all there are
                os.close(self._descriptor)
                self._descriptor = None

    def is_alive(self, number: int) -> bool:
        """Whether a process has that run; also where the file system knows no locks, so that nobody can tell."""
        if number in self._own:
            return True
        if not self._lock(number):
            return True
        self.release(number)
        return False

    def _lock(self, number: int) -> bool:
        import fcntl  # not every run has a store

        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError:
            return False
        return True

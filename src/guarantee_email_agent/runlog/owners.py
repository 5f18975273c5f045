"""Which runs are still going on: each has its byte of a file locked for as long as its process lives.

A process that is killed loses its locks at once, where a process id could be another program's by then.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

_TRIES: Final = 20
_TRY_S: Final = 0.001


class RunOwners:
    """The lock file beside one store. The system ties such locks to a process, so that a process has one of these."""

    _by_file: Final[dict[str, RunOwners]] = {}

    def __init__(self, file: str) -> None:
        self._file = file
        self._descriptor: int | None = None
        self._own: set[int] = set()
        self._asking = threading.Lock()

    @classmethod
    def beside(cls, store: Path) -> RunOwners:
        """Those of a store."""
        file = f"{os.path.realpath(store)}-owners"
        return cls._by_file.setdefault(file, cls(file))

    def claim(self, number: int) -> None:
        """Say that the run of that number is this process's."""
        with self._asking:
            self._own.add(number)
            for _ in range(_TRIES):
                if self._lock(number):
                    return
                time.sleep(_TRY_S)  # somebody may be asking for it at this moment

    def release(self, number: int) -> None:
        """The run is over."""
        with self._asking:
            self._own.discard(number)
            if self._descriptor is not None:
                import fcntl

                if self._own:
                    fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, number)
                else:  # this releases all there are
                    os.close(self._descriptor)
                    self._descriptor = None

    def is_alive(self, number: int) -> bool:
        """Whether a process has that run; also where the file system knows no locks, so that nobody can tell.

        It only asks: nothing is made, and who else asks at that time is not taken for an owner. Threads may ask.
        """
        import fcntl

        with self._asking:
            if number in self._own:
                return True
            if (descriptor := self._descriptor) is None:
                try:
                    descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
                except FileNotFoundError:
                    return False
                except OSError:
                    return True
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)
            except OSError:
                return True
            finally:
                if descriptor != self._descriptor:  # closing it releases every lock of this process
                    os.close(descriptor)
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

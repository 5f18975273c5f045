"""What Python's `os` lacks for the files of a Maildir. All raise OSError."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_NO_SUCH_CALL: Final = frozenset({errno.EINVAL, errno.ENOSYS})  # of this file system (NFS), or of the kernel


def rename_without_replacing(source: str | Path, target: str | Path) -> None:
    """`os.rename`, but FileExistsError where it would overwrite another mail.

    Not by a hard link, which may be refused for files of other users, and which mail programs see under both names.
    """
    if (call := _renameat2()) is not None:
        number = call(os.fsencode(source), os.fsencode(target))
        if number == 0:
            return
        if number not in _NO_SUCH_CALL:
            raise OSError(number, os.strerror(number), str(source), None, str(target))
    # In two steps, then: nothing but a mark that another agent sets at the same moment could come between them.
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(source), None, str(target))
    os.rename(source, target)


@cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """Linux's call: 0, or the number of its error."""
    import ctypes  # only where mails are renamed: it takes 4 ms

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return None

    def call(source: bytes, target: bytes) -> int:
        failed = function(_AT_FDCWD, source, _AT_FDCWD, target, _RENAME_NOREPLACE)
        return ctypes.get_errno() if failed else 0

    return call


def check_directory_writable(directory: Path) -> None:
    """Raises OSError with the reason why no files can be made in a directory."""
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        read_only = os.statvfs(directory).f_flag & os.ST_RDONLY  # raises FileNotFoundError
        number = errno.EROFS if read_only else errno.EACCES
        raise OSError(number, os.strerror(number), str(directory))


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

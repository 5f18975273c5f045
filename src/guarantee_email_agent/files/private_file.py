"""Files with a secret in them, which nobody but their owner may read: read with care, replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.text_file import InputFileError, decode_text

_MODE: Final = 0o600
_OTHERS: Final = 0o077
_LOCK_POLL_S: Final = 0.05


def read_private_text(path: Path, max_bytes: int, *, follow_links: bool = False) -> str:
    """The text of a file that only its owner may use.

    follow_links: also where a link leads to, as mounted secrets are.
    Raises InputFileError: `document_not_found`, `document_not_private`, and as `read_text` does.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise InputFileError("the file does not exist", "document_not_found") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputFileError("this is a link; name the file itself", "document_not_private") from None
        raise InputFileError(f"the file cannot be read ({error.strerror})", "document_unreadable") from None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InputFileError("this is no file", "document_unreadable")
        if status.st_mode & _OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            raise InputFileError(f"others may use it (mode {mode:04o}). Run chmod 600 on it", "document_not_private")
        try:
            data = file.read(max_bytes + 1)
        except OSError as error:
            raise InputFileError(f"the file cannot be read ({error.strerror})", "document_unreadable") from None
    if len(data) > max_bytes:
        raise InputFileError(f"the file is larger than {max_bytes:,} bytes", "document_too_large")
    return decode_text(data)


def make_private_folder(folder: Path) -> None:
    """Make it, with those above it that are missing, for their owner alone whatever the umask. Raises OSError."""
    missing = [each for each in folder.parents if not each.exists()]
    for each in (*reversed(missing), folder):
        each.mkdir(0o700, exist_ok=True)


class PrivateDraft:
    """What is to replace a file, with room on the disk already. Made by `private_draft`."""

    def __init__(self, path: Path, draft: Path, descriptor: int) -> None:
        self._path, self._draft, self._descriptor = path, draft, descriptor

    def commit(self, text: str) -> None:
        """Put the text in the file's place, so that a power cut leaves the old one or the new one. Raises OSError."""
        data = text.encode()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        os.ftruncate(self._descriptor, len(data))
        os.fsync(self._descriptor)
        os.replace(self._draft, self._path)
        with suppress(OSError):  # some file systems do not let folders be synced
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def private_draft(path: Path, room_bytes: int) -> Iterator[PrivateDraft]:
    """A draft that takes `room_bytes` of the disk, which shows a full one before there is anything to lose.

    For one at a time: under `locked`. Nothing is left of a draft that is not committed. Raises OSError.
    """
    draft = path.with_name(f".{path.name}.draft")
    with suppress(FileNotFoundError):
        draft.unlink()  # of a process that was killed
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        os.fchmod(descriptor, _MODE)
        _give_to_owner(descriptor, path)
        room = memoryview(bytes(room_bytes))
        while room:
            room = room[os.write(descriptor, room) :]
        os.fsync(descriptor)
        yield PrivateDraft(path, draft, descriptor)
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            draft.unlink()


@contextmanager
def locked(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock of a file, which is a file beside it: the file itself is replaced.

    timeout_s: seconds to wait for another process. Raises TimeoutError, and OSError where no lock can be made.
    """
    import fcntl  # few commands lock

    lock = path.with_name(f".{path.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
    try:
        _give_to_owner(descriptor, path)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError("another process keeps it locked") from None
                time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _give_to_owner(descriptor: int, path: Path) -> None:
    """What root makes belongs to the owner of the file that it stands for, or of its folder: root may only check.

    Never what has another name, too: the folder is another user's, who may have linked a file of root's into it.
    """
    if os.geteuid() != 0:
        return
    try:
        owner = path.lstat()
    except FileNotFoundError:
        owner = path.parent.stat()
    made = os.fstat(descriptor)
    if made.st_uid == 0 and owner.st_uid != 0 and stat.S_ISREG(made.st_mode) and made.st_nlink == 1:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)

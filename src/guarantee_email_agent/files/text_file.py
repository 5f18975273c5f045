"""Files as text, and as bytes: read whole, written anew, and whether they are still what they were."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from guarantee_email_agent.utils.errors import AgentError

_OTHER_FORMS: Final = {
    (b"\xff\xfe", b"\xfe\xff"): "UTF-16 text; save it as UTF-8",
    (b"PK\3\4", b"\x1f\x8b"): "packed, as .zip, .gz, .xlsx and .eval are; unpack it, or export it as text",
}
"""What files are that begin so."""
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class InputFileError(AgentError):
    """A file that cannot be read or is no YAML.

    The message says what is wrong and leaves out the file's name, which the caller knows. `details` holds `line` and
    `column` (both from 1) where the problem has a place.
    """

    @property
    def line(self) -> int | None:
        """The line of the problem, from 1, or None where it has none."""
        return self.details.get("line")


def read_text(path: Path | str, max_bytes: int) -> str:
    """The text of a UTF-8 file, without a byte order mark, every line break as `\\n`.

    max_bytes: the largest size that is accepted, in bytes; no more than that is ever read.

    Raises InputFileError for a file that is missing, a folder, a device, unreadable, too large, or not UTF-8.
    """
    return decode_text(read_bytes(path, max_bytes))


def decode_text(data: bytes) -> str:
    """As `read_text`, from the file's content."""
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _not_utf8(data, error) from None
    # Two replacements in vain cost 3 µs a file.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_bytes(path: Path | str, max_bytes: int) -> bytes:
    """As `read_text`, without decoding."""
    try:
        data = read_start(path, max_bytes + 1)
    except FileNotFoundError:
        raise InputFileError("the file does not exist", "document_not_found") from None
    except NoFileError as error:
        raise InputFileError(str(error.strerror), "document_unreadable") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputFileError(f"the file cannot be read ({reason})", "document_unreadable") from None
    if len(data) > max_bytes:
        raise InputFileError(
            f"the file is larger than {max_bytes:,} bytes, the most that is read; make it smaller",
            "document_too_large",
        )
    return data


class NoFileError(OSError):
    """A pipe, which may wait for a writer for ever, a device, which may never end, or a folder."""


def read_start(path: Path | str, most_bytes: int) -> bytes:
    """No more than the first bytes of a file. Raises OSError, and ValueError for a path that nothing can have."""
    descriptor = os.open(path, _OPEN_FLAGS)  # not blocking, for the sake of pipes
    try:
        status = os.fstat(descriptor)
        if (kind := _kind_of_mode(status.st_mode)) is not None:
            raise NoFileError(errno.EINVAL, f"this is {kind}, not a file")
        # One more than it has tells that this is all; a large buffer costs more than the reading.
        data = os.read(descriptor, min(status.st_size + 1, most_bytes))
        if len(data) != status.st_size:  # read in pieces, or of no known size, as /proc has them
            while 0 < len(data) < most_bytes and (more := os.read(descriptor, most_bytes - len(data))):
                data += more
        return data
    finally:
        os.close(descriptor)


def names(folder: Path, ending: str, hidden: str = "._") -> list[str]:
    """Of the files in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(ending) and name[0] not in hidden)
    except OSError:
        return []


def kind_of_file(path: Path | str) -> str | None:
    """What stands at a path, where that is no file: `a folder`, `a link to what does not exist` …

    None for a file, however it was reached, and for nothing at all. Raises OSError, or ValueError for a path that
    nothing can have.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "a link to what does not exist" if os.path.islink(path) else None
    return _kind_of_mode(mode)


def _kind_of_mode(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return None
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> InputFileError:
    for marks, problem in _OTHER_FORMS.items():
        if data.startswith(marks):
            return InputFileError(f"the file is {problem}", "document_not_utf8", {"line": 1, "column": 1})
    before = data[: error.start].decode()
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return InputFileError(
        f"the file is not UTF-8 text (line {line}, column {column}: byte 0x{data[error.start]:02X}); save it as UTF-8",
        "document_not_utf8",
        {"line": line, "column": column},
    )


def write_new_file(path: Path, content: bytes) -> bool:
    """Whether the file was written; False, and nothing happens, where anything stands there, be it a broken link.

    Raises OSError where it cannot be written; then nothing of it stays.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
    except BaseException:  # Ctrl-C, too
        path.unlink(missing_ok=True)
        raise
    return True


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
    They stay open where the system tells of one that is replaced or removed, too, which takes a third of finding it by
    its path each time. now: the wall clock in ns.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._began = 0
        self._signatures: list[FileSignature] = []
        self._open: list[int] = []
        self._changed: list[int] = []
        """When the status of each open file did."""
        self._value: _Value | None = None

    def begin(self) -> _Value | None:
        """The value, where it holds still; else a reading begins, which `keep` ends."""
        if (
            (self._signatures or self._open)
            and [status.st_ctime_ns for status in map(os.fstat, self._open)] == self._changed
            and [file_signature(each[0]) for each in self._signatures] == self._signatures
        ):
            return self._value
        self._close()
        self._signatures, self._changed, self._began = [], [], self._now()
        return None

    def keep(self, value: _Value, paths: Iterable[str]) -> _Value:
        """value: what was made of the files and folders at `paths` since the reading began."""
        signatures = tuple(map(file_signature, paths))
        if max(max(each[1:3]) for each in signatures) < self._began - SETTLED_NS:
            self._signatures, self._value = [each for each in signatures if not self._stays_open(each)], value
        return value

    def _stays_open(self, signature: FileSignature) -> bool:
        """Whether the file can be watched by a descriptor. Another one may come to stand behind a link."""
        path, changed = signature[0], signature[2]
        if os.path.islink(path) or not os.path.isfile(path):
            return False
        try:
            self._open.append(os.open(path, _OPEN_FLAGS))
        except OSError:  # too many are open
            return False
        self._changed.append(changed)
        return True

    def _close(self) -> None:
        while self._open:
            os.close(self._open.pop())

    __del__ = _close

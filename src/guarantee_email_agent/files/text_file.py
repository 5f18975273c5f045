"""Reading a text file that somebody may have edited, with errors that a person can act on."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from guarantee_email_agent.utils.errors import AgentError

_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
)


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
        descriptor = os.open(path, _OPEN_FLAGS)  # not blocking, since a named pipe would wait for a writer for ever
    except FileNotFoundError:
        raise InputFileError("the file does not exist", "document_not_found") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    try:
        status = os.fstat(descriptor)
        if (kind := _kind_of_mode(status.st_mode)) is not None:
            raise InputFileError(f"this is {kind}, not a file", "document_unreadable")
        data = os.read(descriptor, min(status.st_size, max_bytes) + 1)  # a large buffer costs more than the reading
        if len(data) != status.st_size:  # read in pieces, or of no known size, as /proc has them
            while 0 < len(data) <= max_bytes and (more := os.read(descriptor, max_bytes + 1 - len(data))):
                data += more
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise InputFileError(
            f"the file is larger than {max_bytes:,} bytes, the most that is read; make it smaller",
            "document_too_large",
        )
    return data


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


def _unreadable(path: Path | str, error: OSError | ValueError) -> InputFileError:
    if os.path.isdir(path):  # Windows refuses to open a folder at all
        return InputFileError("this is a folder, not a file", "document_unreadable")
    reason = getattr(error, "strerror", None) or str(error)
    return InputFileError(f"the file cannot be read ({reason})", "document_unreadable")


def _not_utf8(data: bytes, error: UnicodeDecodeError) -> InputFileError:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return InputFileError(
            "the file is UTF-16 text; save it as UTF-8", "document_not_utf8", {"line": 1, "column": 1}
        )
    before = data[: error.start].decode()
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return InputFileError(
        f"the file is not UTF-8 text (line {line}, column {column}: byte 0x{data[error.start]:02X}); save it as UTF-8",
        "document_not_utf8",
        {"line": line, "column": column},
    )

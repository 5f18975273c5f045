"""Reading and parsing of YAML 1.2 files, with errors that a person can act on.

`ryaml` parses (it refuses duplicate keys, alias bombs and deep nesting, and keeps dates as text). Where an error wants
a line that `ryaml` does not tell, `files.yaml_positions` finds it.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

import ryaml

from guarantee_email_agent.utils.errors import AgentError

# A file may grow by its aliases to this many characters; ryaml counts repetitions, but not how long each one is.
MAX_EXPANDED_CHARACTERS: Final = 32_000_000

_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
)
_ANCHOR: Final = re.compile(r"(?<![^\s\[{,:-])&[^\s&]")
_ALIAS: Final = re.compile(r"(?<![^\s\[{,:-])\*[^\s*]")
_TAG: Final = re.compile(r"(?<![^\s\[{,])![\w<]")


class InputFileError(AgentError):
    """A file that cannot be read or is no YAML.

    The message says what is wrong and leaves out the file's name, which the caller knows. `details` holds `line` and
    `column` (both from 1) where the problem has a place.
    """

    @property
    def line(self) -> int | None:
        """The line of the problem, from 1, or None where it has none."""
        line = self.details.get("line")
        return line if isinstance(line, int) else None


def read_text(path: Path | str, max_bytes: int) -> str:
    """The text of a UTF-8 file, without a byte order mark, every line break as `\\n`.

    max_bytes: the largest size that is accepted, in bytes; no more than that is ever read.

    Raises InputFileError for a file that is missing, a folder, a device, unreadable, too large, or not UTF-8.
    """
    data = _read_bytes(path, max_bytes)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(data, error) from None
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def load_documents(text: str) -> list[object]:
    """All YAML documents of a text, as plain dicts, lists and scalars; an empty text holds none.

    Dates stay text. Raises InputFileError with line and column for whatever is not YAML, and for what we refuse:
    duplicate keys, tags of an application, merge keys, and aliases that blow up.
    """
    if "&" in text and "*" in text and _ANCHOR.search(text) and _ALIAS.search(text):
        from guarantee_email_agent.files import yaml_errors  # only for the rare file with aliases

        yaml_errors.refuse_huge_expansion(text, MAX_EXPANDED_CHARACTERS)
    try:
        documents: list[object] | None = ryaml.loads_all(text)  # type: ignore[attr-defined]  # its stubs forget to re-export
    except ValueError as error:
        from guarantee_email_agent.files import yaml_errors  # only when something is wrong

        raise yaml_errors.explain(text, error) from None
    if documents is None or documents == [None]:
        return []
    if ("<<" in text or ("!" in text and _TAG.search(text))) and _has_merge_or_tag(documents):
        from guarantee_email_agent.files import yaml_errors  # only when something is wrong

        yaml_errors.refuse_merges_and_tags(text)
    return documents


def locate(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line (from 1) of the key or list item at a path, in the first document that has one. Slow."""
    from guarantee_email_agent.files import yaml_positions  # PyYAML takes 80 ms to import

    node = yaml_positions.find(text, path)
    return None if node is None else node.line


def written(text: str, path: tuple[str | int, ...]) -> str | None:
    """The scalar at a path as its author wrote it (`007`, not 7), without quotes. Slow."""
    from guarantee_email_agent.files import yaml_positions  # PyYAML takes 80 ms to import

    node = yaml_positions.find(text, path)
    return None if node is None else node.scalar


def _has_merge_or_tag(documents: list[object]) -> bool:
    waiting: list[object] = [documents]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "<<" in value or (len(value) == 1 and str(next(iter(value))).startswith("!")):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def _read_bytes(path: Path | str, max_bytes: int) -> bytes:
    try:
        descriptor = os.open(path, _OPEN_FLAGS)  # not blocking, since a named pipe would wait for a writer for ever
    except FileNotFoundError:
        raise InputFileError("the file does not exist", "document_not_found") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise InputFileError("this is a folder, not a file", "document_unreadable")
        if not stat.S_ISREG(mode):
            raise InputFileError("this is a pipe or a device, not a file", "document_unreadable")
        data = os.read(descriptor, max_bytes + 1)
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

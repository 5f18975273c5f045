"""Writes report files: whole or not at all, to a file, a pipe or stdout; what cannot be written shows before a run."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.private_file import make_private_folder
from guarantee_email_agent.files.text_file import kind_of_file
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

Content = bytes | Iterable[bytes]
"""Of a report: as a whole, or piece by piece, as it is made."""
_NEVER_REPORTS: Final = frozenset({".db", ".eml", ".key", ".py", ".sqlite", ".sqlite3", ".toml", ".yaml", ".yml"})
"""What files of ours end in that hold work: run stores and ledgers, mails, judges, scenarios and settings."""
_OF_ROWS: Final = {".csv": b"run_id,", ".jsonl": b'{"run_id"'}
"""What a report of this ending begins with."""
_STDOUT: Final = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


def write_reports(error_code: str, *reports: tuple[Path | None, Callable[[], Content]]) -> None:
    """Write each report whose path is not None.

    Raises ConfigurationError with `error_code` for those that cannot be written, once the others are.
    """
    problems: dict[Path, ConfigurationError] = {}
    for path, encode in reports:
        if path is None:
            continue
        try:
            write_report(path, encode(), error_code)
        except ConfigurationError as error:
            problems[path] = error
    if problems:
        first, *others = problems
        message = problems[first].message
        if others:
            message += f" Nor can {', '.join(printable(str(path)) for path in others)}."
        raise ConfigurationError(message, error_code, {"paths": [str(path) for path in problems]})


def write_json_report(path: Path | None, content: Callable[[], Any], error_code: str) -> None:
    """Write a report as JSON unless path is None. Raises ConfigurationError with `error_code` where it cannot be."""
    if path is not None:
        check_writable(path, error_code)
    write_reports(error_code, (path, lambda: as_json(content())))


def as_json(content: Any) -> bytes:
    """Indented JSON in UTF-8, with a line break at its end; what JSON does not know is written as text."""
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    # Half of a surrogate pair cannot be UTF-8; its escape, \udc80, is just how JSON writes it.
    return f"{text}\n".encode(errors="backslashreplace")


def as_json_with_rows(head: Mapping[str, Any], name: str, rows: Iterable[Any]) -> Iterator[bytes]:
    """What `as_json` has of `head` and one key more, the list of `rows`, row by row: all at once may be too many."""
    yield as_json(head).removesuffix(b"\n}\n") + f",\n {json.dumps(name)}: [".encode()
    is_first = True
    for row in rows:
        # No line break stands within a JSON string.
        indented = as_json(row).removesuffix(b"\n").replace(b"\n", b"\n  ")
        yield (b"\n  " if is_first else b",\n  ") + indented
        is_first = False
    yield b"]\n}\n" if is_first else b"\n ]\n}\n"


def check_report_paths(paths: Mapping[str, Path], error_code: str) -> None:
    """Raise, before a long run, the ConfigurationError that writing the reports would end in after it.

    paths: by the option that named each; no two may be the same file.
    """
    for path in paths.values():
        check_writable(path, error_code)
    for (first, path), (second, other) in combinations(paths.items(), 2):
        if _is_same_file(path, other):
            raise ConfigurationError(f"{first} and {second} name the same file. Name two", "cli_bad_usage")


def is_stdout(path: str | Path) -> bool:
    """Whether a report goes to stdout, by the name that the command line has for it or by one of the system's."""
    return os.fspath(path) in _STDOUT


def check_writable(path: Path, code: str) -> None:
    """Raise, before a long run, the ConfigurationError that writing to `path` would end in after it."""
    if is_stdout(path):
        return
    try:
        folder, kind = path.resolve().parent, kind_of_file(path.resolve())
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link in a loop, up to Python 3.12
        raise _unwritable(path, getattr(error, "strerror", None) or str(error), code) from None
    if not folder.is_dir():
        raise _unwritable(path, "the folder does not exist: make it first", code)
    if kind in ("a folder", "a socket"):
        raise _unwritable(path, f"it is {kind}", code)
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise _unwritable(path, "permission denied", code)
    if kind is None and _holds_work(path.resolve()):
        raise _unwritable(path, "it would take the place of what is no report", code)


def _holds_work(path: Path) -> bool:
    """Whether a file is there that is no report, by its name or by its beginning: instructions, a table, records."""
    suffix, exists = path.suffix.lower(), path.exists()
    if suffix not in (".md", *_OF_ROWS) or not exists:
        return exists and suffix in _NEVER_REPORTS
    with suppress(OSError), path.open("rb") as file:
        wanted = _OF_ROWS.get(suffix, b"---\n")
        start = file.read(len(wanted))
        return start == wanted if suffix == ".md" else start not in (b"", wanted)
    return True  # what cannot be read may be one


def _is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file: by whatever links, and also where there is none yet."""
    if is_stdout(first) or is_stdout(second):
        return is_stdout(first) and is_stdout(second)
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def make_folder(folder: Path, option: str, error_code: str) -> None:
    """Make a folder for records. option: that named it. Raises ConfigurationError with `error_code`."""
    try:
        make_private_folder(folder)
    except OSError as error:
        problem = f"the folder for records cannot be made ({error.strerror}). Name another"
        raise ConfigurationError(f"{option} {printable(str(folder))}: {problem}", error_code) from None


def write_report(path: str | Path, content: Content, code: str) -> None:
    """Writes a report where somebody named it: to stdout, to a device or a pipe that is read, or a file.

    A file is complete or untouched, and a link stays a link. Raises ConfigurationError with `code` where it cannot be
    written.
    """
    try:
        if is_stdout(path):
            _write_to_stdout(content)
        elif kind_of_file(path) in ("a pipe", "a device"):  # which must not be replaced by a file
            _write_to_device(path, content)
        else:
            write_whole(Path(path).resolve(), content)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or str(error), code) from None


def write_whole(path: str | Path, content: Content) -> None:
    """Writes a file atomically, by a new one beside it that takes its place; a link or a folder there stays.

    A new file is for its owner alone, since mails may stand in it; one that was there stays readable for whom it was.
    Raises OSError, or ValueError for a path that no file can have.
    """
    target = Path(path)
    if (kind := what_is_in_the_way(target)) is not None:
        raise OSError(errno.EEXIST, f"there is {kind} in its place")
    draft = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.tmp")
    # Exclusively: in a folder that others write to, somebody may have put a link there.
    with open(draft, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        try:
            with suppress(FileNotFoundError):
                os.chmod(draft, stat.S_IMODE(target.stat().st_mode))
            file.writelines(_pieces(content))
            file.flush()
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def what_is_in_the_way(path: Path) -> str | None:
    """What stands where a file of ours is to be written: a link, a folder, a pipe … None where nothing or a file does.

    Raises OSError, or ValueError for a path that no file can have.
    """
    return "a link" if os.path.islink(path) else kind_of_file(path)


def _pieces(content: Content) -> Iterable[bytes]:
    return (content,) if isinstance(content, bytes) else content


def _write_to_stdout(content: Content) -> None:
    with suppress(BrokenPipeError):  # as for what else is printed there
        sys.stdout.flush()
        sys.stdout.buffer.writelines(_pieces(content))
        sys.stdout.buffer.flush()


def _write_to_device(path: str | Path, content: Content) -> None:
    try:
        # A pipe that nobody reads would wait for a reader for ever.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nobody reads this pipe") from None
        raise
    os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as file:
        file.writelines(_pieces(content))


def _unwritable(path: str | Path, reason: str, code: str) -> ConfigurationError:
    remedy = "Make room" if reason == os.strerror(errno.ENOSPC) else "Name a file in a folder that can be"
    message = f"{printable(str(path))}: the report cannot be written ({reason}). {remedy}."
    return ConfigurationError(message, code, {"path": str(path)})

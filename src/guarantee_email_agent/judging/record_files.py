"""The records of many runs: found in a folder or in a file of JSON lines, and read one at a time.

Of a record that is found, only where it lies is kept: 32 bytes, so that a file may have any number of lines.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.files.text_file import kind_of_file
from guarantee_email_agent.judging.record import (
    LINES_ENDING,
    MAX_RECORD_BYTES,
    RECORD_ENDING,
    Record,
    as_record,
    parse_json,
    read_json,
    record_error,
    with_record_dir,
)
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

Convert = Callable[[object], Record]
"""What makes a record from another program's JSON. Raises TaskError, whose message names the place inside that JSON."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_GZIP_MARK: Final = b"\x1f\x8b"
_JSON_SPACE: Final = b" \t\r\n"
_SKIPPED_BYTES: Final = 1 << 20


class Extent(NamedTuple):
    """A part of a file. number: of the line, from 1; 0 for a whole file. start, length: in bytes."""

    number: int = 0
    start: int = 0
    length: int = 0


class RecordPlace(NamedTuple):
    """Where one record lies."""

    file: RecordFile
    extent: Extent

    @property
    def name(self) -> str:
        """What an error calls the record: its file, with the line where it has one."""
        return self.file.describe(self.extent)

    def read(self) -> Record:
        """Raises TaskError for a record that cannot be used."""
        return with_record_dir(self.file.read(self.extent), self.file.path)


class RecordIndex:
    """Where the records of each task lie. problems: of files that no record could be found in, by what names them."""

    def __init__(self, files: Sequence[RecordFile]) -> None:
        self.problems: dict[str, str] = {}
        self.count = 0
        self._files = files
        self._by_task: dict[str | None, array[int]] = {}
        for position, file in enumerate(files):
            try:
                for task_name, extent in file.scan():
                    self._by_task.setdefault(task_name, array("Q")).extend((position, *extent))
                    self.count += 1
            except TaskError as error:
                self.problems[file.path.name] = error.message

    @property
    def task_names(self) -> Collection[str]:
        """The names that records give their tasks, which may be none that there are."""
        return [name for name in self._by_task if name is not None]

    def count_of(self, task_name: str) -> int:
        return len(self._by_task.get(task_name, ())) // 4

    def places(self, task_name: str | None) -> Iterator[RecordPlace]:
        """The records of a task, in the order in which they were found; None: those that name no task."""
        numbers = self._by_task.get(task_name, array("Q"))
        for at in range(0, len(numbers), 4):
            yield RecordPlace(self._files[numbers[at]], Extent(*numbers[at + 1 : at + 4]))


@dataclass(frozen=True, slots=True)
class SingleRecordFile:
    """`<task_name>.json`."""

    path: Path
    task_name: str
    convert: Convert | None = None

    def scan(self) -> Iterator[tuple[str | None, Extent]]:
        """Where each record lies, and the name of its task; None where it has none. Raises TaskError for the file."""
        yield self.task_name, Extent()

    def read(self, extent: Extent) -> Record:
        """Raises TaskError for a record that cannot be used."""
        return converted(read_json(self.path), self.convert, self.describe(extent))

    def describe(self, extent: Extent) -> str:  # noqa: ARG002 - there is one record
        """What an error calls the record."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class JsonLinesFile:
    """A record on each line, with the `task_name` in it; lines without anything are passed over.

    task_name: of a line that says none.
    """

    path: Path
    task_name: str | None = None
    convert: Convert | None = None

    def scan(self) -> Iterator[tuple[str | None, Extent]]:
        check_regular_file(self.path)
        try:
            with open(self.path, "rb") as file:
                number, start = 0, 0
                while line := file.readline(MAX_RECORD_BYTES + 1):
                    number += 1
                    length = len(line)
                    content = line.removeprefix(_BYTE_ORDER_MARK if number == 1 else b"").strip(_JSON_SPACE)
                    if length > MAX_RECORD_BYTES and not line.endswith(b"\n"):
                        while (rest := file.readline(_SKIPPED_BYTES)) and not rest.endswith(b"\n"):
                            length += len(rest)
                        length += len(rest)
                    if content:
                        yield self._task_named_in(content), Extent(number, start, length)
                    start += length
        except OSError as error:
            problem = f"the file cannot be read ({error.strerror})"
            raise record_error(str(self.path), problem, "task_record_unreadable") from None

    def read(self, extent: Extent) -> Record:
        name = self.describe(extent)
        data = read_extent(self.path, extent, name).removeprefix(_BYTE_ORDER_MARK if extent.number == 1 else b"")
        try:
            text = data.decode().strip()
        except UnicodeDecodeError as error:
            problem = f"this is not UTF-8 text (byte {error.start + 1} of the line). Save the file as UTF-8"
            if data.startswith(_GZIP_MARK):
                problem = "the file is compressed (gzip). Unpack it first"
            raise record_error(name, problem, "task_record_not_utf8") from None
        if "\0" in text:
            problem = "this holds zero bytes, as UTF-16 text does. Save the file as UTF-8"
            raise record_error(name, problem, "task_record_not_utf8")
        try:
            parsed = parse_json(text, name, is_line=True)
        except TaskError as error:
            if data.endswith(b"\n"):
                raise
            problem = f"{error.message}. The file ends here, without a line break: was it cut off?"
            raise TaskError(problem, error.code, error.details) from None
        record = converted(parsed, self.convert, name)
        stated = parsed.get("task_name") if isinstance(parsed, dict) else None
        if stated is not None and not isinstance(stated, str):
            problem = f"task_name is {json.dumps(stated)[:40]}, not text. Write the name of the record's task"
            raise record_error(name, problem, "task_record_invalid")
        if not (stated or self.task_name):
            problem = "the record has no task_name. Add it: the name of its task's folder"
            raise record_error(name, problem, "task_record_invalid")
        return record

    def describe(self, extent: Extent) -> str:
        return f"{self.path}:{extent.number}"

    def _task_named_in(self, line: bytes) -> str | None:
        """None for a line that no record can be read from, whose error comes when it is judged."""
        if len(line) > MAX_RECORD_BYTES:
            return None
        try:
            record = json.loads(line.decode())
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        stated = record.get("task_name")
        return self.task_name if stated is None else stated if isinstance(stated, str) and stated else None


RecordFile = SingleRecordFile | JsonLinesFile


def find_records(place: Path, task_names: Collection[str], convert: Convert | None = None) -> RecordIndex:
    """The records in a folder, or in one file of JSON lines.

    In a folder: each `<task>.json`, then the lines of every `.jsonl`. Names that begin with '.' or '_' are left out.
    Raises TaskError where nothing can be looked for (`task_results_not_found`).
    """
    if place.suffix == LINES_ENDING and not place.is_dir():
        if not os.path.lexists(place):
            raise _not_found(place, "does not exist. Correct the path")
        return RecordIndex([_lines_file(place, task_names, convert)])
    names = list_records_folder(place, (RECORD_ENDING, LINES_ENDING))
    single = [name for name in names if name.endswith(RECORD_ENDING)]
    files: list[RecordFile] = [
        SingleRecordFile(place / name, name.removesuffix(RECORD_ENDING), convert) for name in single
    ]
    files += [_lines_file(place / name, task_names, convert) for name in names if name.endswith(LINES_ENDING)]
    return RecordIndex(files)


def list_records_folder(folder: Path, endings: tuple[str, ...]) -> list[str]:
    """The names of the files in a folder that may hold records, sorted. Raises TaskError(`task_results_not_found`)."""
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        remedy = "Name a folder or a .jsonl file; a single record goes to --result"
        raise _not_found(folder, f"is neither a folder nor a file of JSON lines. {remedy}") from None
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        problem = f"the folder of records {reason}. Name the one that has a <task_name>.json for each task"
        raise _not_found(folder, problem) from None
    return sorted((name for name in names if name[0] not in "._" and name.endswith(endings)), key=os.fsencode)


def converted(data: object, convert: Convert | None, name: str) -> Record:
    """The record in JSON of ours or, with `convert`, of another program. name: what an error calls it."""
    if convert is None:
        return as_record(data, name)
    try:
        return convert(data)
    except TaskError as error:
        raise record_error(name, error.message, error.code) from None


def check_regular_file(path: Path) -> None:
    """Raise TaskError for a pipe, which could be read only once, a device or a folder."""
    try:
        kind = kind_of_file(path)
    except OSError as error:
        raise record_error(str(path), f"cannot be read ({error.strerror})", "task_record_unreadable") from None
    if kind is not None:
        problem = f"this is {kind}, not a file. Write the records to a file first"
        raise record_error(str(path), problem, "task_record_unreadable")


def read_extent(path: Path, extent: Extent, name: str) -> bytes:
    """The bytes of one record. Raises TaskError where they are too many, or not there any more."""
    if extent.length > MAX_RECORD_BYTES:
        problem = f"the record has {extent.length:,} bytes, and {MAX_RECORD_BYTES:,} are the most. Make it smaller"
        raise record_error(name, problem, "task_record_too_large")
    check_regular_file(path)
    try:
        with open(path, "rb") as file:
            file.seek(extent.start)
            data = file.read(extent.length)
    except OSError as error:
        raise record_error(name, f"the file cannot be read ({error.strerror})", "task_record_unreadable") from None
    if len(data) < extent.length:
        raise record_error(name, "the file was cut while it was judged. Grade it again", "task_record_unreadable")
    return data


def no_such_task(task_name: str, place: RecordPlace, tasks: Mapping[str, object]) -> str:
    """Why a record cannot be judged, in one line."""
    near = suggestion(task_name, tasks)
    remedy = "" if near else ". Name the record after its task, or remove it"
    return f"there is no task for the record {printable(place.name)}{near}{remedy}"


def _lines_file(path: Path, task_names: Collection[str], convert: Convert | None) -> JsonLinesFile:
    stem = path.name.removesuffix(LINES_ENDING)
    return JsonLinesFile(path, stem if stem in task_names else None, convert)


def _not_found(path: Path, problem: str) -> TaskError:
    return record_error(str(path), problem, "task_results_not_found")

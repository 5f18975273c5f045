"""The records of many runs: found in a folder or in a file of JSON lines, and read one at a time.

Of a record that is found, only where it lies is kept: 32 bytes, so that a file may have any number of lines.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.files.text_file import kind_of_file
from guarantee_email_agent.judging.otel_transcript import (
    Span,
    record_from_otel,
    record_of_spans,
    spans_of,
    traces_in,
)
from guarantee_email_agent.judging.record import (
    LINES_ENDING,
    MAX_RECORD_BYTES,
    RECORD_ENDING,
    Record,
    as_record,
    is_record_name,
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
_Made = TypeVar("_Made")


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
        return ((self._task_named_in(content), extent) for extent, content in _lines(self.path))

    def read(self, extent: Extent) -> Record:
        name = self.describe(extent)
        data = read_extent(self.path, extent, name)
        try:
            parsed = parse_line(data, name, is_first=extent.number == 1)
        except TaskError as error:
            if data.endswith(b"\n"):
                raise
            problem = f"{error.message}. The file ends here, without a line break: was it cut off?"
            raise TaskError(problem, error.code) from None
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


@dataclass(frozen=True, slots=True)
class SpanFile:
    """Traces as exporters write them: an export on each line, or a single one. Each trace of an agent is a record.

    task_name: of a trace that names none. traces: by the numbers that `scan` gives them, their ids and tasks.
    """

    path: Path
    task_name: str | None = None
    traces: dict[int, tuple[str, str | None]] = field(default_factory=dict)

    def scan(self) -> Iterator[tuple[str | None, Extent]]:
        """After the last trace it raises TaskError for lines that cannot be read, or where there is no trace."""
        found: dict[str, tuple[int, int]] = {}
        names: dict[str, str] = {}
        of_agents: dict[str, None] = {}
        problems: list[TaskError] = []
        for extent, read in self._exports():
            try:
                for trace, name, is_told in read(lambda export: list(traces_in(export))):
                    found[trace] = found.get(trace, (extent.start, 0))[0], extent.start + extent.length
                    names |= {} if name is None else {trace: name if names.get(trace, name) == name else ""}
                    of_agents |= {trace: None} if is_told else {}
            except TaskError as error:
                problems.append(error)
        for number, trace in enumerate(of_agents, 1):
            task_name = names.get(trace, self.task_name) or None
            self.traces[number] = trace, task_name
            start, end = found[trace]
            yield task_name, Extent(number, start, end - start)
        if problems:
            more = f" (and {len(problems) - 1} more like this)" if len(problems) > 1 else ""
            raise TaskError(problems[0].message + more, problems[0].code)
        if not of_agents:
            problem = "no span of it tells of an agent: none has gen_ai.*, openinference.* or traceloop.* attributes"
            raise record_error(str(self.path), problem, "task_transcript_invalid")

    def read(self, extent: Extent) -> Record:
        """Raises TaskError for a record that cannot be used."""
        stated = extent
        if extent.number not in self.traces:
            found: list[Extent] = []
            try:
                found.extend(each for _, each in self.scan())
            except TaskError:
                if extent.number not in self.traces:
                    raise
            if not extent.number and len(found) > 1:
                problem = f"there are {len(found)} traces of agents. Name the file with --results"
                raise record_error(str(self.path), problem, "task_transcript_invalid")
            extent = extent if extent.number else found[0]
        (trace, task_name), name, size, spans = self.traces[extent.number], self.describe(extent), 0, list[Span]()
        if stated.number and task_name is None:
            problem = "it names no task, or several. Give its resource or a span the attribute task_name"
            raise record_error(name, problem, "task_record_invalid")
        for part, read in self._exports(extent, trace):
            of_trace = read(partial(spans_of, trace=trace))
            size += part.length if of_trace else 0
            if size > MAX_RECORD_BYTES:
                problem = f"the exports with its spans have over {MAX_RECORD_BYTES:,} bytes, the most. Make it smaller"
                raise record_error(name, problem, "task_record_too_large")
            spans += of_trace
        return _named(record_of_spans, spans, name)

    def describe(self, extent: Extent) -> str:
        return f"{self.path}, trace {extent.number}" if extent.number else str(self.path)

    def _exports(self, within: Extent | None = None, trace: str = "") -> Iterator[tuple[Extent, Callable[..., Any]]]:
        """Where each export lies, and what reads it by a function. within: what is looked at. trace: that is wanted."""
        wanted = trace.encode() if trace.isalnum() else b""  # JSON may escape another one
        for extent, content in _lines(self.path, *((within.start, within.length) if within else ())):
            if extent.start == 0 and not content.endswith(b"}"):  # one export, over several lines
                yield Extent(0, 0, self.path.stat().st_size), partial(_read_whole, str(self.path))
                return
            if wanted in content:
                name = f"{self.path}:{extent.number}" if within is None else self.describe(within)
                yield extent, partial(_read_export, content, extent, name)


def _read_whole(name: str, convert: Callable[[object], _Made]) -> _Made:
    return _named(convert, read_json(name), name)


def _read_export(content: bytes, extent: Extent, name: str, convert: Callable[[object], _Made]) -> _Made:
    check_size(extent, name)
    return _named(convert, parse_line(content, name), name)


RecordFile = SingleRecordFile | JsonLinesFile | SpanFile


def find_records(place: Path, task_names: Collection[str], convert: Convert | None = None) -> RecordIndex:
    """The records in a folder, or in one file of JSON lines.

    In a folder: each `<task>.json`, then the lines of every `.jsonl`. Names that begin with '.' or '_' are left out.
    Raises TaskError where nothing can be looked for (`task_results_not_found`).
    """
    if place.suffix == LINES_ENDING and not place.is_dir():
        if not os.path.lexists(place):
            raise _not_found(place, "does not exist. Correct the path")
        return RecordIndex([_lines_file(place, task_names, convert)])
    names = list_records_folder(place)
    singles = [name for name in names if name.endswith(RECORD_ENDING)]
    files = [record_file(place / name, name.removesuffix(RECORD_ENDING), convert) for name in singles]
    files += [_lines_file(place / name, task_names, convert) for name in names if name.endswith(LINES_ENDING)]
    return RecordIndex(files)


def record_file(path: Path, task_name: str | None, convert: Convert | None, *, has_lines: bool = False) -> RecordFile:
    """A file of what `convert` makes records of. task_name: of what names none."""
    if convert is record_from_otel:
        return SpanFile(path, task_name)
    return JsonLinesFile(path, task_name, convert) if has_lines else SingleRecordFile(path, task_name or "", convert)


def list_records_folder(folder: Path) -> list[str]:
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
    return sorted(filter(is_record_name, names), key=os.fsencode)


def converted(data: object, convert: Convert | None, name: str) -> Record:
    """The record in JSON of ours or, with `convert`, of another program. name: what an error calls it."""
    return as_record(data, name) if convert is None else _named(convert, data, name)


def _named(convert: Callable[[Any], _Made], data: object, name: str) -> _Made:
    """What is made of the data; `name` stands before its error."""
    try:
        return convert(data)
    except TaskError as error:
        raise record_error(name, error.message, error.code) from None
    except RecursionError:
        raise record_error(name, "nested too deep for a record; flatten it", "task_record_invalid") from None


def parse_line(data: bytes, name: str, *, is_first: bool = False) -> object:
    """The JSON on a line. Raises TaskError. is_first: a mark of the byte order may stand before it."""
    try:
        text = data.removeprefix(_BYTE_ORDER_MARK if is_first else b"").decode().strip()
    except UnicodeDecodeError as error:
        problem = f"this is not UTF-8 text (byte {error.start + 1} of the line). Save the file as UTF-8"
        if data.startswith(_GZIP_MARK):
            problem = "the file is compressed (gzip). Unpack it first"
        raise record_error(name, problem, "task_record_not_utf8") from None
    if "\0" in text:
        problem = "this holds zero bytes, as UTF-16 text does. Save the file as UTF-8"
        raise record_error(name, problem, "task_record_not_utf8")
    return parse_json(text, name, is_line=True)


def check_regular_file(path: Path) -> None:
    """Raise TaskError for a pipe, which could be read only once, a device or a folder."""
    try:
        kind = kind_of_file(path)
    except OSError as error:
        raise record_error(str(path), f"cannot be read ({error.strerror})", "task_record_unreadable") from None
    if kind is not None:
        problem = f"this is {kind}, not a file. Write the records to a file first"
        raise record_error(str(path), problem, "task_record_unreadable")


def check_size(extent: Extent, name: str) -> None:
    """Raise TaskError for more bytes than a record may have."""
    if extent.length > MAX_RECORD_BYTES:
        problem = f"the record has {extent.length:,} bytes, and {MAX_RECORD_BYTES:,} are the most. Make it smaller"
        raise record_error(name, problem, "task_record_too_large")


def read_extent(path: Path, extent: Extent, name: str) -> bytes:
    """The bytes of one record. Raises TaskError where they are too many, or not there any more."""
    check_size(extent, name)
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


def _lines(path: Path, start: int = 0, most: int | None = None) -> Iterator[tuple[Extent, bytes]]:
    """Each line that holds something, stripped; of one with more bytes than a record may have the beginning.

    start, most: where to begin, and how many bytes are looked at.
    """
    check_regular_file(path)
    try:
        with open(path, "rb") as file:
            number, end = 0, None if most is None else start + most
            file.seek(start)
            while (end is None or start < end) and (line := file.readline(MAX_RECORD_BYTES + 1)):
                number += 1
                length = len(line)
                content = line.removeprefix(_BYTE_ORDER_MARK if start == 0 else b"").strip(_JSON_SPACE)
                if length > MAX_RECORD_BYTES and not line.endswith(b"\n"):
                    while (rest := file.readline(_SKIPPED_BYTES)) and not rest.endswith(b"\n"):
                        length += len(rest)
                    length += len(rest)
                if content:
                    yield Extent(number, start, length), content
                start += length
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror})"
        raise record_error(str(path), problem, "task_record_unreadable") from None


def _lines_file(path: Path, task_names: Collection[str], convert: Convert | None) -> RecordFile:
    stem = path.name.removesuffix(LINES_ENDING)
    return record_file(path, stem if stem in task_names else None, convert, has_lines=True)


def _not_found(path: Path, problem: str) -> TaskError:
    return record_error(str(path), problem, "task_results_not_found")

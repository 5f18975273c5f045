"""The records of the samples in the logs of Inspect (https://inspect.aisi.org.uk): `.json`, and `.eval`, a zip file."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.judging.openai_transcript import ROLES
from guarantee_email_agent.judging.record import MAX_RECORD_BYTES, Record, cut_off_by, parse_json, record_error
from guarantee_email_agent.judging.record_files import (
    Extent,
    RecordFile,
    RecordIndex,
    RecordPlace,
    check_regular_file,
    converted,
    list_records_folder,
)
from guarantee_email_agent.judging.transcript import (
    Message,
    call_of,
    list_at,
    mapping_at,
    plain,
    record_of_messages,
    text_of,
    transcript_error,
)
from guarantee_email_agent.utils.errors import TaskError

ARCHIVE_ENDING: Final = ".eval"
_LOG_ENDINGS: Final = (".json", ARCHIVE_ENDING)
_ATTACHMENT: Final = "attachment://"
_CONVERT: Final = "inspect log convert --to json --output-dir DIR LOG"


def record_from_inspect(sample: object) -> Record:
    """The record of one sample of an Inspect log: the object, or its JSON.

    Its answer is the output's completion where the run was not cut off before it; a sample that ended in an error is
    `failed`, and `reason` says why. Raises TaskError(code="task_transcript_invalid").
    """
    fields = mapping_at(sample, "the sample")
    if "messages" not in fields:
        raise transcript_error("the sample has no 'messages'. Pass a sample of the log, with its messages")
    attachments = fields.get("attachments")
    kept = attachments if isinstance(attachments, Mapping) else {}
    messages = [
        _read_message(mapping_at(entry, f"message {number}"), f"message {number}", kept)
        for number, entry in enumerate(list_at(fields["messages"], "'messages'"), 1)
    ]
    output = plain(fields.get("output"))
    completion, choices = (
        (output.get("completion"), output.get("choices")) if isinstance(output, Mapping) else (None,) * 2
    )
    record = record_of_messages(messages, cut_off_by(*list_at(choices, "'choices'")[:1]))
    is_cut_off = "reason" in record or messages[-1].role == "tool" or bool(messages[-1].calls)
    if isinstance(completion, str) and completion.strip() and not is_cut_off:
        record |= {"task_result": completion, "status": "success"}
    for key, name in (("error", "message"), ("limit", "type")):
        problem = plain(fields.get(key))
        if problem is not None:
            said = problem.get(name) if isinstance(problem, Mapping) else problem
            record["reason"] = {"code": f"inspect_{key}", "message": str(said)}
            record["status"] = "failed" if key == "error" or is_cut_off else record["status"]
            break
    return record


def find_inspect_samples(place: Path) -> RecordIndex:
    """The samples of a log, or of all logs in a folder; the task of each is called as its id.

    Raises TaskError(`task_results_not_found`) where there is no such place.
    """
    if os.path.lexists(place) and not place.is_dir():
        if place.suffix not in _LOG_ENDINGS:
            problem = "this is no log of Inspect. Name one (.json, .eval), or a folder of them"
            raise record_error(str(place), problem, "task_results_not_found")
        return RecordIndex([inspect_log(place)])
    return RecordIndex([inspect_log(place / name) for name in list_records_folder(place, _LOG_ENDINGS)])


def single_sample(path: Path) -> RecordPlace:
    """Where the one sample in a log lies. Raises TaskError where it has none, or several."""
    index = RecordIndex([inspect_log(path)])
    for problem in index.problems.values():
        raise TaskError(problem, "task_transcript_invalid")
    if index.count != 1:
        problem = f"the log has {index.count} samples. Grade them with --results, against a folder of tasks"
        raise record_error(str(path), problem, "task_transcript_invalid")
    [place] = (place for name in index.task_names for place in index.places(name))
    return place


def inspect_log(path: Path) -> RecordFile:
    return ArchivedLog(path) if path.suffix == ARCHIVE_ENDING else JsonLog(path)


_REMEDY: Final = "Pass the .json or .eval file that Inspect wrote, unpacked"


@dataclass(frozen=True, slots=True)
class JsonLog:
    """A log as one JSON object, with its samples under `samples`."""

    path: Path
    _samples: list[object] = field(default_factory=list)

    def scan(self) -> Iterator[tuple[str | None, Extent]]:
        check_regular_file(self.path)
        try:
            content = read_start(self.path, MAX_RECORD_BYTES + 1)
        except OSError as error:
            problem = f"the file cannot be read ({error.strerror})"
            raise record_error(str(self.path), problem, "task_record_unreadable") from None
        if len(content) > MAX_RECORD_BYTES:
            problem = f"the log is larger than {MAX_RECORD_BYTES:,} bytes. Have Inspect write it as .eval"
            raise record_error(str(self.path), problem, "task_record_too_large")
        try:
            self._samples[:] = json.loads(content.decode("utf-8-sig"))["samples"]
        except (ValueError, RecursionError, TypeError, LookupError):
            problem = f"this is no whole log of Inspect. {_REMEDY}"
            raise record_error(str(self.path), problem, "task_transcript_invalid") from None
        for number, sample in enumerate(self._samples, 1):
            sample_id = sample.get("id") if isinstance(sample, dict) else None
            is_named = isinstance(sample_id, int | str) and sample_id != ""
            yield str(sample_id) if is_named else None, Extent(number)

    def read(self, extent: Extent) -> Record:
        return converted(self._samples[extent.number - 1], record_from_inspect, self.describe(extent))

    def describe(self, extent: Extent) -> str:
        return f"{self.path}, sample {extent.number}"


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """A log as a zip file with a file for each sample, `samples/<id>_epoch_<number>.json`."""

    path: Path
    _archives: list[zipfile.ZipFile] = field(default_factory=list)
    _members: list[zipfile.ZipInfo] = field(default_factory=list)

    def scan(self) -> Iterator[tuple[str | None, Extent]]:
        check_regular_file(self.path)
        zip_files = _zip_module()
        try:
            archive = zip_files.ZipFile(self.path)
        except (OSError, zip_files.BadZipFile, ValueError, NotImplementedError) as error:
            problem = (
                f"this is no whole log of Inspect ({error}). A run that goes on writes to it until it ends. {_REMEDY}"
            )
            raise record_error(str(self.path), problem, "task_transcript_invalid") from None
        self._archives[:] = [archive]
        for name, member in {member.filename: member for member in archive.infolist()}.items():
            sample_id, mark, _ = name.removeprefix("samples/").removesuffix(".json").rpartition("_epoch_")
            if name.startswith("samples/") and mark:
                self._members.append(member)
                yield sample_id or None, Extent(len(self._members))

    def read(self, extent: Extent) -> Record:
        name, member = self.describe(extent), self._members[extent.number - 1]
        if member.compress_size > MAX_RECORD_BYTES or member.file_size > MAX_RECORD_BYTES:
            problem = f"the sample has more than {MAX_RECORD_BYTES:,} bytes, the most that is read"
            raise record_error(name, problem, "task_record_too_large")
        try:
            with self._archives[0].open(member) as file:
                text = file.read(MAX_RECORD_BYTES + 1).decode()
        except UnicodeDecodeError as error:
            raise record_error(name, f"this is not UTF-8 text (byte {error.start})", "task_record_not_utf8") from None
        except NotImplementedError as error:
            problem = f"cannot be decompressed ({error}). Install the extra 'inspect', or convert the log: {_CONVERT}"
            raise record_error(name, problem, "task_record_unreadable") from None
        except Exception as error:  # noqa: BLE001 - each method has errors of its own
            raise record_error(name, f"the sample is damaged ({error})", "task_record_unreadable") from None
        return converted(parse_json(text, name), record_from_inspect, name)

    def describe(self, extent: Extent) -> str:
        return f"{self.path}, {self._members[extent.number - 1].filename}"


def _zip_module() -> Any:
    """With the extra `inspect`, one that reads Zstandard, as the standard library does from Python 3.14 on."""
    try:
        from backports.zstd import zipfile as with_zstandard
    except ImportError:
        return zipfile
    return with_zstandard


def _read_message(entry: Mapping[str, Any], where: str, attachments: Mapping[str, Any]) -> Message:
    role = entry.get("role")
    if not isinstance(role, str) or role not in ROLES:
        found = "no role" if role is None else f"the role {str(role)[:60]!r}"
        raise transcript_error(f"{where} has {found}. A message has one of {', '.join(ROLES)}")
    calls = []
    for value in list_at(entry.get("tool_calls"), f"'tool_calls' of {where}"):
        call = mapping_at(value, f"a tool call of {where}")
        calls.append(call_of(call.get("function"), call.get("arguments"), call.get("id"), where))
    text = text_of(entry.get("content"), where)
    if text.startswith(_ATTACHMENT):
        kept = attachments.get(text.removeprefix(_ATTACHMENT))
        text = kept if isinstance(kept, str) else text
    error = plain(entry.get("error"))
    message = Message(ROLES[role], text, tuple(calls), is_error=error is not None)
    if message.role != "tool":
        return message
    answered = entry.get("tool_call_id")
    said = error.get("message") if isinstance(error, Mapping) else None
    return replace(message, text=text or str(said or ""), answered_id=answered if isinstance(answered, str) else None)

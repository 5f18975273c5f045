"""The record of a run: completed for a judge, read and written; and records that no judge may pass."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.report_files import as_json, is_stdout, what_is_in_the_way, write_whole
from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.judging.task import TASK_FILE, TEST_FILE, Task
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError
from guarantee_email_agent.utils.text import printable, truncate

Record = dict[str, Any]
"""The record of a run, as `complete_record` makes it: all keys that a judge may rely on."""

RECORD_DIR: Final = "record_dir"
"""Where a judge finds the folder that the record lies in, with the files beside it that it names."""

CORRECT_RECORDS: Final = "_records/correct"
"""Where, beside task directories, a record of each lies that its judge has to pass."""

MAX_RECORD_BYTES: Final = 100_000_000
RECORD_ENDING: Final = ".json"
LINES_ENDING: Final = ".jsonl"
"""Of a file with a record on each line (https://jsonlines.org)."""

_MISPLACED: Final = {
    "messages": "Read a transcript with --from openai or langchain, in Python with record_from_langchain",
    "taskresult": "Call it 'task_result'",
}
_ENDING_KEYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason")
# As Anthropic, OpenAI, Google, Bedrock, Mistral, DeepSeek, Ollama, vLLM and Inspect name them, in small letters.
_CUT_OFF: Final = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"),
        *("content_filter", "content_filtered", "guardrail_intervened", "refusal", "safety", "recitation", "blocklist"),
        *("prohibited_content", "spii", "malformed_function_call", "pause_turn", "error", "failed", "cancelled"),
        *("in_progress", "queued", "abort", "insufficient_system_resource", "unexpected_tool_call", "other"),
    }
)


def complete_record(raw: Mapping[str, Any], task: Task) -> Record:
    """A record with every key that a judge may rely on; `raw` is not changed.

    A key that is missing or null gets its neutral default: empty text, an empty list, an empty mapping, 0. `status` is
    `success` where there is an answer or a conversation that no provider cut off, else `failed`; half a one is
    none. `task_name` and `instruction` come from the task. Any other value stays as it is, whatever its type. Further
    keys of `raw` are kept, except for `eval`, the verdict of an earlier judge. The further keys of `task.yaml` ride
    along, and no key of `raw` can stand in for them.
    """
    why = why_cut_off(raw)
    answered = not why and (raw.get("task_result") is not None or bool(raw.get("conversation")))
    neutral: Record = {
        "task_name": task.name,
        "instruction": task.instruction,
        "status": "success" if answered else "failed",
        "iterations": 0,
        "task_result": "",
        "conversation": [],
        "execution_trace": [],
        "sandbox": {},
        **cut_off_reason(why),
    }
    own = [(key, value) for key, value in task.settings.items() if key not in neutral]
    given = [
        (key, value)
        for key, value in raw.items()
        if not ((value is None and key in neutral) or (why and key == "task_result"))
    ]
    record = neutral | dict(given) | dict(own)
    record.pop("eval", None)
    return record


def why_cut_off(raw: Mapping[str, Any]) -> str:
    """Why a provider ended the answer of a record before its end; empty for one with a status of its own."""
    conversation = raw.get("conversation")
    last = conversation[-1] if isinstance(conversation, list) and conversation else None
    return cut_off_by(raw, last, keys=_ENDING_KEYS) if raw.get("status") is None else ""


def cut_off_reason(why: str) -> dict[str, Any]:
    """What a record says of an answer that was cut off. why: as `cut_off_by` has it."""
    return {"reason": {"code": "cut_off", "message": f"the model's answer was cut off: {why}"}} if why else {}


def cut_off_by(*endings: object, keys: Sequence[str] = (*_ENDING_KEYS, "status")) -> str:
    """Why a provider ended an answer before its end, in its own words; empty where none of `endings` says so."""
    for fields in endings:
        if not isinstance(fields, Mapping):
            continue
        for key in keys:
            if isinstance(ending := fields.get(key), str) and ending.rpartition(".")[2].lower() in _CUT_OFF:
                details = (fields.get(name) for name in ("incomplete_details", "error"))
                said = (one.get("reason") or one.get("message") for one in details if isinstance(one, Mapping))
                return next((f"{ending} ({why})" for why in said if isinstance(why, str)), ending)
        if _is_refusal(fields):
            return "refusal"
    return ""


def _is_refusal(message: Mapping[str, Any]) -> bool:
    """Whether the message is one of OpenAI's in which the model declines: that text is no answer."""
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    said = (message.get("refusal"), *(part.get("refusal") for part in parts if isinstance(part, Mapping)))
    return any(isinstance(text, str) and text.strip() for text in said)


def read_record(path: str | Path) -> Record:
    """The record in a JSON file of at most 100 MB.

    Raises TaskError with one line: `task_record_not_found`, `task_record_unreadable`, `task_record_not_utf8`,
    `task_record_too_large`, `task_record_invalid`.
    """
    return as_record(read_json(path), str(path))


def read_json(path: str | Path) -> object:
    """The JSON in a file of at most 100 MB. Raises TaskError as `read_record` does."""
    try:
        text = read_text(path, MAX_RECORD_BYTES)
    except InputFileError as error:
        code = f"task_record_{error.code.removeprefix('document_')}"
        remedy = ". Correct the path" if error.code == "document_not_found" else ""
        raise record_error(str(path), error.message + remedy, code) from None
    return parse_json(text, str(path))


def parse_json(text: str, name: str, *, is_line: bool = False) -> object:
    """The JSON in a text. is_line: `name` has the number of the line that the text is.

    Raises TaskError(code="task_record_invalid").
    """
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except _DuplicateKeyError as error:
        problem = f"has the key {truncate(json.dumps(error.key), 80)} twice in one object. Remove one of them"
        raise record_error(name, problem, "task_record_invalid") from None
    except json.JSONDecodeError as error:
        remedy = "A record is a JSON object" if text.strip() else 'The text is empty; write at least {"task_result": …}'
        column = f"column {error.colno}"
        place = column if is_line else f"line {error.lineno}, {column}"
        problem = f"no JSON ({place}): {error.msg}. {remedy}{' on one line' * is_line}"
        raise record_error(name, problem, "task_record_invalid") from None
    except RecursionError:
        raise record_error(name, "nested too deep for a record; flatten it", "task_record_invalid") from None
    except ValueError as error:  # an integer of thousands of digits
        raise record_error(name, f"holds a number that is too long ({error})", "task_record_invalid") from None


def as_record(data: object, name: str) -> Record:
    """Raises TaskError(code="task_record_invalid") where the JSON is no record. name: what the error calls it."""
    if not isinstance(data, dict):
        problem = f'a record is a JSON object such as {{"task_result": …}}, not {_kind(data)}'
        raise record_error(name, problem, "task_record_invalid")
    _check_keys(data, name)
    return data


def _check_keys(data: Mapping[str, Any], name: str) -> None:
    """That an answer does not stand where no judge looks: it would be judged as none."""
    for key in () if data.keys() & {"task_result", "conversation", "execution_trace"} else data:
        if remedy := _MISPLACED.get("".join(filter(str.isalpha, key)).lower()):
            problem = f"the record has {key!r} and no task_result. {remedy}"
            raise record_error(name, problem, "task_record_invalid")


def with_record_dir(record: Record, path: str | Path) -> Record:
    """The record with the folder of the file that it comes from, for a judge that looks at the files beside it."""
    return record | {RECORD_DIR: os.path.dirname(os.path.abspath(path))}


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, which says nothing about which of two values counts (RFC 8259 §4)."""
    data = dict(pairs)
    if len(data) != len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _DuplicateKeyError(key)
    return data


def check_record(record: Mapping[str, Any], name: str) -> None:
    """Whether a record from Python can be given to a judge, to whom it goes as JSON.

    Objects that JSON lacks reach the judge as text, and NaN as itself. Raises TaskError(code="task_record_invalid") for
    keys that are no text, bytes, what has no text, and what holds itself. name: what an error calls the record.
    """
    try:
        given: dict[Any, Any] = dict(record)  # of another mapping, JSON would see the text alone
        for key in given:
            if not isinstance(key, str):
                problem = f"the record has the key {truncate(repr(key), 80)}, which is no text. Pass 'task_result'"
                raise record_error(name, problem, "task_record_invalid")
        _check_keys(given, name)
        json.dumps(given, default=_as_text)
    except TaskError:
        raise
    except Exception as error:  # noqa: BLE001 - the record may hold any object
        reason = "nested too deep" if isinstance(error, RecursionError) else truncate(str(error), 200)
        problem = f"the record is no JSON: {reason}. Pass texts, numbers, lists and mappings"
        raise record_error(name, problem, "task_record_invalid") from None


def _as_text(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("it holds bytes, which are no text until they are decoded")
    return str(value)


def write_record(path: str | Path, record: Mapping[str, Any]) -> None:
    """Writes a record as JSON; whoever reads the file finds the former record or this one, never a part.

    Raises TaskError(code="task_record_unwritable").
    """
    try:
        content = as_json(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise record_error(
            str(path), f"the record cannot be written as JSON ({error})", "task_record_unwritable"
        ) from None
    _write(path, content)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Records that were made elsewhere, and what lies beside them, by their paths from the folder.

    Raises TaskError(code="task_record_unwritable").
    """
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(0o700, exist_ok=True)
        _write(place, content)


def _write(path: str | Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except (OSError, ValueError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from None


def check_record_file(path: Path) -> None:
    """Raise, before an agent works, the TaskError that writing its record would end in because of what stands there."""
    try:
        kind = what_is_in_the_way(path)
    except (OSError, ValueError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from None
    if kind is not None:
        raise _unwritable(path, f"there is {kind} in its place")


def refuse_misplaced_reports(
    report_paths: Collection[Path], *, folder: Path | None = None, file: str | None = None, tasks: Path | None = None
) -> None:
    """Refuse a report in the place of a record or a task, or where a later call would take it for a record.

    folder: of records. file: a single one. tasks: a task, or a folder of them. Raises ConfigurationError.
    """
    if not report_paths:
        return
    record = None if file is None else os.path.realpath(file)
    home = None if folder is None else os.path.realpath(folder)
    top = None if tasks is None else os.path.realpath(tasks)
    for path in report_paths:
        real = os.path.realpath(path)
        if is_stdout(path):
            continue
        parent, name = os.path.split(real)
        if real == record or (parent == home and is_record_name(name)):
            taken = "record"
        elif name in (TASK_FILE, TEST_FILE) and top in (parent, os.path.dirname(parent)):
            taken = "task"
        else:
            continue
        problem = f"the report would take the place of a {taken}. Name a file in another folder"
        raise ConfigurationError(f"{printable(str(path))}: {problem}", f"task_report_is_{taken}")


def is_record_name(name: str) -> bool:
    """Whether a file of this name in a folder of records holds one or many."""
    return name[0] not in "._" and name.endswith((RECORD_ENDING, LINES_ENDING))


@dataclass(frozen=True, slots=True)
class Control:
    """A record of which it is known whether a judge must pass it. has_odd_types: whether it may crash on it instead."""

    name: str
    record: Record
    must_pass: bool = False
    has_odd_types: bool = False


def correct_record(task: Task) -> Record | None:
    """What the judge of a task has to pass, in a file beside the task directories; None where there is none.

    Raises TaskError as `read_record` does.
    """
    path = Path(os.path.abspath(task.directory)).parent.joinpath(*CORRECT_RECORDS.split("/"), f"{task.name}.json")
    return with_record_dir(read_record(path), path) if os.path.lexists(path) else None


def negative_controls(task: Task) -> Iterator[Control]:
    """Records that no judge may pass: of agents that gave up, echo or only talk; then those of odd types."""
    asked = {"role": "user", "content": task.instruction}
    echoed = {"role": "assistant", "content": task.instruction}
    plain: tuple[tuple[str, Record], ...] = (
        ("an empty record", {}),
        ("an empty answer", {"task_result": ""}),
        ("a fluent answer that says nothing", {"task_result": _FLUENT}),
        ("the instruction echoed back", {"task_result": task.instruction, "conversation": [asked, echoed]}),
        ("the instruction alone in the conversation", {"conversation": [asked]}),
    )
    odd: tuple[tuple[str, Record], ...] = (
        # Any other number may be right, or near enough, or above what was asked for.
        ("an answer that is NaN", {"task_result": math.nan, "iterations": "many", "status": 1}),
        ("an answer that is a list", {"task_result": [None, {}], "conversation": {}, "sandbox": []}),
        ("an answer that is a mapping", {"task_result": {"": None}, "execution_trace": "none", "sandbox": "none"}),
        ("entries of odd types", {"conversation": _ODD_MESSAGES, "execution_trace": _ODD_STEPS, "sandbox": _ODD_PORT}),
    )
    for records in (plain, odd):
        for name, record in records:
            yield Control(name, complete_record(record, task), has_odd_types=records is odd)


_FLUENT = (
    "I have completed the task. I went through it step by step, checked every requirement carefully, and verified the "
    "result twice. Everything is in order, and all conditions are met. Please let me know if you need anything else."
)
# All of these come up in real records: a message that is only tool calls has no content, one with an image has parts.
_ODD_MESSAGES = [
    None,
    "text",
    {},
    {"role": "assistant"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": {}}]},
    {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "image_url"}, None]},
    {"role": None, "content": 7},
]
_ODD_STEPS = [None, "ls", {}, {"action": None, "feedback": None}, {"action": {"action_type": 1}, "feedback": "done"}]
_ODD_PORT = {"docker_port": "none", "client_type": None}


def _kind(data: object) -> str:
    if isinstance(data, list):
        return "a list"
    return "text" if isinstance(data, str) else "null" if data is None else f"{data!r}"[:40]


def _unwritable(path: str | Path, reason: str) -> TaskError:
    problem = f"the record cannot be written ({reason}). Remove what is there, or name a folder that can be written to"
    return record_error(str(path), problem, "task_record_unwritable")


def record_error(name: str, problem: str, code: str) -> TaskError:
    """The error of a record in one line. name: of its file, with the line if it has one."""
    return TaskError(f"{printable(name)}: {printable(problem)}", code)

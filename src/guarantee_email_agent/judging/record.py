"""The record of a run: completed for a judge, read and written; and records that no judge may pass."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.reporting.report_files import as_json, write_whole
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

Record = dict[str, Any]
"""The record of a run, as `complete_record` makes it: all keys that a judge may rely on."""

MAX_RECORD_BYTES: Final = 100_000_000


def complete_record(raw: Mapping[str, Any], task: Task | None) -> Record:
    """A record with every key that a judge may rely on; `raw` is not changed.

    A key that is missing or null gets its neutral default: empty text, an empty list, an empty mapping, 0. `status` is
    `success` where there is an answer or a conversation, else `failed`. `task_name` and `instruction` come from the
    task. Any other value stays as it is, whatever its type. Further keys of `raw` are kept, except for `eval`, the
    verdict of an earlier judge. The further keys of `task.yaml` ride along, and no key of `raw` can stand in for them.
    """
    answered = raw.get("task_result") is not None or bool(raw.get("conversation"))
    neutral: Record = {
        "task_name": task.name if task else "",
        "instruction": task.instruction if task else "",
        "status": "success" if answered else "failed",
        "iterations": 0,
        "task_result": "",
        "conversation": [],
        "execution_trace": [],
        "sandbox": {},
    }
    own = [(key, value) for key, value in task.settings.items() if key not in neutral] if task else []
    given = [(key, value) for key, value in raw.items() if not (value is None and key in neutral)]
    record = neutral | dict(given) | dict(own)
    record.pop("eval", None)
    return record


def record_of_answer(answer: str) -> Record:
    """The record of a run of which only the answer is known."""
    return {"task_result": answer}


def read_record(path: str | Path) -> Record:
    """The record in a JSON file.

    Raises TaskError with one line: `task_record_not_found`, `task_record_unreadable`, `task_record_not_utf8`,
    `task_record_too_large`, `task_record_invalid`.
    """
    try:
        text = read_text(path, MAX_RECORD_BYTES)
    except InputFileError as error:
        code = f"task_record_{error.code.removeprefix('document_')}"
        remedy = ". Correct the path" if error.code == "document_not_found" else ""
        raise _error(str(path), error.message + remedy, code) from None
    return parse_record(text, str(path))


def parse_record(text: str, name: str) -> Record:
    """The record in a JSON text. name: what an error calls the text.

    Raises TaskError(code="task_record_invalid").
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        remedy = "A record is a JSON object" if text.strip() else 'The text is empty; write at least {"task_result": …}'
        problem = f"no JSON (line {error.lineno}, column {error.colno}): {error.msg}. {remedy}"
        raise _error(name, problem, "task_record_invalid") from None
    except RecursionError:
        raise _error(name, "nested too deep for a record; flatten it", "task_record_invalid") from None
    except ValueError as error:  # an integer of thousands of digits
        raise _error(name, f"holds a number that is too long ({error})", "task_record_invalid") from None
    if not isinstance(data, dict):
        problem = f'a record is a JSON object such as {{"task_result": …}}, not {_kind(data)}'
        raise _error(name, problem, "task_record_invalid")
    return data


def write_record(path: str | Path, record: Mapping[str, Any]) -> None:
    """Writes a record as JSON; whoever reads the file finds the former record or this one, never a part.

    Raises TaskError(code="task_record_unwritable").
    """
    try:
        content = as_json(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise _error(str(path), f"the record cannot be written as JSON ({error})", "task_record_unwritable") from None
    try:
        write_whole(path, content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"the record cannot be written ({reason}). Name a folder that can be written to"
        raise _error(str(path), problem, "task_record_unwritable") from None


def negative_controls(task: Task) -> Iterator[tuple[str, Record]]:
    """What to call each control, and its record. A judge has to give each a well-formed verdict that is not a pass."""
    asked = {"role": "user", "content": task.instruction}
    echoed = {"role": "assistant", "content": task.instruction}
    records: tuple[tuple[str, Record], ...] = (
        ("an empty record", {}),
        ("an empty answer", record_of_answer("")),
        ("the instruction echoed back", {"task_result": task.instruction, "conversation": [asked, echoed]}),
        ("the instruction alone in the conversation", {"conversation": [asked]}),
        ("an answer that is a number", {"task_result": 2.718281828e-300, "iterations": "many", "status": 1}),
        ("an answer that is a list", {"task_result": [None, {}], "conversation": {}, "sandbox": []}),
        ("an answer that is a mapping", {"task_result": {"": None}, "execution_trace": "none", "sandbox": "none"}),
        ("entries of odd types", {"conversation": _ODD_MESSAGES, "execution_trace": _ODD_STEPS, "sandbox": _ODD_PORT}),
    )
    for name, record in records:
        yield name, complete_record(record, task)


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


def _error(name: str, problem: str, code: str) -> TaskError:
    return TaskError(f"{printable(name)}: {printable(problem)}", code, {"path": name})

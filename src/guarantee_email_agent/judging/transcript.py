"""The transcript of an agent of any framework, as the record of its run.

An adapter reads a framework's messages into `Message`; nothing else of a transcript reaches the record, so none can say
what its status or its verdict is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Final

from guarantee_email_agent.judging.record import Record, cut_off_reason
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable, truncate

TASK_COMPLETE: Final = "task_complete"

# Said again in the calls, or not meant for anyone.
_SILENT_PARTS: Final = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "function_call", "thinking", "redacted_thinking", "reasoning"}
)
_TEXT_KEYS: Final = ("text", "refusal")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. arguments: as a mapping, or as the text that is none. id: None where the framework gives none."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message. role: system, user, assistant or tool. answered_id: of the call that a tool message answers.

    cut_off: why the model's provider ended it before its end, as `cut_off_by` has it; empty where it is whole.
    goes_on: whether its calls ran at the provider, so that the message after their answers is of the same request.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answered_id: str | None = None
    is_error: bool = False
    cut_off: str = ""
    goes_on: bool = False


def record_of_messages(messages: Sequence[Message], cut_off: str = "") -> Record:
    """The record of a run of which the messages are known.

    `task_result` is what the last call of `task_complete` has as its `result`; without one, the text of the last
    message, or of the last one before a user's, where that is the assistant's and calls no tool: else the run was cut
    off and has no answer. Nor has it one where that message was cut off, and `reason` says why; cut_off: of the last
    message, where that does not say so itself. `status` is `success` where there is an answer. Raises TaskError where
    there is no message.
    """
    if not messages:
        raise transcript_error("the transcript has no messages. Pass those of the whole run")
    completed = [message for message in messages if any(call.name == TASK_COMPLETE for call in message.calls)]
    said = [message for message in messages if message.role not in ("user", "system")]
    last = next(reversed(completed or said), None)
    why = cut_off if not completed or last is messages[-1] else ""
    why = why or (last.cut_off if last is not None else "")
    answer = "" if last is None or why else _answer(last)
    return {
        "status": "success" if answer.strip() else "failed",
        "iterations": sum(message.role == "assistant" and not message.goes_on for message in messages),
        "task_result": answer,
        "conversation": [_conversation_entry(message) for message in messages],
        "execution_trace": _execution_trace(messages),
        **cut_off_reason(why),
    }


def transcript_error(problem: str) -> TaskError:
    """The error of a transcript, without the name of its file."""
    return TaskError(problem, "task_transcript_invalid")


def plain(value: object) -> object:
    """A framework's own object as what JSON holds."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def mapping_at(value: object, where: str) -> Mapping[str, Any]:
    """Raises TaskError where the value is no mapping. where: such as `message 3`."""
    value = plain(value)
    if not isinstance(value, Mapping):
        raise transcript_error(f"{where} is {kind_of(value)}, not an object with a role")
    return value


def list_at(value: object, where: str) -> Sequence[Any]:
    """The items of a list; none for what is missing. Raises TaskError for anything else."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise transcript_error(f"{where} is {kind_of(value)}, not a list")


def text_of(content: object, where: str) -> str:
    """The text of a message, of which each part stands on lines of its own; a part that is none is named: `[image]`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    texts = []
    if not isinstance(content, list | tuple):
        raise transcript_error(f"the content of {where} is {kind_of(content)}, neither text nor a list of parts")
    for number, part in enumerate(content, 1):
        each = plain(part)
        if isinstance(each, str):
            texts.append(each)
            continue
        entry = mapping_at(each, f"part {number} of {where}")
        kind = entry.get("type")
        text = next((entry[key] for key in _TEXT_KEYS if isinstance(entry.get(key), str)), None)
        if isinstance(kind, str) and kind in _SILENT_PARTS:
            continue
        texts.append(f"[{kind}]" if text is None else text)
    return "\n".join(texts)


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def call_of(name: object, arguments: object, call_id: object, where: str) -> Call:
    """Raises TaskError for a call without a name. arguments: a mapping, or JSON text with one."""
    if not isinstance(name, str) or not name:
        raise transcript_error(f"{where} has a tool call without a name")
    given = plain(arguments)
    if given is None or given == "":
        given = {}
    if isinstance(given, str):
        try:
            parsed = json.loads(given)
        except (ValueError, RecursionError):
            parsed = None  # a model may write what is no JSON
        given = parsed if isinstance(parsed, dict) else given
    if not isinstance(given, Mapping | str):
        given = as_text(given)
    return Call(name, given, id_of(call_id))


def id_of(value: object) -> str | None:
    """The id of a call; None for what is none."""
    return value if isinstance(value, str) else None


def kind_of(value: object) -> str:
    """A value as an error names it."""
    names = {type(None): "null", bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), printable(truncate(repr(value), 40)))


def _answer(message: Message) -> str:
    if completed := [call for call in message.calls if call.name == TASK_COMPLETE]:
        arguments = completed[-1].arguments
        result = arguments.get("result") if isinstance(arguments, Mapping) else arguments
        return "" if result is None else as_text(result)
    return message.text if message.role == "assistant" and not message.calls else ""


def _conversation_entry(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        entry["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": as_text(call.arguments)}}
            for call in message.calls
        ]
    if message.role == "tool":
        entry["tool_call_id"] = message.answered_id
    return entry


def _execution_trace(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Each call with its answer, in the order of the calls; an answer to no call is in the conversation alone."""
    trace: list[dict[str, Any]] = []
    open_calls: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        for call in message.calls:
            arguments = call.arguments if isinstance(call.arguments, Mapping) else {"arguments": call.arguments}
            feedback: dict[str, Any] = {"done": False, "message": "", "answered": False}
            trace.append({"action": {**arguments, "action_type": call.name}, "feedback": feedback})
            open_calls[call.id].append(trace[-1])
        if message.role == "tool" and (waiting := open_calls[message.answered_id]):
            entry = waiting.pop(0)
            done = entry["action"]["action_type"] == TASK_COMPLETE and not message.is_error
            error = {"error": True} if message.is_error else {}
            entry["feedback"] = {"done": done, "message": message.text, **error}
    return trace

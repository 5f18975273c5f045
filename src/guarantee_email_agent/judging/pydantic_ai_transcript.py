"""The record of a run from the messages of Pydantic AI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from guarantee_email_agent.judging.record import Record, cut_off_by
from guarantee_email_agent.judging.transcript import (
    Call,
    Message,
    as_text,
    call_of,
    id_of,
    kind_of,
    list_at,
    mapping_at,
    plain,
    record_of_messages,
    text_of,
    transcript_error,
)

_CALLS: Final = ("tool-call", "builtin-tool-call")  # the latter of a tool that runs at the provider
_SILENT: Final = ("thinking", "compaction")
_ACCEPTED: Final = "Final result processed."  # what the call of an output tool gets for an answer


def record_from_pydantic_ai(transcript: object) -> Record:
    """The record of a run with Pydantic AI.

    transcript: `result.all_messages()`, or its JSON, or a mapping that has it under `messages`. The call of an output
    tool that was accepted is the answer. Raises TaskError(code="task_transcript_invalid").
    """
    entries = transcript.get("messages") if isinstance(transcript, Mapping) else transcript
    messages: list[Message] = []
    instructions = None
    for number, value in enumerate(list_at(entries, "the transcript"), 1):
        entry = mapping_at(value, f"message {number}")
        if (told := entry.get("instructions")) != instructions and isinstance(told, str):
            messages.append(Message("system", instructions := told))
        messages += _read(entry, f"message {number}")
    record = record_of_messages(messages)
    accepted = {message.answered_id for message in messages if message.text == _ACCEPTED}
    outputs = [call for message in messages for call in message.calls if call.id in accepted and call.id is not None]
    if outputs and messages[-1].role == "tool" and "reason" not in record:
        record |= {"task_result": as_text(outputs[-1].arguments), "status": "success"}
    return record


def _read(entry: Mapping[str, Any], where: str) -> Iterator[Message]:
    parts = [mapping_at(part, f"a part of {where}") for part in list_at(entry.get("parts"), f"'parts' of {where}")]
    if entry.get("kind") == "response":
        state = entry.get("state") or "complete"
        texts, calls, builtin = list[str](), list[Call](), list[Call]()
        for part in parts:
            kind, call_id = part.get("part_kind"), part.get("tool_call_id")
            if kind in _CALLS:
                call = call_of(part.get("tool_name"), part.get("args"), call_id, where)
                (calls if kind == _CALLS[0] else builtin).append(call)
            elif kind == "builtin-tool-return":
                if texts or builtin:
                    yield Message("assistant", text_of(texts, where), tuple(builtin), goes_on=True)
                texts, builtin = [], []
                is_error = part.get("outcome", "success") != "success"
                yield Message(
                    "tool", as_text(plain(part.get("content"))), answered_id=id_of(call_id), is_error=is_error
                )
            elif kind not in _SILENT:
                text = part.get("content") if kind == "text" else None
                texts.append(text if isinstance(text, str) else f"[{kind}]")
        said = Message("assistant", text_of(texts, where), (*calls, *builtin))
        yield replace(said, cut_off=cut_off_by(entry) or ("" if state == "complete" else str(state)))
    elif entry.get("kind") != "request":
        raise transcript_error(
            f"{where} has the kind {kind_of(entry.get('kind'))}, which is neither request nor response"
        )
    for part in parts:
        kind, content = part.get("part_kind"), plain(part.get("content"))
        answered = id_of(part.get("tool_call_id")) if part.get("tool_name") else None
        if kind == "tool-return" or (kind == "retry-prompt" and answered is not None):
            is_error = kind == "retry-prompt" or part.get("outcome", "success") != "success"
            yield Message("tool", as_text(content), answered_id=answered, is_error=is_error)
        elif kind in ("user-prompt", "retry-prompt", "retry-feedback"):
            items = content if isinstance(content, list | tuple) else [as_text(content)]
            yield Message("user", text_of([_item(item) for item in items], where))
        elif kind == "system-prompt":
            yield Message("system", as_text(content))


def _item(value: object) -> object:
    """A part of a user's prompt, as `text_of` reads it."""
    item = plain(value)
    if not isinstance(item, Mapping):
        return item
    text = {"text": item["content"]} if item.get("kind") == "text-content" else {}
    return {"type": item.get("kind"), **text}

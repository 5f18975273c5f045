"""The record of a run from the messages of LangChain and LangGraph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from guarantee_email_agent.judging.openai_transcript import ROLES, add_call, read_call, read_message
from guarantee_email_agent.judging.record import Record, cut_off_by
from guarantee_email_agent.judging.transcript import (
    Call,
    Message,
    as_text,
    id_of,
    kind_of,
    list_at,
    mapping_at,
    plain,
    record_of_messages,
    text_of,
    transcript_error,
)

_OWN_PARTS: Final = ("tool_call", "function_call", "custom_tool_call")
_PARTS_AT_PROVIDER: Final = ("_call", "_tool_use", "_tool_result")
_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool", **ROLES}


def record_from_langchain(transcript: object) -> Record:
    """The record of a run with LangChain or LangGraph.

    transcript: the list of messages, or a graph's state that has it under `messages`. Each is an object of theirs, or
    what `messages_to_dict`, `dumpd` or `model_dump` made of one, `{"role", "content"}`, or a pair of a role and a text.
    See `transcript.record_of_messages` for what becomes of it. Raises TaskError(code="task_transcript_invalid").
    """
    messages: list[Message] = []
    for number, entry in enumerate(_entries(plain(transcript)), 1):
        messages += _read_message(plain(entry), f"message {number}")
    return record_of_messages(messages)


def _entries(transcript: object) -> Sequence[Any]:
    if isinstance(transcript, list | tuple):
        return transcript
    if isinstance(transcript, Mapping) and "messages" in transcript:
        return list_at(transcript["messages"], "'messages'")
    found = "an object without 'messages'" if isinstance(transcript, Mapping) else kind_of(transcript)
    raise transcript_error(f"the transcript is {found}. Pass the list of messages, or the state of the graph")


def _read_message(entry: object, where: str) -> Iterator[Message]:
    """The message, after what ran at the provider for it; nothing for what takes another message away."""
    match entry:
        case [str(role), content]:
            entry = {"type": role, "content": content}
        case {"lc": _, "kwargs": Mapping() as fields, "id": [*_, str(name)]}:  # as `dumpd` writes it
            entry = {"type": name, **fields}
        case {"type": str(kind), "data": Mapping() as fields}:  # as `messages_to_dict` does
            entry = {**fields, "type": kind}
    fields = mapping_at(entry, where)
    stated = fields.get("type")
    kind = stated.removesuffix("Chunk").removesuffix("Message").lower() if isinstance(stated, str) else "chat"
    if kind == "chat":
        yield read_message(fields, where)
        return
    if kind == "remove":
        return
    if kind not in _ROLES:
        raise transcript_error(f"{where} has the type {kind[:60]!r}, which is none of {', '.join(_ROLES)}")
    content, own = fields.get("content"), []
    for part in content if isinstance(content, list) else ():
        named = str(part.get("type")) if isinstance(part, Mapping) else ""
        if named in _OWN_PARTS or not named.endswith(_PARTS_AT_PROVIDER):
            own.append(part)
        elif named.endswith("_result"):
            answered = id_of(part.get("tool_use_id", part.get("tool_call_id")))
            yield Message("tool", as_text(part.get("content", part.get("output"))), answered_id=answered)
        else:
            served: list[Message] = []
            add_call(served, {"arguments": part["args"], **part} if "args" in part else part, named, where)
            yield from served
    yield Message(
        _ROLES[kind],
        text_of(own if isinstance(content, list) else content, where),
        tuple(_calls(fields, where)),
        id_of(fields.get("tool_call_id")),
        fields.get("status") == "error",
        cut_off_by(fields.get("response_metadata")) or cut_off_by(fields, fields.get("additional_kwargs"), keys=()),
    )


def _calls(fields: Mapping[str, Any], where: str) -> list[Call]:
    listed = [
        mapping_at(call, f"a tool call of {where}")
        for key in ("tool_calls", "invalid_tool_calls")
        for call in list_at(fields.get(key), f"{key!r} of {where}")
    ]
    # Messages that were stored before LangChain had calls of its own.
    extra = fields.get("additional_kwargs")
    given = extra.get("tool_calls") if isinstance(extra, Mapping) else None
    calls = [{"function": {**call, "arguments": call.get("args")}, **call} for call in listed]
    return [read_call(call, where) for call in calls or list_at(given, f"'tool_calls' of {where}")]

"""The record of a run from messages in OpenAI's shape: chat completions, or the items of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from guarantee_email_agent.judging.record import Record, cut_off_by
from guarantee_email_agent.judging.transcript import (
    Call,
    Message,
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

ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_OUTPUT: Final = "_call_output"
_HOSTED_CALL: Final = "_call"  # of a tool that runs at the API: web_search_call, file_search_call …
_OWN_CALLS: Final = ("function_call", "custom_tool_call")
_TYPES_OF_LANGCHAIN: Final = ("human", "ai", "system")
_NO_MESSAGES: Final = frozenset(
    {"reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"}
)
_OF_ITEM: Final = frozenset({"id", "type", "status", "output", "call_id"})


def record_from_openai(transcript: object) -> Record:
    """The record of a run with OpenAI's chat completions or Responses API, or with whatever speaks the same.

    transcript: the list of messages or items, the objects of OpenAI's package or plain ones; or a mapping that has it
    under `messages`, or under `input` and `output`; a last answer under `choices` is appended. See
    `transcript.record_of_messages` for what becomes of it. Raises TaskError(code="task_transcript_invalid").
    """
    messages: list[Message] = []
    entries, endings = _entries(plain(transcript))
    for number, entry in enumerate(entries, 1):
        _add(messages, mapping_at(entry, f"message {number}"), f"message {number}")
    return record_of_messages(messages, cut_off_by(*endings))


def _entries(transcript: object) -> tuple[Sequence[Any], Sequence[Any]]:
    """The messages or items, and what says how the last answer ended."""
    if isinstance(transcript, list | tuple):
        return transcript, ()
    if not isinstance(transcript, Mapping):
        raise transcript_error(f"the transcript is {kind_of(transcript)}, not a list of messages")
    if not any(key in transcript for key in ("messages", "input", "output", "choices")):
        raise transcript_error("the transcript has no 'messages', and no 'input' and 'output' either")
    asked = transcript.get("input")
    given = [{"role": "user", "content": asked}] if isinstance(asked, str) else list_at(asked, "'input'")
    choices = [mapping_at(choice, "a choice") for choice in list_at(transcript.get("choices"), "'choices'")[:1]]
    entries = [
        *list_at(transcript.get("messages"), "'messages'"),
        *given,
        *list_at(transcript.get("output"), "'output'"),
        *(choice.get("message") for choice in choices),
    ]
    return entries, (*choices, transcript)


def _add(messages: list[Message], entry: Mapping[str, Any], where: str) -> None:
    """Append a message; a call of the Responses API joins the assistant's message that it came with."""
    kind = entry.get("type")
    if "role" not in entry and isinstance(kind, str):
        if kind in _NO_MESSAGES:
            return
        if kind.endswith(_OUTPUT):
            text = text_of(entry.get("output"), where)
            messages.append(Message("tool", text, answered_id=id_of(entry.get("call_id"))))
            return
        if kind.endswith(_HOSTED_CALL):
            add_call(messages, entry, kind, where)
            return
        hint = ". Messages of LangChain are read with --from langchain" if kind in _TYPES_OF_LANGCHAIN else ""
        raise transcript_error(f"{where} has the type {kind!r}, which is neither a message nor a tool call{hint}")
    message = read_message(entry, where)
    if kind == "message" and message.role == "assistant" and messages and messages[-1].role == "assistant":
        text = "\n".join(filter(None, (messages[-1].text, message.text)))
        messages[-1] = replace(messages[-1], text=text, cut_off=message.cut_off)
    else:
        messages.append(message)


def add_call(messages: list[Message], entry: Mapping[str, Any], kind: str, where: str) -> None:
    """Append a call that stands as an item of its own, with the answer that a tool at the API gave."""
    rest = {key: value for key, value in entry.items() if key not in _OF_ITEM}
    name = entry.get("name", kind.removesuffix(_HOSTED_CALL))
    arguments = entry.get("arguments", entry.get("input", rest))
    call = call_of(name, arguments, entry.get("call_id", entry.get("id")), where)
    status, is_own = entry.get("status"), "call_id" in entry or kind in _OWN_CALLS
    cut_off = "incomplete" if status == "incomplete" else ""  # a tool that failed is no end of the answer
    said = messages.pop() if messages and messages[-1].role == "assistant" else Message("assistant")
    goes_on = not (is_own or said.calls)
    messages.append(replace(said, calls=(*said.calls, call), cut_off=cut_off, goes_on=goes_on))
    if "output" in entry or (not is_own and status in ("completed", "failed")):
        text = text_of(entry["output"], where) if "output" in entry else f"[{status}]"
        is_error = bool(entry.get("error")) or status == "failed"
        messages.append(Message("tool", text, answered_id=call.id, is_error=is_error))


def read_message(entry: Mapping[str, Any], where: str) -> Message:
    """One message of a chat completion. Raises TaskError(code="task_transcript_invalid")."""
    role = entry.get("role")
    if not isinstance(role, str) or role not in ROLES:
        shown = repr(role)[:60] if isinstance(role, str) else kind_of(role)
        found = "no role" if role is None else f"the role {shown}"
        raise transcript_error(f"{where} has {found}. A message has one of {', '.join(ROLES)}")
    calls = [read_call(call, where) for call in list_at(entry.get("tool_calls"), f"'tool_calls' of {where}")]
    parts = entry["content"] if isinstance(entry.get("content"), list | tuple) else ()
    if not calls and any(isinstance(part := plain(each), Mapping) and part.get("type") == "tool_use" for each in parts):
        problem = "has a 'tool_use' part, whose call would be lost: Anthropic's own messages are not read"
        raise transcript_error(f"{where} {problem}. Pass a record in their place")
    if (legacy := entry.get("function_call")) is not None:
        function = mapping_at(legacy, f"'function_call' of {where}")
        calls.append(call_of(function.get("name"), function.get("arguments"), None, where))
    return Message(
        ROLES[role],
        "\n".join(filter(None, (text_of(entry.get("content"), where), text_of(entry.get("refusal"), where)))),
        tuple(calls),
        id_of(entry.get("tool_call_id")),
        cut_off=cut_off_by(entry) if role == "assistant" else "",
    )


def read_call(value: object, where: str) -> Call:
    """One of a message's `tool_calls`. Raises TaskError(code="task_transcript_invalid")."""
    call = mapping_at(value, f"a tool call of {where}")
    custom = call.get("custom")
    function = mapping_at(call.get("function") if custom is None else custom, f"a tool call of {where}")
    return call_of(function.get("name"), function.get("arguments", function.get("input")), call.get("id"), where)

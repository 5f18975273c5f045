"""The record of a run from a sample in a log of Inspect (https://inspect.aisi.org.uk)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from guarantee_email_agent.judging.openai_transcript import add_call, read_message
from guarantee_email_agent.judging.record import Record, cut_off_by
from guarantee_email_agent.judging.transcript import (
    Message,
    list_at,
    mapping_at,
    plain,
    record_of_messages,
    transcript_error,
)

_ATTACHMENT: Final = "attachment://"


def record_from_inspect(sample: object) -> Record:
    """The record of one sample of an Inspect log: the object, or its JSON.

    Its answer is the output's completion where the run was not cut off before it; a sample that ended in an error is
    `failed`, an invalidated one an error; `reason` says why. Raises TaskError(code="task_transcript_invalid").
    """
    fields = mapping_at(sample, "the sample")
    if "messages" not in fields:
        raise transcript_error("the sample has no 'messages'. Pass a sample of the log, with its messages")
    attachments = fields.get("attachments")
    kept = attachments if isinstance(attachments, Mapping) else {}
    messages: list[Message] = []
    for number, entry in enumerate(list_at(fields["messages"], "'messages'"), 1):
        messages += _read_message(mapping_at(entry, f"message {number}"), f"message {number}", kept)
    given = plain(fields.get("output"))
    output: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    completion = output.get("completion")
    record = record_of_messages(messages, cut_off_by(*list_at(output.get("choices"), "'choices'")[:1]))
    last, answer = messages[-1], completion if isinstance(completion, str) else ""
    # Agents of Inspect end with a tool, such as `submit`, that returns the run's answer.
    is_submitted = fields.get("limit") is None and last.text.strip() != "" and answer.endswith(last.text)
    is_cut_off = "reason" in record or (last.role == "tool" and not is_submitted) or bool(last.calls)
    if answer.strip() and not is_cut_off:
        record |= {"task_result": answer, "status": "success"}
    for key, name in (("invalidation", "reason"), ("error", "message"), ("limit", "type")):
        problem = plain(fields.get(key))
        if problem is not None:
            said = (problem.get(name) or key) if isinstance(problem, Mapping) else problem
            record["reason"] = {"code": f"inspect_{key}", "message": str(said)}
            record["status"] = "failed" if key == "error" or is_cut_off else record["status"]
            record["status"] = "error" if key == "invalidation" else record["status"]
            break
    return record


def _read_message(entry: Mapping[str, Any], where: str, attachments: Mapping[str, Any]) -> Iterator[Message]:
    """The message, after what ran at the provider for it."""
    content, own = plain(entry.get("content")), list[object]()
    for part in map(plain, content if isinstance(content, list) else ()):
        if isinstance(part, Mapping) and part.get("type") == "tool_use":
            served: list[Message] = []
            add_call(served, {**part, "output": part.get("error") or part.get("result")}, "tool_use", where)
            yield from served
        else:
            own.append(part)
    calls = []
    for value in list_at(entry.get("tool_calls"), f"'tool_calls' of {where}"):
        call = mapping_at(value, f"a tool call of {where}")
        calls.append({"id": call.get("id"), "function": {**call, "name": call.get("function")}})
    message = read_message(
        {**entry, "content": own if isinstance(content, list) else content, "tool_calls": calls}, where
    )
    kept = attachments.get(message.text.removeprefix(_ATTACHMENT)) if message.text.startswith(_ATTACHMENT) else None
    error = plain(entry.get("error"))
    said = error.get("message") if isinstance(error, Mapping) and message.role == "tool" else None
    text = kept if isinstance(kept, str) else message.text
    yield replace(message, text=text or str(said or ""), is_error=error is not None)

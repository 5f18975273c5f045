"""Negative controls: records that no judge may pass, so that a careless `test.py` shows before it is relied upon."""

from __future__ import annotations

from collections.abc import Iterator

from guarantee_email_agent.judging.record import complete_record, record_of_answer
from guarantee_email_agent.judging.task import Record, Task


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

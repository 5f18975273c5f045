"""The tools that the agent calls, by service: what a mapping onto another server's tools has to provide for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

AnswerForm = Literal["text", "text_or_number", "list"]


@dataclass(frozen=True, slots=True)
class OwnTool:
    """One tool as we call it.

    arguments: what we pass, by name, with its type in JSON. needed: those that must reach the other server; another
    may be written off with null. answer: the fields that we read. required: those that an answer has to hold. items:
    the fields of each item of an answer that is a list. echoed: an argument that the answer may repeat, so that it can
    be seen to be about it. reads: a call changes nothing, so that a sample may be tried. further: we pass arguments of
    other names, too. joins: several arguments may go into one text. values: the words that a field may be, where it may
    not be any.
    """

    arguments: Mapping[str, str]
    needed: frozenset[str]
    answer: Mapping[str, AnswerForm] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: Mapping[str, AnswerForm] = field(default_factory=dict)
    echoed: str | None = None
    reads: bool = False
    further: bool = False
    joins: bool = False
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def look_up_tool(number: str, facts: Mapping[str, AnswerForm], statuses: tuple[str, ...]) -> OwnTool:
    """The tool of a look-up. number: what it is called. statuses: that the answer may hold, and then has to."""
    return OwnTool(
        arguments={number: "string"},
        needed=frozenset({number}),
        answer={"status": "text", **facts, "owner_email": "text", number: "text"},
        required=frozenset({"status"} if statuses else ()),
        echoed=number,
        reads=True,
        values={"status": (*(statuses or ("found",)), "not_found", "other")},
    )


WARRANTY_TOOLS: Final = {
    "check_warranty": look_up_tool(
        "serial_number", {"expiration_date": "text", "coverage": "text"}, ("valid", "expired")
    )
}

_TICKET: Final = ("serial_number", "warranty_status", "customer_email", "priority", "category")
TICKETING_TOOLS: Final = {
    "create_ticket": OwnTool(
        arguments={**dict.fromkeys((*_TICKET, "idempotency_key"), "string"), "details": "object"},
        needed=frozenset(),
        answer={"ticket_id": "text"},
        required=frozenset({"ticket_id"}),
        further=True,
        joins=True,
    ),
    "find_ticket": OwnTool(
        arguments={"idempotency_key": "string"},
        needed=frozenset({"idempotency_key"}),
        answer={"tickets": "list"},
        required=frozenset({"tickets"}),
        items={"ticket_id": "text", "idempotency_key": "text"},
        reads=True,
    ),
    "add_note": OwnTool(
        arguments={"ticket_id": "string", "note": "string", "idempotency_key": "string"},
        needed=frozenset({"ticket_id", "note"}),
        joins=True,
    ),
}

LOOK_UP_TOOL: Final = "look_up"

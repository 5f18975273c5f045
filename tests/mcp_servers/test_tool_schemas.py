"""What clients are told of the arguments of every tool."""

from __future__ import annotations

from datetime import date
from typing import Any, cast

import pytest

from guarantee_email_agent.mcp_servers.mailbox_tools import MailboxTools
from guarantee_email_agent.mcp_servers.table import TableTools
from guarantee_email_agent.mcp_servers.ticketing import TicketingTools
from guarantee_email_agent.mcp_servers.warranty import WarrantyTools
from guarantee_email_agent.services.mail.maildir import Maildir

NOTHING = cast("Any", None)
TOOLS = {
    tool.name: tool
    for tool in (
        *MailboxTools(Maildir.__new__(Maildir), 0).tools(),  # whose tools depend on what such a mailbox can do
        *TicketingTools(NOTHING).tools(),
        *WarrantyTools(NOTHING, date.today).tools(),
        *TableTools(NOTHING).tools(),
    )
}
OUTCOMES = {"type": "string", "enum": ["answered", "drafted", "handed_over", "not_answered", "quarantined", "unknown"]}


def integer(minimum: int, maximum: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "default": default}


def number(maximum: int) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": maximum}


def text(longest: int, shortest: int = 0, **more: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, **({"minLength": shortest} if shortest else {}), **more}


MAIL_ID, MESSAGE_ID, KEY = text(300, 1), text(902, 3), text(200, 1)
FLAG = {"type": "boolean", "default": False}
FILTER = {"received_since": {**number(32_503_680_000), "default": 0}, "skip_seen": FLAG}

REPLY = (
    {"to": text(320), "subject": text(998), "body": text(200_000), "message_id": MESSAGE_ID},
    {
        "in_reply_to": text(2_000, default=""),
        "references": text(60_000, default=""),
        "headers": {"type": "object", "additionalProperties": text(2_000), "default": {}},
    },
)


ARGUMENTS = [
    ("list_unprocessed", {}, {**FILTER, "limit": integer(1, 100_000, 100)}),
    ("find_mail", {"message_id": MESSAGE_ID}, {}),
    ("find_owner", {}, {}),
    ("claim_mailbox", {"ledger": {"type": "string", "pattern": "^[0-9a-f]{16}$"}}, {"take_over": FLAG}),
    ("list_mails", {}, {}),
    ("unmark", {"id": MAIL_ID}, {}),
    ("is_waiting", {"id": MAIL_ID}, {"skip_seen": FLAG}),
    ("read_raw", {"id": MAIL_ID}, {"max_bytes": integer(1, 100_000_000, 25_000_000)}),
    ("send_reply", *REPLY),
    ("save_draft", *REPLY),
    ("find_sent", {"message_id": MESSAGE_ID}, {"wait_s": {**number(600), "default": 0}}),
    ("mark", {"id": MAIL_ID, "outcome": OUTCOMES}, {}),
    ("find_draft", {"message_id": MESSAGE_ID}, {}),
    ("tally", {}, FILTER),
    ("wait_for_mail", {"timeout_s": number(3600)}, {}),
    ("test_connection", {}, {"drafts": FLAG}),
    (
        "create_ticket",
        {"customer_email": text(320), "priority": text(40), "category": text(100), "idempotency_key": KEY},
        {
            "serial_number": text(100, default=""),
            "warranty_status": text(40, default=""),
            "details": {
                "type": "object",
                "additionalProperties": text(320),
                "propertyNames": {"minLength": 1, "maxLength": 40},
                "maxProperties": 20,
            },
        },
    ),
    ("add_note", {"ticket_id": text(64, 1), "note": text(4000, 1), "idempotency_key": KEY}, {}),
    ("find_ticket", {"idempotency_key": KEY}, {}),
    ("list_tickets", {}, {"limit": integer(1, 1000, 50)}),
    ("check_warranty", {"serial_number": text(100, 1)}, {}),
    ("find_row", {"number": text(100, 1)}, {}),
]
"""Of each tool: those that it needs, and those that it takes beside them."""


@pytest.mark.parametrize(("tool", "required", "optional"), ARGUMENTS)
def test_names_types_and_limits(tool: str, required: dict[str, Any], optional: dict[str, Any]) -> None:
    declared = TOOLS[tool].declaration()
    assert declared.description
    schema = declared.input_schema
    properties = {
        name: {key: value for key, value in part.items() if key != "description"}
        for name, part in schema["properties"].items()
    }
    assert properties == {**required, **optional}
    assert schema.get("required", []) == list(required)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties"}


def test_no_tool_is_left_out() -> None:
    assert {name for name, *_ in ARGUMENTS} == TOOLS.keys()


def test_clients_are_told_that_every_tool_can_be_called_again() -> None:
    for tool in TOOLS.values():
        declared = tool.declaration()
        assert declared.title == tool.name.replace("_", " ").capitalize()
        assert declared.annotations
        assert (declared.annotations.idempotent_hint, declared.annotations.destructive_hint) == (True, False)


def test_results_are_objects_with_what_is_always_there() -> None:
    required = {name: (tool.declaration().output_schema or {}).get("required", []) for name, tool in TOOLS.items()}
    assert required["list_unprocessed"] == ["messages", "total"]
    assert required["mark"] == []
    assert required["check_warranty"] == ["serial_number", "status"]


def test_the_others_only_read() -> None:
    writing = {"send_reply", "save_draft", "mark", "unmark", "claim_mailbox", "create_ticket", "add_note"}
    assert {tool.name for tool in TOOLS.values() if not tool.read_only} == writing

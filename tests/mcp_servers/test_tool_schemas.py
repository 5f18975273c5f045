"""What clients are told of the arguments of every tool."""

from __future__ import annotations

from datetime import date
from typing import Any, cast

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


def test_an_argument_is_declared_with_its_type_and_limits_and_no_other_is_taken() -> None:
    schema = TOOLS["list_unprocessed"].declaration().input_schema
    assert schema["properties"]["limit"] == {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 100}
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties"}
    assert TOOLS["add_note"].declaration().input_schema["required"] == ["ticket_id", "note", "idempotency_key"]


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

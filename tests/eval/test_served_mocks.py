import asyncio
import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.eval.models import EvalEmail, EvalInput, EvalTestCase
from guarantee_email_agent.eval.served_mocks import ServedMocks
from guarantee_email_agent.eval.tool_mocks import OWN_TOOLS
from guarantee_email_agent.mcp_servers.mailbox_tools import MailboxTools
from guarantee_email_agent.mcp_servers.server import Dispatcher
from guarantee_email_agent.mcp_servers.ticketing import TicketingTools
from guarantee_email_agent.services.ticket_store import TicketStore

Scenario = Callable[..., EvalTestCase]
EMAIL = EvalEmail("My dryer", "SN12345 is broken", "customer@example.com", "2026-01-18T10:00:00Z")
REPLY = {"to": "customer@example.com", "subject": "Re", "body": "Hello", "message_id": "<1@example.com>"}
TICKET = {
    "serial_number": "SN12345",
    "warranty_status": "valid",
    "customer_email": "customer@example.com",
    "priority": "normal",
    "category": "warranty_claim",
    "idempotency_key": "k",
}


def served(scenario: Scenario, **mock_responses: Any) -> ServedMocks:
    return ServedMocks(scenario(input=EvalInput(EMAIL, mock_responses)))


def call(mocks: ServedMocks, server: str, tool: str, **arguments: Any) -> Any:
    """Structured content, or the text of an error."""
    result = asyncio.run(mocks.servers[server].dispatch(tool, arguments))
    return result.content[0].text if result.is_error else result.structured_content


def test_tools_are_those_of_our_own_servers(scenario: Scenario, tmp_path: Path) -> None:
    mocks = served(scenario)
    store = TicketStore(tmp_path / "tickets.db")
    real = {
        "mail": Dispatcher("mail", MailboxTools(None, 0).tools()),
        "ticketing": Dispatcher("ticketing", TicketingTools(store).tools()),
    }
    for name, dispatcher in real.items():
        assert mocks.servers[name].declarations() == dispatcher.declarations()
    store.close()
    for name, server in mocks.servers.items():
        taken = {tool.name: tuple(tool.input_schema.get("properties", ())) for tool in server.declarations()}
        assert taken == {tool: names or taken[tool] for tool, names in OWN_TOOLS[name].items()}


def test_the_mailbox_holds_the_one_mail(scenario: Scenario) -> None:
    mocks = served(scenario)
    (listed,) = call(mocks, "mail", "list_unprocessed")["messages"]
    assert listed["id"] == "eval-valid_warranty_001"
    assert call(mocks, "mail", "read_raw", id=listed["id"])["size"] == listed["size"]
    assert call(mocks, "mail", "mark", id=listed["id"], outcome="answered") == {}
    assert call(mocks, "mail", "list_unprocessed")["total"] == 0
    assert call(mocks, "mail", "tally")["answered"] == 1
    assert "mail_not_found" in call(mocks, "mail", "read_raw", id="other")


def test_a_reply_is_kept_once_by_its_message_id(scenario: Scenario) -> None:
    mocks = served(scenario)
    assert call(mocks, "mail", "find_sent", message_id="<1@example.com>") == {"state": "not_sent"}
    assert call(mocks, "mail", "send_reply", **REPLY)["status"] == "sent"
    assert call(mocks, "mail", "send_reply", **REPLY)["status"] == "already_sent"
    assert call(mocks, "mail", "find_sent", message_id="<1@example.com>") == {"state": "sent"}
    assert [mail["body"] for mail in mocks.mocks.mail.sent_emails] == ["Hello"]
    assert [call.tool for call in mocks.tools.calls].count("send_reply") == 2


def test_what_our_mail_server_would_refuse_is_not_sent(scenario: Scenario) -> None:
    mocks = served(scenario)
    assert "one bare address" in call(mocks, "mail", "send_reply", **{**REPLY, "to": "a@example.com, b@example.com"})
    assert "unknown argument 'bcc'" in call(mocks, "mail", "send_reply", **REPLY, bcc="x@example.com")
    assert mocks.mocks.mail.sent_emails == []
    assert mocks.tools.unknown == []


def test_drafts_are_no_mails(scenario: Scenario) -> None:
    mocks = served(scenario)
    assert call(mocks, "mail", "save_draft", **REPLY)["status"] == "saved"
    assert call(mocks, "mail", "find_draft", message_id="<1@example.com>") == {"state": "saved"}
    assert (len(mocks.mocks.mail.drafts), mocks.mocks.mail.sent_emails) == (1, [])


def test_the_warranty_answers_as_the_scenario_says(scenario: Scenario) -> None:
    answer = {"status": "on hold", "further": {"a": [1]}}
    assert call(served(scenario, warranty_api=answer), "warranty", "check_warranty", serial_number="x") == answer
    assert call(served(scenario), "warranty", "check_warranty", serial_number="x") == {"status": "not_found"}


def test_tickets_and_notes(scenario: Scenario) -> None:
    mocks = served(scenario)
    assert call(mocks, "ticketing", "find_ticket", idempotency_key="k") == {"ticket_id": None}
    assert call(mocks, "ticketing", "create_ticket", **TICKET) == {"ticket_id": "MOCK-TICKET-001", "status": "created"}
    assert call(mocks, "ticketing", "create_ticket", **TICKET)["status"] == "existing"
    note = {"ticket_id": "MOCK-TICKET-001", "note": "called", "idempotency_key": "n"}
    assert [call(mocks, "ticketing", "add_note", **note)["status"] for _ in range(2)] == ["added", "existing"]
    listed = call(mocks, "ticketing", "list_tickets")
    assert (listed["total"], listed["tickets"][0]["notes"]) == (1, 1)
    assert call(mocks, "ticketing", "find_ticket", idempotency_key="k") == {"ticket_id": "MOCK-TICKET-001"}


@pytest.mark.parametrize(
    ("key", "server", "tool", "arguments"),
    [
        ("gmail", "mail", "send_reply", REPLY),
        ("warranty_api", "warranty", "check_warranty", {"serial_number": "x"}),
        ("ticketing", "ticketing", "create_ticket", TICKET),
    ],
)
def test_our_services_fail_as_the_scenario_says(
    scenario: Scenario, key: str, server: str, tool: str, arguments: dict[str, Any]
) -> None:
    down = served(scenario, **{key: {"error": "unavailable"}})
    assert "_unavailable: the service is not available" in call(down, server, tool, **arguments)
    malformed = served(scenario, **{key: {"error": "malformed"}})
    assert call(malformed, server, tool, **arguments) in ({"unexpected": "answer"}, None)
    hanging = served(scenario, **{key: {"error": "timeout"}})
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(hanging.servers[server].dispatch(tool, arguments), 0.05))
    for mocks in (down, malformed, hanging):
        assert (mocks.mocks.mail.sent_emails, mocks.mocks.ticketing.created_tickets) == ([], [])
        assert len(mocks.tools.calls) == 1


def test_a_server_that_only_the_scenario_knows(scenario: Scenario) -> None:
    mocks = served(scenario, orders={"get": [{"when": {"id": "A"}, "answer": {"status": "shipped"}}], "say": "Hi"})
    get, say = mocks.servers["orders"].declarations()
    assert (get.name, list(get.input_schema["properties"]), say.name) == ("get", ["id"], "say")
    assert call(mocks, "orders", "get", id="A", more=1) == {"status": "shipped"}
    result = asyncio.run(mocks.servers["orders"].dispatch("say", {}))
    assert (result.structured_content, result.content[0].text) == (None, "Hi")
    assert "no answer for these arguments" in call(mocks, "orders", "get", id="B")
    assert len(mocks.tools.unknown) == 1


@pytest.mark.parametrize(
    ("answer", "content", "noted"),
    [
        ({"answer": [1, "a"]}, [{"type": "text", "text": '[1, "a"]'}], '{"result": [1, "a"]}'),
        ({"answer": "None left", "is_error": True}, [{"type": "text", "text": "None left"}], "None left"),
        ({"content": [{"type": "text", "text": "Sales"}, {"type": "image"}]}, None, "Sales[image image/png]"),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
            [{"type": "resource_link", "uri": "file:///a", "name": "a"}],
            "[resource_link]",
        ),
    ],
)
def test_answers_of_every_form(
    scenario: Scenario, answer: dict[str, Any], content: list[dict[str, Any]] | None, noted: str
) -> None:
    mocks = served(scenario, orders={"get": answer})
    result = asyncio.run(mocks.servers["orders"].dispatch("get", {}))
    told = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert told["isError"] is answer.get("is_error", False)
    if content is None:
        assert b64decode(told["content"][1]["data"]).startswith(b"\x89PNG")
    else:
        assert told["content"] == content
    (made,) = mocks.tools.calls
    assert (made.answer, made.refused) == (noted, False)


def test_what_is_no_json_is_refused(scenario: Scenario) -> None:
    """A report that held it could be read by no other program, so it is noted as text."""
    mocks = served(scenario, orders={"get": {}})
    assert "NaN and infinity are no JSON" in call(mocks, "orders", "get", id="A", amount=float("nan"))
    (noted,) = mocks.tools.calls
    assert (noted.arguments, noted.refused) == ({"id": "A", "amount": "NaN"}, True)


def test_every_call_is_noted_with_what_came_of_it(scenario: Scenario) -> None:
    down = {"error": "unavailable"}
    mocks = served(scenario, orders={"get": {"when": {"id": "A"}, "answer": "shipped"}}, ticketing=down)
    calls = [
        ("mail", "send_reply", REPLY),
        ("mail", "send_reply", {"to": "nobody"}),
        ("mail", "read_raw", {"id": "other"}),
        ("mail", "sned", {}),
        ("orders", "get", {"id": "A", "action_type": "mail.send_reply"}),
        ("orders", "get", {"id": "B"}),
        ("orders", "gte", {}),
        ("ticketing", "create_ticket", TICKET),
    ]
    told = [call(mocks, server, tool, **arguments) for server, tool, arguments in calls]
    steps = [call.as_step() for call in mocks.tools.calls]
    assert [step["action"]["action_type"] for step in steps] == [f"{server}.{tool}" for server, tool, _ in calls]
    feedback = [step["feedback"] for step in steps]
    assert [each["done"] for each in feedback] == [True] + [False] * 7
    assert json.loads(feedback[0]["message"]) == told[0]
    assert [each["message"] for each in feedback[1:4]] == told[1:4]
    assert [each.get("refused", False) for each in feedback] == [False, True, True, True, False, True, True, False]
    assert [each.get("error", False) for each in feedback] == [False, True, True, True, False, True, True, True]
    assert "has no answer for these arguments" in feedback[5]["message"]
    assert [each.as_dict().get("refused") for each in mocks.tools.calls[:2]] == [None, told[1]]


def test_a_call_that_is_never_answered_is_noted_as_such(scenario: Scenario) -> None:
    mocks = served(scenario, warranty_api={"error": "timeout"})
    with pytest.raises(TimeoutError):
        asyncio.run(
            asyncio.wait_for(mocks.servers["warranty"].dispatch("check_warranty", {"serial_number": "x"}), 0.01)
        )
    assert mocks.tools.calls[0].as_step()["feedback"] == {"done": False, "message": "", "answered": False}


def test_of_a_long_answer_both_ends_are_kept(scenario: Scenario) -> None:
    mocks = served(scenario, orders={"get": f"begin{'x' * 1_000_000}end"})
    assert len(call_text(mocks, "orders", "get")) == 1_000_008
    noted = str(mocks.tools.calls[0].answer)
    assert (noted[:5], noted[-3:], "characters left out" in noted, len(noted) < 70_000) == ("begin", "end", True, True)


def call_text(mocks: ServedMocks, server: str, tool: str) -> str:
    return asyncio.run(mocks.servers[server].dispatch(tool, {})).content[0].text

"""Tickets and the mailbox of servers that are not ours, by our tools' names."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, get_args

import pytest
from mcp_sessions import TICKET, Script, Servers, failure, structured, tool
from waiting import PATIENCE_S

from guarantee_email_agent.services.mcp.mcp_services import CALLS, DRAFT_CALLS, READ_CALLS, McpTickets
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.services.ports import DraftState, InboxEntry, InboxFilter, Reply
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import MCPConnectionError
from guarantee_email_agent.utils.retry import call_with_retry

pytestmark = pytest.mark.anyio

NOTE = ("TICKET-1", "The customer wrote again.", "note-1")


def mcp_tickets(servers: Servers, script: Script) -> McpTickets:
    return McpTickets(servers.session(servers.scripted(script), "ticketing"), PATIENCE_S, servers.clock)


async def test_fields_that_a_server_has_no_argument_for_are_its_details(script: Script, servers: Servers) -> None:
    create = tool("create_ticket", *TICKET, "details")
    script.write(create, create_ticket=structured({"ticket_id": "T-1"}))
    tickets = mcp_tickets(servers, script)
    assert await tickets.test_connection()
    await tickets.create_ticket(TICKET)
    await tickets.create_ticket({**TICKET, "order_number": "AB-1"})
    assert script.calls == [
        ["create_ticket", TICKET],
        ["create_ticket", {**TICKET, "details": {"order_number": "AB-1"}}],
    ]


async def test_a_server_that_could_open_a_ticket_twice_is_refused(script: Script, servers: Servers) -> None:
    script.write(tool("create_ticket", *(TICKET.keys() - {"idempotency_key"})))
    with pytest.raises(MCPConnectionError, match=r"does not offer create_ticket\(idempotency_key\)"):
        await mcp_tickets(servers, script).test_connection()


@pytest.mark.parametrize("offered", [tool("comment", "ticket_id", "note"), tool("add_note", "ticketId", "note")])
async def test_a_server_without_our_way_of_adding_notes_gets_none(
    offered: dict[str, object], script: Script, servers: Servers
) -> None:
    script.write(offered)
    assert await mcp_tickets(servers, script).add_note(*NOTE) is False
    assert script.calls == []


async def test_a_note_for_a_server_that_does_not_start_is_an_error(servers: Servers) -> None:
    tickets = McpTickets(servers.session(ServerLaunch("mcp.test", "no-such"), "ticketing"), PATIENCE_S, servers.clock)
    assert (await failure(tickets.add_note(*NOTE))).outage


REPLY = Reply("customer@example.org", "Re: x", "text", "<reply-1@example.com>", thread_id="thread")
UNCERTAIN = {"error": {"code": "mail_timeout", "message": "no answer", "retryable": True, "uncertain": True}}


class Mailbox:
    """Somebody's server, and the client of it. `calls` are those that reached it."""

    def __init__(self, script: Script, servers: Servers) -> None:
        self._script = script
        self._tools: list[dict[str, Any]] = []
        self._answers: dict[str, dict[str, Any]] = {}
        self.offers(CALLS)
        self.session = servers.session(servers.scripted(script), "mail")
        self.client = servers.mail_client(self.session)

    def offers(self, *calls: Mapping[str, AbstractSet[str]]) -> None:
        self._tools = [tool(name, *arguments) for offered in calls for name, arguments in offered.items()]
        self._write()

    def answers(self, **contents: Mapping[str, Any]) -> None:
        self._answers = {name: structured(content) for name, content in contents.items()}
        self._write()

    def _write(self) -> None:
        self._script.write(*self._tools, **{each["name"]: structured({}) for each in self._tools} | self._answers)

    @property
    def calls(self) -> list[Any]:
        return self._script.calls


@pytest.fixture
def mailbox(script: Script, servers: Servers) -> Mailbox:
    return Mailbox(script, servers)


async def test_a_filter_is_always_passed_on(mailbox: Mailbox) -> None:
    mailbox.answers(list_unprocessed={"messages": [{"id": "1", "size": 5}, {"id": "2", "size": 5, "received": 7.5}]})
    entries = await mailbox.client.list_unprocessed(10, InboxFilter(1_800_000_000.0, skip_seen=True))
    assert entries == [InboxEntry("1", 5, 0.0), InboxEntry("2", 5, 7.5)]
    assert (await failure(mailbox.client.count_by_outcome())).code == "mail_malformed"  # no count is not a count of 0
    assert [given for _, given in mailbox.calls] == [
        {"limit": 10, "received_since": 1_800_000_000.0, "skip_seen": True},
        {"received_since": 0.0, "skip_seen": False},
    ]


@pytest.mark.parametrize("tool", ["list_unprocessed", "tally"])
@pytest.mark.parametrize("argument", ["received_since", "skip_seen"])
async def test_a_server_that_cannot_leave_the_past_alone_is_refused(mailbox: Mailbox, tool: str, argument: str) -> None:
    mailbox.offers({**CALLS, tool: CALLS[tool] - {argument}})
    with pytest.raises(MCPConnectionError) as caught:
        await mailbox.client.list_unprocessed()
    assert caught.value.message.startswith(f"mail: the server does not offer {tool}({argument});")
    assert mailbox.calls == []


async def test_a_server_that_cannot_tell_whether_a_mail_waits_is_believed(mailbox: Mailbox) -> None:
    assert await mailbox.client.is_waiting("1", skip_seen=True)
    assert mailbox.calls == []


async def test_a_server_that_can_tell_is_asked(mailbox: Mailbox) -> None:
    mailbox.offers(CALLS, {"is_waiting": {"id", "skip_seen"}})
    for waiting in (True, False):
        mailbox.answers(is_waiting={"waiting": waiting})
        assert await mailbox.client.is_waiting("1") is waiting
    assert mailbox.calls == [["is_waiting", {"id": "1", "skip_seen": False}]] * 2
    mailbox.answers(is_waiting={"waiting": "perhaps"})
    assert (await failure(mailbox.client.is_waiting("1"))).code == "mail_malformed"


@pytest.mark.parametrize("found", ["7", None])
async def test_a_mail_is_looked_for_by_its_message_id(mailbox: Mailbox, found: str | None) -> None:
    mailbox.offers(CALLS, {"find_mail": {"message_id"}})
    mailbox.answers(find_mail={"id": found})
    assert await mailbox.client.find_mail("<a@example.com>") == found
    assert mailbox.calls == [["find_mail", {"message_id": "<a@example.com>"}]]


async def test_a_server_that_cannot_look_for_a_mail_says_what_else_to_do(mailbox: Mailbox) -> None:
    problem = await failure(mailbox.client.find_mail("<a@example.com>"))
    assert (problem.code, "Save the mail as a file" in problem.message) == ("mail_unsupported", True)


@pytest.mark.parametrize("method", ["send", "save_draft"])
async def test_a_reply_that_may_have_been_taken_is_not_tried_again(mailbox: Mailbox, method: str) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS)
    mailbox.answers(send_reply=UNCERTAIN, save_draft=UNCERTAIN)
    error = await failure(call_with_retry(lambda: getattr(mailbox.client, method)(REPLY), SkippingClock()))
    assert (error.code, error.retryable, error.uncertain) == ("mail_timeout", False, True)
    ((_, given),) = mailbox.calls
    assert given["message_id"] == REPLY.message_id
    assert "thread_id" not in given


async def test_drafts_are_needed_only_where_they_are_asked_for(mailbox: Mailbox) -> None:
    assert await mailbox.client.test_connection()
    with pytest.raises(MCPConnectionError) as caught:
        await mailbox.client.test_connection(drafts=True)
    assert caught.value.message.startswith("mail: the server does not offer save_draft, find_draft;")


async def test_the_folder_for_drafts_is_tried_by_a_server_that_can(mailbox: Mailbox) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS, {"test_connection": {"drafts"}})
    await mailbox.client.test_connection()
    await mailbox.client.test_connection(drafts=True)
    assert mailbox.calls == [["test_connection", {}], ["test_connection", {"drafts": True}]]


async def test_a_draft_is_found_as_the_server_says(mailbox: Mailbox) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS)
    for state in get_args(DraftState):
        mailbox.answers(find_draft={"state": state})
        assert await mailbox.client.find_draft(REPLY.message_id) == state
    mailbox.answers(find_draft={"state": "sent"})
    assert (await failure(mailbox.client.find_draft(REPLY.message_id))).code == "mail_malformed"


async def test_an_observer_needs_the_reading_tools_alone(mailbox: Mailbox, servers: Servers) -> None:
    mailbox.offers(READ_CALLS, {"test_connection": {"drafts"}})
    assert await servers.mail_client(mailbox.session, read_only=True).test_connection()
    assert [name for name, _ in mailbox.calls] == ["tally"]

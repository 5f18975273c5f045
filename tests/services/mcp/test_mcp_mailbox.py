"""The mailbox of a server that is not ours, by our tools' names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import Servers, failure
from waiting import PATIENCE_S

from guarantee_email_agent.services.mail_client import MailClient
from guarantee_email_agent.services.mcp.mcp_mailbox import CALLS, DRAFT_CALLS, READ_CALLS
from guarantee_email_agent.services.ports import InboxEntry, InboxFilter, Reply
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import MCPConnectionError
from guarantee_email_agent.utils.retry import Backoff, RetryPolicy, call_with_retry

pytestmark = pytest.mark.anyio

REPLY = Reply("customer@example.org", "Re: x", "text", "<reply-1@example.com>", thread_id="thread")
UNCERTAIN = {"error": {"code": "mail_timeout", "message": "no answer", "retryable": True, "uncertain": True}}


class Mailbox:
    """Somebody's server, and the client of it. `calls` are those that reached it."""

    def __init__(self, folder: Path, servers: Servers) -> None:
        self.folder = folder
        self.offers(CALLS)
        self.answers()
        session = servers.session(servers.launch(str(folder), script="mail_tools_server.py"), name="mail")
        self.client = MailClient(session, servers.clock, PATIENCE_S)

    def offers(self, *calls: Any) -> None:
        tools = {tool: sorted(arguments) for offered in calls for tool, arguments in offered.items()}
        (self.folder / "tools.json").write_text(json.dumps(tools))

    def answers(self, **contents: object) -> None:
        (self.folder / "answers.json").write_text(json.dumps(contents))

    @property
    def calls(self) -> list[dict[str, Any]]:
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def mailbox(tmp_path: Path, servers: Servers) -> Mailbox:
    return Mailbox(tmp_path, servers)


async def test_a_filter_is_always_passed_on(mailbox: Mailbox) -> None:
    mailbox.answers(list_unprocessed={"messages": [{"id": "1", "size": 5}, {"id": "2", "size": 5, "received": 7.5}]})
    entries = await mailbox.client.list_unprocessed(10, InboxFilter(1_800_000_000.0, skip_seen=True))
    assert entries == [InboxEntry("1", 5, 0.0), InboxEntry("2", 5, 7.5)]
    await mailbox.client.count_by_outcome()
    assert [call["given"] for call in mailbox.calls] == [
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


@pytest.mark.parametrize("waiting", [True, False])
async def test_a_server_that_can_tell_is_asked(mailbox: Mailbox, waiting: bool) -> None:
    mailbox.offers(CALLS, {"is_waiting": {"id", "skip_seen"}})
    mailbox.answers(is_waiting={"waiting": waiting})
    assert await mailbox.client.is_waiting("1") is waiting
    assert mailbox.calls == [{"tool": "is_waiting", "given": {"id": "1", "skip_seen": False}}]


@pytest.mark.parametrize("found", ["7", None])
async def test_a_mail_is_looked_for_by_its_message_id(mailbox: Mailbox, found: str | None) -> None:
    mailbox.offers(CALLS, {"find_mail": {"message_id"}})
    mailbox.answers(find_mail={"id": found})
    assert await mailbox.client.find_mail("<a@example.com>") == found
    assert mailbox.calls == [{"tool": "find_mail", "given": {"message_id": "<a@example.com>"}}]


async def test_a_server_that_cannot_look_for_a_mail_says_what_else_to_do(mailbox: Mailbox) -> None:
    problem = await failure(mailbox.client.find_mail("<a@example.com>"))
    assert (problem.code, "Save the mail as a file" in problem.message) == ("mail_unsupported", True)


async def test_an_answer_that_is_none_stops_the_reply(mailbox: Mailbox) -> None:
    mailbox.offers(CALLS, {"is_waiting": {"id", "skip_seen"}})
    mailbox.answers(is_waiting={"waiting": "perhaps"})
    assert (await failure(mailbox.client.is_waiting("1"))).code == "mail_malformed"


@pytest.mark.parametrize("method", ["send", "save_draft"])
async def test_a_reply_that_may_have_been_taken_is_not_tried_again(mailbox: Mailbox, method: str) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS)
    mailbox.answers(send_reply=UNCERTAIN, save_draft=UNCERTAIN)
    policy = RetryPolicy(attempts=5, backoff=Backoff(0.1))
    error = await failure(call_with_retry(lambda: getattr(mailbox.client, method)(REPLY), policy, SkippingClock()))
    assert (error.code, error.retryable, error.details["uncertain"]) == ("mail_timeout", False, True)
    (call,) = mailbox.calls
    assert call["given"]["message_id"] == REPLY.message_id
    assert "thread_id" not in call["given"]


async def test_drafts_are_needed_only_where_they_are_asked_for(mailbox: Mailbox) -> None:
    assert await mailbox.client.test_connection()
    with pytest.raises(MCPConnectionError) as caught:
        await mailbox.client.test_connection(drafts=True)
    assert caught.value.message.startswith("mail: the server does not offer save_draft, find_draft;")


async def test_the_folder_for_drafts_is_tried_by_a_server_that_can(mailbox: Mailbox) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS, {"test_connection": {"drafts"}})
    await mailbox.client.test_connection()
    await mailbox.client.test_connection(drafts=True)
    assert mailbox.calls == [
        {"tool": "test_connection", "given": {}},
        {"tool": "test_connection", "given": {"drafts": True}},
    ]


@pytest.mark.parametrize("state", ["saved", "not_saved", "unknown"])
async def test_a_draft_is_found_as_the_server_says(mailbox: Mailbox, state: str) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS)
    mailbox.answers(find_draft={"state": state})
    assert await mailbox.client.find_draft(REPLY.message_id) == state


async def test_a_state_that_is_none_is_malformed(mailbox: Mailbox) -> None:
    mailbox.offers(CALLS, DRAFT_CALLS)
    mailbox.answers(find_draft={"state": "sent"})
    assert (await failure(mailbox.client.find_draft(REPLY.message_id))).code == "mail_malformed"


async def test_an_observer_needs_the_reading_tools_alone(tmp_path: Path, servers: Servers) -> None:
    mailbox = Mailbox(tmp_path, servers)
    mailbox.offers(READ_CALLS, {"test_connection": {"drafts"}})
    session = servers.session(servers.launch(str(tmp_path), script="mail_tools_server.py"), name="mail")
    reader = MailClient(session, servers.clock, PATIENCE_S, read_only=True)
    assert await reader.test_connection()
    assert [call["tool"] for call in mailbox.calls] == ["tally"]

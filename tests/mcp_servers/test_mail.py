"""The mail server: over a Maildir in memory, and over IMAP as a program."""

import asyncio
import base64
import email
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mail_servers import MailServers
from mail_stores import counts
from mcp import Client
from mcp_calls import CallError, call, in_memory, program

from guarantee_email_agent.mcp_servers.mailbox_tools import MailboxTools
from guarantee_email_agent.services.mail.maildir import Maildir

pytestmark = pytest.mark.anyio

MODULE = "guarantee_email_agent.mcp_servers.mail"
RAW = b"From: customer@example.org\r\nSubject: Gr\xfc\xdfe\r\nMessage-ID: <q@example.org>\r\n\r\nSN12345 \xff\r\n"
REPLY: dict[str, Any] = {
    "to": "customer@example.org",
    "subject": "Re: Grüße",
    "body": "Your warranty is valid.\n",
    "message_id": "<reply-1@example.com>",
    "in_reply_to": "<q@example.org>",
    "references": "<p@example.org> <q@example.org>",
    "headers": {"X-Ticket": "1"},
}


@pytest.fixture
def maildir(tmp_path: Path) -> Maildir:
    return Maildir(tmp_path / "mailbox", "support@example.com", create=True)


@pytest.fixture
async def client(maildir: Maildir) -> AsyncIterator[Client]:
    """Over an empty Maildir."""
    async with in_memory("mail", MailboxTools(maildir, 60.0).tools()) as client:
        yield client


@pytest.fixture
def start(mail_servers: MailServers) -> Callable[..., Client]:
    """Programs over IMAP, with further options and variables."""
    servers = mail_servers
    imap = ("--imap-host", servers.host, "--imap-port", servers.imaps_port, "--ca-file", servers.ca_file)
    options = (*imap, "--smtp-port", servers.smtps_port, "--from", servers.address)
    return lambda *more, **given: program("-m", MODULE, *options, *more, **{"IMAP_PASSWORD": servers.password, **given})


async def answer_one_mail(client: Client) -> None:
    (entry,) = (await call(client, "list_unprocessed"))["messages"]
    read = await call(client, "read_raw", id=entry["id"])
    assert read["size"] == entry["size"]
    assert base64.b64decode(read["raw"]).endswith(RAW)
    assert await call(client, "send_reply", **REPLY) == {"message_id": "<reply-1@example.com>", "status": "sent"}
    assert (await call(client, "send_reply", **REPLY))["status"] == "already_sent"
    assert await call(client, "find_sent", message_id="<reply-1@example.com>", wait_s=60) == {"state": "sent"}
    assert await call(client, "mark", id=entry["id"], outcome="answered") == {}
    assert await call(client, "list_unprocessed") == {"messages": [], "total": 0}
    assert await call(client, "tally") == counts(answered=1)


async def test_the_way_of_one_mail_in_a_maildir(client: Client, tmp_path: Path) -> None:
    (tmp_path / "mailbox/new/1700000000.M1P1.host").write_bytes(RAW)
    assert (await call(client, "test_connection"))["mailbox"]
    await answer_one_mail(client)
    (reply,) = (email.message_from_bytes(path.read_bytes()) for path in (tmp_path / "mailbox/.Sent/cur").iterdir())
    assert (reply["In-Reply-To"], reply["References"].split()) == (
        "<q@example.org>",
        ["<p@example.org>", "<q@example.org>"],
    )
    assert (reply["X-Ticket"], reply["Auto-Submitted"]) == ("1", "auto-replied")


@pytest.mark.slow
async def test_the_way_of_one_mail_over_imap_with_nothing_of_it_on_stderr(
    start: Callable[..., Client], mail_servers: MailServers, tmp_path: Path
) -> None:
    mail_servers.deliver(RAW)
    with (tmp_path / "stderr").open("w") as errlog:
        async with start(MAIL_KEY="k", errlog=errlog) as client:
            await answer_one_mail(client)
            with pytest.raises(CallError, match=r"^mail_invalid_argument: .*\Z"):
                await call(client, "send_reply", **{**REPLY, "subject": "of a customer\n"})
        async with start("--read-only", MAIL_KEY="k", errlog=errlog) as later:
            assert await call(later, "find_sent", message_id="<reply-1@example.com>", wait_s=60) == {"state": "sent"}
            assert not {"send_reply", "mark"} & {tool.name for tool in (await later.list_tools()).tools}
    assert (tmp_path / "stderr").read_text() == ""


async def test_find_sent_waits_no_longer_than_a_copy_takes(start: Callable[..., Client]) -> None:
    async with start("--copy-wait", 0.5) as client:
        assert await call(client, "find_sent", message_id="<reply-1@example.com>", wait_s=600) == {"state": "not_sent"}


async def test_a_wrong_password_for_sending_is_told_by_the_connection_test(start: Callable[..., Client]) -> None:
    async with start(SMTP_PASSWORD="wrong") as client:
        assert (await call(client, "tally"))["unprocessed"] == 0
        with pytest.raises(CallError, match=r"^mail_auth: the SMTP server localhost:"):
            await call(client, "test_connection")


async def test_waiting_for_mail_wakes_and_keeps_nobody(client: Client, tmp_path: Path) -> None:
    await call(client, "list_unprocessed")
    assert await call(client, "wait_for_mail", timeout_s=0.2) == {"changed": False}
    waiting = asyncio.create_task(call(client, "wait_for_mail", timeout_s=60))
    assert (await call(client, "tally"))["unprocessed"] == 0
    (tmp_path / "mailbox/new/1700000000.M1P1.host").write_bytes(RAW)
    assert await waiting == {"changed": True}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("read_raw", {"id": "nothing"}, "mail_not_found: there is no mail 'nothing' in the inbox any more"),
        (
            "find_sent",
            {"message_id": "<ä@example.com>"},
            "mail_invalid_argument: find_sent: message_id is no Message-ID of the form <text@domain>",
        ),
    ],
)
async def test_a_bad_call_is_told_in_one_line(client: Client, tool: str, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(CallError, match=rf"^{re.escape(told)}\Z"):
        await call(client, tool, **arguments)


async def test_tools_have_the_schemas_of_the_documentation(client: Client) -> None:
    text = (Path(__file__).parents[2] / "docs/mcp-servers.md").read_text("utf-8")
    for tool in (await client.list_tools()).tools:
        found = re.search(rf"^\| `{tool.name}` \|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
        assert found, f"{tool.name} is not documented"
        for argument in tool.input_schema.get("properties", {}):
            assert f"`{argument}`" in found[1], f"{tool.name}: {argument} is not documented"
        for result in (tool.output_schema or {}).get("properties", {}):
            assert f"`{result}`" in found[2], f"{tool.name}: {result} is not documented"

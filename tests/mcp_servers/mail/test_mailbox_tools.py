from __future__ import annotations

import base64
import email
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mail_stores import counts
from mcp_program import CallError, McpProgram, run_program
from waiting import wait_until

if TYPE_CHECKING:
    from mail_servers import MailServers

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
def start(tmp_path: Path) -> Iterator[Callable[..., McpProgram]]:
    with ExitStack() as stack:

        def start(*arguments: object, **env: str) -> McpProgram:
            program = McpProgram(MODULE, *arguments, env=env, stderr=tmp_path / "stderr")
            return stack.enter_context(program)

        yield start


@pytest.fixture
def start_imap(start: Callable[..., McpProgram], mail_servers: MailServers) -> Callable[..., McpProgram]:
    servers = mail_servers
    imap = ("--imap-host", servers.host, "--imap-port", servers.imaps_port, "--ca-file", servers.ca_file)
    options = (*imap, "--smtp-port", servers.smtps_port, "--from", servers.address)
    return lambda *more, **env: start(*options, *more, **{"IMAP_PASSWORD": servers.password, **env})


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    directory = tmp_path / "mailbox"
    for part in ("new", "cur", "tmp"):
        (directory / part).mkdir(parents=True)
    return directory


@pytest.fixture(params=["Maildir", "IMAP"])
def inbox(
    request: pytest.FixtureRequest, start: Callable[..., McpProgram], maildir: Path
) -> tuple[McpProgram, Callable[[bytes], object], Callable[[], list[bytes]]]:
    """A server over either kind of mailbox, a way to deliver mail to it, and what it sent."""
    if request.param == "Maildir":
        number = iter(range(1000))

        def deliver(raw: bytes) -> None:
            (maildir / "new" / f"170000000{next(number)}.M1P1.host").write_bytes(raw)

        program = start("--maildir", maildir, "--from", "support@example.com")
        return program, deliver, lambda: [path.read_bytes() for path in (maildir / ".Sent/cur").iterdir()]
    servers: MailServers = request.getfixturevalue("mail_servers")

    def sent() -> list[bytes]:
        servers.wait_until_sent()
        return servers.sent_to_customers()

    return request.getfixturevalue("start_imap")(), servers.deliver, sent


Inbox = tuple[McpProgram, Callable[[bytes], object], Callable[[], list[bytes]]]


def refused(program: McpProgram, tool: str, **arguments: Any) -> str:
    with pytest.raises(CallError) as caught:
        program.call(tool, **arguments)
    return caught.value.text


def test_the_way_of_one_mail(inbox: Inbox) -> None:
    program, deliver, sent = inbox
    deliver(RAW)
    listed = program.call("list_unprocessed")
    (entry,) = listed["messages"]
    read = program.call("read_raw", id=entry["id"])
    assert read["size"] == entry["size"]
    assert base64.b64decode(read["raw"]).endswith(RAW)
    assert program.call("send_reply", **REPLY) == {"message_id": "<reply-1@example.com>", "status": "sent"}
    assert program.call("send_reply", **REPLY)["status"] == "already_sent"
    assert program.call("find_sent", message_id="<reply-1@example.com>") == {"state": "sent"}
    assert program.call("mark", id=entry["id"], outcome="answered") == {}
    assert program.call("list_unprocessed") == {"messages": [], "total": 0}
    assert program.call("tally") == counts(answered=1)
    (reply,) = map(email.message_from_bytes, sent())
    assert (reply["In-Reply-To"], reply["References"].split()) == (
        "<q@example.org>",
        ["<p@example.org>", "<q@example.org>"],
    )
    assert (reply["X-Ticket"], reply["Auto-Submitted"]) == ("1", "auto-replied")


def test_waiting_for_mail_wakes_and_keeps_nobody(inbox: Inbox) -> None:
    program, deliver, _ = inbox
    program.call("list_unprocessed")
    program.call("wait_for_mail", timeout_s=0)  # an IMAP server's first one ends at once
    assert program.call("wait_for_mail", timeout_s=0.2) == {"changed": False}
    waiting = program.start_call("wait_for_mail", timeout_s=60)
    assert program.call("tally")["unprocessed"] == 0
    deliver(RAW)
    assert waiting.result(60).structured_content == {"changed": True}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "list_unprocessed",
            {"limit": 0},
            "mail_invalid_argument: list_unprocessed: 'limit': Input should be greater than or equal to 1",
        ),
        (
            "list_unprocessed",
            {"max": 1},
            (
                "mail_invalid_argument: list_unprocessed: unknown argument 'max'; its arguments are received_since, "
                "skip_seen, limit"
            ),
        ),
        ("read_raw", {}, "mail_invalid_argument: read_raw: the argument 'id' is missing"),
        ("read_raw", {"id": "nothing"}, "mail_not_found: there is no mail 'nothing' in the inbox any more"),
        (
            "mark",
            {"id": "1", "outcome": "done"},
            (
                "mail_invalid_argument: mark: 'outcome': Input should be 'answered', 'drafted', 'handed_over', "
                "'not_answered', 'quarantined' or 'unknown'"
            ),
        ),
        (
            "find_sent",
            {"message_id": "<ä@example.com>"},
            "mail_invalid_argument: find_sent: message_id is no Message-ID of the form <text@domain>",
        ),
        (
            "send_reply",
            {**REPLY, "to": "a@example.org, b@example.org"},
            "mail_invalid_argument: to is not one bare address like customer@example.org",
        ),
        (
            "send_reply",
            {**REPLY, "subject": "a\r\nBcc: b@example.org"},
            "mail_invalid_argument: subject holds a line break or NUL, which no header may hold",
        ),
        (
            "send_reply",
            {**REPLY, "headers": {"Bcc": "b@example.org"}},
            "mail_invalid_argument: headers may hold Auto-Submitted, Precedence and X-…, not 'Bcc'",
        ),
    ],
)
def test_a_bad_call_is_told_in_one_line(program: McpProgram, tool: str, arguments: dict[str, Any], told: str) -> None:
    assert refused(program, tool, **arguments) == told


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProgram]:
    """One server over an empty Maildir, for calls that change nothing."""
    directory = tmp_path_factory.mktemp("shared")
    options = ["--maildir", directory / "mailbox", "--create", "--from", "support@example.com"]
    with McpProgram(MODULE, *options, stderr=directory / "stderr") as program:
        yield program


def test_tools_have_the_schemas_of_the_documentation(program: McpProgram) -> None:
    documented = Path(__file__).parents[3] / "docs/mcp-servers.md"
    text = documented.read_text("utf-8")
    for name, tool in program.tools().items():
        assert f"### `{name}`" in text
        section = text.partition(f"### `{name}`")[2].partition("\n### ")[0]
        for argument in tool.input_schema.get("properties", {}):
            assert f"`{argument}`" in section, f"{name}: {argument} is not documented"
        for result in tool.output_schema.get("properties", {}):
            assert f'"{result}"' in section, f"{name}: {result} is not documented"


def test_the_connection_is_tested(inbox: Inbox) -> None:
    program, _, sent = inbox
    assert program.call("test_connection")["mailbox"]
    assert sent() == []


def test_find_sent_looks_into_every_folder_before_it_says_no(
    start_imap: Callable[..., McpProgram], mail_servers: MailServers
) -> None:
    """Others move what was sent: into an archive by hand, or by a rule as soon as it comes."""
    first = start_imap()
    first.call("send_reply", **REPLY)
    assert first.call("find_sent", message_id=REPLY["message_id"], wait_s=30) == {"state": "sent"}
    wait_until(lambda: first.call("list_unprocessed") and mail_servers.folder("Sent"))  # a list files the copy
    (copy,) = mail_servers.folder("Sent")
    mail_servers.empty()
    second = start_imap("--copy-wait", "0.1")
    assert second.call("find_sent", message_id=REPLY["message_id"], wait_s=30) == {"state": "not_sent"}
    mail_servers.put("Drafts", copy)
    assert second.call("find_sent", message_id=REPLY["message_id"], wait_s=30) == {"state": "not_sent"}
    with mail_servers.folder_of_its_own("Archive.2026"):
        mail_servers.put("Archive.2026", copy.replace(b"support@example.com", b"customer@example.org"))
        assert second.call("find_sent", message_id=REPLY["message_id"], wait_s=30) == {"state": "not_sent"}
        mail_servers.put("Archive.2026", copy)
        assert second.call("find_sent", message_id=REPLY["message_id"], wait_s=30) == {"state": "sent"}


def test_find_sent_waits_for_the_copy(start_imap: Callable[..., McpProgram]) -> None:
    start_imap(MAIL_KEY="k").call("send_reply", **REPLY)
    later = start_imap(MAIL_KEY="k")
    assert later.call("find_sent", message_id="<reply-1@example.com>", wait_s=60) == {"state": "sent"}
    assert later.call("list_unprocessed") == {"messages": [], "total": 0}


def test_find_sent_waits_no_longer_than_a_copy_takes(start_imap: Callable[..., McpProgram]) -> None:
    program = start_imap("--copy-wait", 0.5)
    assert program.call("find_sent", message_id="<reply-1@example.com>", wait_s=600) == {"state": "not_sent"}


def test_a_wrong_password_is_told_by_the_first_call(start_imap: Callable[..., McpProgram]) -> None:
    program = start_imap(IMAP_PASSWORD="wrong")
    assert refused(program, "tally").startswith("mail_auth: the IMAP server localhost:")


def test_a_wrong_password_for_sending_is_told_by_the_connection_test(start_imap: Callable[..., McpProgram]) -> None:
    program = start_imap(SMTP_PASSWORD="wrong")
    assert program.call("tally")["unprocessed"] == 0
    assert refused(program, "test_connection").startswith("mail_auth: the SMTP server localhost:")


def test_nothing_of_a_mail_is_written_to_stderr(inbox: Inbox, tmp_path: Path) -> None:
    program, deliver, _ = inbox
    deliver(RAW.replace(b"SN12345", b"canary"))
    (entry,) = program.call("list_unprocessed")["messages"]
    program.call("read_raw", id=entry["id"])
    program.call("send_reply", **{**REPLY, "body": "canary", "subject": "canary"})
    refused(program, "send_reply", **{**REPLY, "subject": "canary\n"})
    refused(program, "read_raw", id="canary")
    assert (tmp_path / "stderr").read_text() == ""


def test_a_maildir_is_made_where_that_is_asked_for(tmp_path: Path) -> None:
    options = ("--maildir", tmp_path / "new", "--create", "--from", "support@example.com")
    assert run_program(MODULE, *options).returncode == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["cur", "new", "tmp"]

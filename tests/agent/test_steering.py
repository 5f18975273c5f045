"""`release`, `retry` and `hand-over` from end to end: the real commands on a Maildir and a ledger."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from steered_desk import SteeredDesk

from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.cli import run


def test_a_mail_is_released_without_its_mailbox_and_loses_its_mark_to_an_agent(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
) -> None:
    key = desk.ended("first", "quarantined", "llm_timeout")
    assert run(["release", key[:8]]) == 0
    told = (
        "given back to the agents, with all its tries. One takes its mark off and looks at it once one runs: none does"
    )
    assert told in capsys.readouterr().out
    assert (desk.mark_of("first"), desk.row("first").outcome, desk.row("first").attempts) == ("quarantined", None, 0)
    settings = json.loads((desk.folder / "config.yaml").read_text())
    settings["agent"] = {"answer_since": "all", "require_eval": False}
    (desk.folder / "config.yaml").write_text(json.dumps(settings))
    (desk.folder / "warranties.csv").write_text("serial_number,expiration_date\nSN12345,2099-12-31\n")
    assert run(["run", "--once"]) == 0
    assert (desk.mark_of("first"), desk.row("first").outcome) == ("answered", "answered")


def test_a_mail_is_taken_over_without_its_mailbox_and_gets_its_mark_from_an_agent(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.receive("first")
    with desk.ledger() as ledger:
        ledger.release(desk.claim(ledger, "first"), count_attempt=True, retry_after_s=3600, reason="timeout")
        assert [run(["hand-over", "first"]) for _ in range(2)] == [0, 0]
        assert ledger.inbox([desk.location("first")]).seen == {desk.location("first")}
    assert (desk.row("first").outcome, desk.row("first").reason) == ("handed_over", "by_hand")
    assert "is with a person now; no agent answers it. An agent that runs sets its mark" in capsys.readouterr().out


def test_a_mail_server_that_cannot_be_reached_is_exit_code_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IMAP_PASSWORD", "hush")
    server = {"host": "127.0.0.1", "port": 9, "security": "none"}
    desk = SteeredDesk(tmp_path, mailbox={"from_address": "support@example.com", "imap": server})
    desk.ended("first", "quarantined")
    assert run(["log", "--subjects"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "the IMAP server 127.0.0.1:9 refuses connections" in line


def test_only_the_claim_of_a_process_that_runs_no_more_is_taken(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.receive("alive")
    desk.receive("killed")
    name, _, started = process_name().rpartition(":")
    with desk.ledger() as ledger:
        desk.claim(ledger, "alive", process_name())
        desk.claim(ledger, "killed", f"{name}:{int(started) + 1}")  # this id is another process's now
    assert [run(["release", mail]) for mail in ("alive", "killed")] == [1, 0]
    assert f":{os.getpid()}. Wait for its outcome" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ffffffff", "The ledger has no mail ffffffff. 'log' and 'status' list them"),
        ("abc", "The ledger has no mail abc. An id has 4 digits at least. 'log' and 'status' list them"),
        ("x\x1b[31m", r"The ledger has no mail x\x1b[31m. 'log' and 'status' list them"),
        ("\udcff", r"The ledger has no mail \udcff. 'log' and 'status' list them"),
        ("", "The ledger has no mail . 'log' and 'status' list them"),
    ],
)
def test_an_id_of_no_mail(desk: SteeredDesk, capsys: pytest.CaptureFixture[str], name: str, message: str) -> None:
    desk.ended("first", "handed_over")
    assert run(["release", name]) == 2
    assert capsys.readouterr().err == f"guarantee-email-agent: {message}\n"


@pytest.mark.parametrize("name", ["1795630529", "0123456789abcdef0123456789abcdef", "beef", "ABCDEF01", " first "])
def test_an_id_in_the_mailbox_may_look_like_a_key(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    desk.ended(name, "handed_over")
    assert run(["release", name]) == 0
    assert "is given back to the agents" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["release", "retry", "hand-over"])
def test_under_another_key_no_mail_is_known_by_its_id_in_the_mailbox(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    desk.ended("first", "handed_over")
    monkeypatch.setenv("LEDGER_KEY", "another")
    assert run([command, "first"]) == 2
    assert "was begun with another key. Use that one (LEDGER_KEY, " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "log", "release first", "retry first", "hand-over first"])
def test_the_log_of_the_agent_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Made by root once `logrotate` has moved the old one, it could not be written by the agent's user."""
    monkeypatch.chdir(tmp_path)
    desk = SteeredDesk(tmp_path, logging={"file": "missing/agent.log"})
    desk.ended("first", "quarantined")
    assert run(command.split()) == 0


@pytest.mark.parametrize("command", ["status", "log", "release first", "retry first", "hand-over first"])
def test_without_a_ledger_none_is_made(desk: SteeredDesk, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run(command.split()) == 2
    assert "There is no ledger at " in capsys.readouterr().err
    assert not list(desk.folder.glob("ledger*"))


def test_a_ledger_that_is_locked_is_one_line(desk: SteeredDesk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.ended("first", "handed_over")
    with closing(sqlite3.connect(desk.folder / "ledger.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        assert run(["status"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "is locked: another program has been writing for too long" in line

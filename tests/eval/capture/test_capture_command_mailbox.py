from __future__ import annotations

import io
from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.capture.capture_command import (
    MESSAGE_ID,
    CaptureOptions,
    capture_wrong,
    read_mailbox_mail,
)
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.ports import MarkedMail
from guarantee_email_agent.utils.errors import ConfigurationError, MCPConnectionError, ProcessingError

MAIL = b"From: ida@firm.de\nMessage-ID: <one@firm.de>\nSubject: Dryer\n\nIs SN48213 covered?\n"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A Maildir with one mail, which was answered."""
    for part in ("cur", "new", "tmp"):
        (tmp_path / "mailbox" / part).mkdir(parents=True)
    (tmp_path / "mailbox" / "cur" / "1700000000.M1P1.host:2,RS").write_bytes(MAIL)
    (tmp_path / "config.yaml").write_text("mailbox: {from_address: us@shop.de}\n", encoding="utf-8")
    return load_config(tmp_path / "config.yaml", {})


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_mail_is_read_and_the_mailbox_stays_as_it_is(config: Config, tmp_path: Path) -> None:
    before = files(tmp_path)
    raw, email = read_mailbox_mail("<one@firm.de>", config)
    assert (raw, email.sender) == (MAIL, "ida@firm.de")
    assert files(tmp_path) == before


def test_an_unknown_message_id_is_told(config: Config) -> None:
    with pytest.raises(ProcessingError, match="No mail of the mailbox has the Message-ID <two@"):
        read_mailbox_mail("<two@firm.de>", config)


def test_a_mailbox_that_is_not_there_is_a_connection_error(config: Config, tmp_path: Path) -> None:
    (tmp_path / "mailbox" / "cur").rename(tmp_path / "elsewhere")
    with pytest.raises(MCPConnectionError):
        read_mailbox_mail("<one@firm.de>", config)


def test_mails_that_a_person_flagged_wrong_become_scenarios_once(config: Config, tmp_path: Path) -> None:
    mailbox, suite = tmp_path / "mailbox", tmp_path / "scenarios"
    suite.mkdir()
    (mailbox / "dovecot-keywords").write_text("0 $AgentAnswered\n1 Wrong\n")
    (mailbox / "cur" / "1700000001.M1P1.host:2,Sab").write_bytes(MAIL.replace(b"covered", b"under warranty"))
    (mailbox / "cur" / "1700000002.M1P1.host:2,b").write_bytes(b"no mail")
    before = files(mailbox)
    options = CaptureOptions(directory=suite, look_up=LookUpSource(), today="2026-02-01")
    for _ in range(2):
        stream = io.StringIO()
        assert capture_wrong(options, config, stream, lambda _: None) == 1
        assert "✗ A mail that is flagged wrong: It cannot be read. Save it as a file" in stream.getvalue()
        assert stream.getvalue().endswith("2 mails flagged wrong. What has a scenario already gets no other.\n")
        (case,) = EvalLoader().discover_test_cases(suite)
        assert (case.scenario_id, case.review) == ("invalid_warranty_001", True)
        assert case.description.startswith("A mail that a person flagged wrong: answered, invalid-warranty.")
        assert "SN48213" not in case.input.email.body
    assert files(mailbox) == before


def test_a_mailbox_without_keywords_is_told(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Maildir, "list_mails", lambda _: [MarkedMail("first", None)])
    options = CaptureOptions(directory=Path(), look_up=LookUpSource(), today="2026-02-01")
    with pytest.raises(ConfigurationError, match="This mailbox keeps no keywords"):
        capture_wrong(options, config, io.StringIO(), lambda _: None)


@pytest.mark.parametrize("text", ["one@firm.de", "<>", "<one>", "<a b@firm.de>", "<a@b> <c@d>", '<a"@b>'])
def test_what_is_no_message_id_is_none(text: str) -> None:
    assert MESSAGE_ID.fullmatch(text) is None

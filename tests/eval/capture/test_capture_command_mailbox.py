from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.capture.capture_command import MESSAGE_ID, read_mailbox_mail
from guarantee_email_agent.utils.errors import MCPConnectionError, ProcessingError

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


@pytest.mark.parametrize("text", ["one@firm.de", "<>", "<one>", "<a b@firm.de>", "<a@b> <c@d>", '<a"@b>'])
def test_what_is_no_message_id_is_none(text: str) -> None:
    assert MESSAGE_ID.fullmatch(text) is None

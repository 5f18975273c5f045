from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from guarantee_email_agent.agent.file_owners import owned_by_their_folders
from guarantee_email_agent.config.settings import AgentSettings, Config, Logging, MailboxSettings

NOBODY = 65_534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone can give files away")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    folder = tmp_path / "desk"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return replace(
        Config(mailbox=MailboxSettings("support@example.com", tmp_path / "mailbox")),
        agent=AgentSettings(ledger=str(folder / "ledger.db")),
        logging=Logging(file=folder / "agent.log"),
    )


def test_what_root_makes_gets_the_owner_of_its_folder(config: Config) -> None:
    assert config.logging.file is not None
    with owned_by_their_folders(config):
        config.logging.file.touch()
    assert config.logging.file.stat().st_uid == NOBODY


def test_what_was_there_keeps_its_owner(config: Config) -> None:
    assert config.logging.file is not None
    config.logging.file.touch()
    with owned_by_their_folders(config):
        pass
    assert config.logging.file.stat().st_uid == 0


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_nobody_gets_a_file_of_roots_by_a_link(config: Config, tmp_path: Path, link: object) -> None:
    assert config.logging.file is not None
    assert callable(link)
    secret = tmp_path / "secret"
    secret.touch()
    with owned_by_their_folders(config):
        link(secret, config.logging.file)
    assert secret.stat().st_uid == 0

from dataclasses import replace
from pathlib import Path

import pytest

from guarantee_email_agent.agent.identity_key import identity_key, key_of_location, key_of_mailbox
from guarantee_email_agent.config.settings import AgentSettings, Config, Secrets
from guarantee_email_agent.utils.errors import ConfigurationError


def config(ledger: Path | str, key: str | None = None) -> Config:
    return replace(Config(), agent=AgentSettings(ledger=str(ledger)), secrets=Secrets(ledger_key=key))


def refusal(config: Config) -> str:
    with pytest.raises(ConfigurationError) as caught:
        identity_key(config)
    return caught.value.message


def test_a_file_beside_the_ledger_keeps_it_for_this_user_alone(tmp_path: Path) -> None:
    key = identity_key(config(tmp_path / "ledger.db"))
    assert len(key) == 32
    assert identity_key(config(tmp_path / "ledger.db")) == key
    assert (tmp_path / "ledger.db.key").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.db.key"]


def test_the_environment_wins_and_no_file_is_made(tmp_path: Path) -> None:
    assert identity_key(config(tmp_path / "ledger.db", "one")) != identity_key(config(tmp_path / "ledger.db", "two"))
    assert list(tmp_path.iterdir()) == []


def test_several_machines_need_one_key_in_the_environment(tmp_path: Path) -> None:
    shared = replace(config(tmp_path / "ledger.db"), secrets=Secrets(ledger_url="postgresql://db.example.com/agent"))
    for each in (shared, config("postgresql://db.example.com/agent")):
        assert "LEDGER_KEY is not set" in refusal(each)
    assert identity_key(config("postgresql://db.example.com/agent", "one"))


@pytest.mark.parametrize(
    ("file", "problem"), [("ledger.db", "every mail would look new"), ("ledger.db.key", "holds no key")]
)
def test_a_ledger_without_its_key_and_a_damaged_key_are_refused(tmp_path: Path, file: str, problem: str) -> None:
    (tmp_path / file).write_text("damaged")
    assert problem in refusal(config(tmp_path / "ledger.db"))


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    assert "cannot be read or made" in refusal(config(tmp_path / "none" / "ledger.db"))


def test_name_that_is_no_utf_8_has_a_key_too() -> None:
    """As a command line hands it over."""
    names = ("\udcff\udcfe", "\udcff")
    assert len({key_of_location("mailbox", name, b"key") for name in names}) == 2
    assert len({key_of_mailbox(name, b"key") for name in names}) == 2

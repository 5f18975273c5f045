"""What two configurations do not have in common."""

from __future__ import annotations

from pathlib import Path

from guarantee_email_agent.agent.changed_settings import changed_secrets, changed_settings, flat_settings
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config, Secrets

LOOK_UP = "look_ups: {orders: {topics: [order-status], number: order_number, pattern: '[0-9]{5}', labels: [order], "


def config(folder: Path, text: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(None, {"LEDGER_KEY": "hush"}, folder)


def test_settings_are_named_as_they_stand_in_the_file(tmp_path: Path) -> None:
    old = config(tmp_path, "agent: {limits: {per_hour: 1}}")
    new = config(tmp_path, "agent: {limits: {per_hour: 2}}\nmailbox: {imap: {host: imap.example.com}}")
    assert changed_settings(old, new) == ("agent.limits.per_hour", "mailbox.imap.host")
    assert changed_settings(old, old) == ()


def test_the_settings_of_a_look_up_bear_its_name(tmp_path: Path) -> None:
    old = config(tmp_path, LOOK_UP + "table: a.csv}}")
    new = config(tmp_path, LOOK_UP + "table: b.csv}}")
    assert changed_settings(old, new) == ("look_ups.orders.table",)
    assert "look_ups.orders.table" in changed_settings(old, config(tmp_path, ""))


def test_no_secret_is_a_setting(tmp_path: Path) -> None:
    assert "hush" not in str(flat_settings(config(tmp_path, "")))


def test_secrets_are_named_by_their_variables() -> None:
    old = Secrets(imap_password="a", mcp_environment={"TOKEN": "1", "OTHER": "1"})
    new = Secrets(imap_password="b", mcp_environment={"TOKEN": "2", "OTHER": "1"})
    assert changed_secrets(old, new) == ("IMAP_PASSWORD", "TOKEN")

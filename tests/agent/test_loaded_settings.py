"""How `check` knows what changed since an agent loaded it."""

from __future__ import annotations

import asyncio
import io
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from mailbox_in_memory import INSTRUCTIONS, KEY, MailboxInMemory, Tickets, Warranties, worker_on
from steered_desk import SteeredDesk

from guarantee_email_agent.agent.identity_key import identity_key, key_of_mailbox, mailbox_name
from guarantee_email_agent.agent.loaded_settings import differences, digests, flat_settings, is_setting, note_loaded
from guarantee_email_agent.agent.preflight import check_all
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger


def config(folder: Path, text: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(None, {"LEDGER_KEY": "hush"}, folder)


LOOK_UP = "look_ups: {orders: {topics: [order-status], number: order_number, pattern: '[0-9]{5}', labels: [order], "


def changed(old: Config, new: Config) -> tuple[str, ...]:
    return differences(flat_settings(old), flat_settings(new))


def test_settings_are_named_as_they_stand_in_the_file(tmp_path: Path) -> None:
    old = config(tmp_path, "agent: {limits: {per_hour: 1}}")
    new = config(tmp_path, "agent: {limits: {per_hour: 2}}\nmailbox: {imap: {host: imap.example.com}}")
    assert changed(old, new) == ("agent.limits.per_hour", "mailbox.imap.host")
    assert changed(old, old) == ()


def test_the_settings_of_a_look_up_bear_its_name(tmp_path: Path) -> None:
    old = config(tmp_path, LOOK_UP + "table: a.csv}}")
    new = config(tmp_path, LOOK_UP + "table: b.csv}}")
    assert changed(old, new) == ("look_ups.orders.table",)
    assert "look_ups.orders.table" in changed(old, config(tmp_path, ""))


def test_no_secret_is_a_setting(tmp_path: Path) -> None:
    assert "hush" not in str(flat_settings(config(tmp_path, "")))


def test_what_is_written_down_is_what_was_loaded(tmp_path: Path, ledger: Ledger) -> None:
    worker = worker_on(MailboxInMemory(), ledger, Warranties(), Tickets())
    loaded = config(tmp_path, "agent: {concurrency: 2}")
    asyncio.run(note_loaded(worker, loaded))
    noted = ledger.loaded_settings(key_of_mailbox(worker.mailbox_name, KEY))
    assert noted is not None
    assert noted.digests == digests(loaded, KEY)


def test_digests_tell_a_changed_setting_and_changed_new_and_missing_files(tmp_path: Path) -> None:
    shutil.copytree(INSTRUCTIONS, tmp_path / "instructions")
    before = digests(config(tmp_path, ""), b"key")
    main, scenarios = tmp_path / "instructions" / "main.md", tmp_path / "instructions" / "scenarios"
    main.write_text(main.read_text() + "\nBe kind.\n")
    (scenarios / "out-of-scope.md").unlink()
    (tmp_path / "instructions" / "lexicon" / "xx.md").write_text("new")
    now = digests(config(tmp_path, "agent: {concurrency: 2}\neval: {pass_threshold: 98}"), b"key")
    found = differences(before, now)
    assert found == (
        "agent.concurrency",
        "instructions/lexicon/xx.md",
        "instructions/main.md",
        "instructions/scenarios/out-of-scope.md",
    )
    assert [name for name in found if is_setting(name)] == ["agent.concurrency"]


def test_digests_hold_no_value_and_cannot_be_made_without_the_key(tmp_path: Path) -> None:
    given = config(tmp_path, "mailbox: {from_address: support@example.com}")
    assert "example" not in str(digests(given, b"key"))
    name = "mailbox.from_address"
    assert digests(given, b"key")[name] != digests(given, b"another")[name]


def test_check_leaves_out_what_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("LEDGER_KEY", "of the desk")
    desk = SteeredDesk(tmp_path)
    used = load_config(tmp_path / "config.yaml")
    key = identity_key(used)
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", key=key)) as ledger:
        of_another_start = {**digests(used, key), "agent.ledger": "0" * 12}
        ledger.save_loaded_settings(key_of_mailbox(mailbox_name(used), key), of_another_start)
    assert "agent.ledger" not in digests(used, key)
    assert "agent.ledger" in digests(desk.config, key)
    out = io.StringIO()
    check_all(tmp_path / "config.yaml", out, inbox=False)
    (line,) = [line for line in out.getvalue().splitlines() if " Changes: " in line]
    assert "Changes: none since an agent loaded everything, 2" in line


def test_check_tells_settings_that_need_a_restart_from_files_that_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = SteeredDesk(tmp_path)
    key = identity_key(desk.config)
    with desk.ledger() as ledger:
        before = {**digests(desk.config, key), "agent.concurrency": "0" * 12, "instructions/main.md": "0" * 12}
        ledger.save_loaded_settings(key_of_mailbox(mailbox_name(desk.config), key), before)
    out = io.StringIO()
    check_all(tmp_path / "config.yaml", out, inbox=False)
    files, settings = [line for line in out.getvalue().splitlines() if " Changes: " in line]
    assert files.endswith(", for an agent to take over: instructions/main.md")
    assert settings.endswith(", for a restart to take over: agent.concurrency")

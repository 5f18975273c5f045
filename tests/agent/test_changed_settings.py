"""What a running agent takes over, and how `check` knows what changed."""

from __future__ import annotations

import io
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from mailbox_in_memory import INSTRUCTIONS
from steered_desk import SteeredDesk

from guarantee_email_agent.agent.changed_settings import (
    changed_settings,
    differences,
    digests,
    is_setting,
    merged,
    needs_restart,
)
from guarantee_email_agent.agent.identity_key import identity_key, key_of_mailbox, mailbox_name
from guarantee_email_agent.agent.preflight import check_all
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.opening import open_ledger


def config(folder: Path, text: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(None, {}, folder)


def test_what_the_servers_were_started_with_stays(tmp_path: Path) -> None:
    old = config(tmp_path, "")
    new = config(
        tmp_path,
        "agent: {mode: drafts, ledger: other.db, max_mail_bytes: 5000, concurrency: 2, limits: {per_hour: 7}}\n"
        "llm: {max_tokens: 99}\nlogging: {level: DEBUG}\nmailbox: {maildir: elsewhere}\n",
    )
    used = merged(old, new)
    taken_over = ("agent.concurrency", "agent.limits.per_hour", "llm.max_tokens", "logging.level")
    assert changed_settings(old, used) == taken_over
    left = changed_settings(used, new)
    assert left == ("agent.ledger", "agent.max_mail_bytes", "agent.mode", "mailbox.maildir")
    assert all(map(needs_restart, left))
    assert not any(map(needs_restart, taken_over))


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

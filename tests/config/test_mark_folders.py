"""Names of folders for outcomes, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.mark_folders import MarkFolders
from guarantee_email_agent.utils.errors import ConfigurationError


def load(folder: Path, settings: str) -> MarkFolders:
    (folder / "config.yaml").write_text(f"mailbox: {{imap: {{mark_folders: {{{settings}}}}}}}\n", encoding="utf-8")
    return load_config(folder / "config.yaml", {}, folder).mailbox.imap.mark_folders


def test_names_in_any_script(tmp_path: Path) -> None:
    names = load(tmp_path, "parent: Garantie, handed_over: Bitte übernehmen & melden")
    assert (names.parent, names.handed_over, names.answered) == ("Garantie", "Bitte übernehmen & melden", "Answered")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("parent: ''", "mark_folders.parent: must not be blank"),
        ("unknown: '%'", "mark_folders.unknown: must be a name without * and %"),
        ('drafted: "a\\r\\nb"', "mark_folders.drafted: must be a name without"),
        ("drafted: ' a'", "mark_folders.drafted: must be a name without"),
        ("unknown: QUARANTINED", "has one name for two outcomes; give each a name of its own"),
    ],
)
def test_what_could_not_be_told_apart_is_refused(tmp_path: Path, settings: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, settings)
    assert told in caught.value.message


def test_folders_for_a_maildir_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mailbox: {imap: {marks: folders}}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(tmp_path / "config.yaml", {}, tmp_path)
    assert "mailbox.imap: has marks: folders without a host. Name the server, or leave" in caught.value.message

"""A set of instruction files takes effect as a whole without a mistake, or not at all."""

import logging
import shutil
from pathlib import Path

import pytest
from mailbox_in_memory import INSTRUCTIONS

from guarantee_email_agent.agent.worker_setup import CheckedInstructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.utils.errors import InstructionError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(INSTRUCTIONS, tmp_path / "instructions")
    return tmp_path / "instructions"


def checked(folder: Path) -> CheckedInstructions:
    return CheckedInstructions(InstructionFiles(folder / "main.md", folder / "scenarios"))


def test_a_mistake_is_told_once_with_file_and_line_and_the_old_set_stays(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    instructions = checked(folder)
    before = instructions.load()
    good = (folder / "main.md").read_text()
    (folder / "main.md").write_text("no frontmatter")
    assert instructions.load() is instructions.load() is before
    assert instructions.lexicon() is before.lexicon
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "main.md:1: has no frontmatter" in line
    with caplog.at_level(logging.INFO):
        (folder / "main.md").write_text(good)
        assert instructions.load() == before
    assert "can be read again" in caplog.text


def test_there_is_no_old_set_at_the_start(folder: Path) -> None:
    (folder / "main.md").write_text("no frontmatter")
    with pytest.raises(InstructionError):
        checked(folder)

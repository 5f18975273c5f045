"""The instruction files as they are shipped, and copies of them that a test may spoil."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import Lexicon, load_lexicon
from guarantee_email_agent.instructions.markup import MarkupError
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.utils.errors import InstructionError

SHIPPED = Path(__file__).parents[2] / "instructions"
SHIPPED_TOPICS = ("warranty", "other")


@pytest.fixture(scope="session")
def instructions() -> Instructions:
    """The instruction files as they are shipped."""
    return InstructionFiles(SHIPPED / "main.md", SHIPPED / "scenarios").load()


@pytest.fixture(scope="session")
def lexicon(instructions: Instructions) -> Lexicon:
    return instructions.lexicon


def shipped_interpreter() -> InstructionInterpreter:
    """The offline model with the shipped lexicon."""
    lexicon = load_lexicon(SHIPPED / "lexicon")
    return InstructionInterpreter(lambda: lexicon)


def markup_error(parse: Callable[[str], object], text: str) -> MarkupError:
    """Why `parse` cannot use `text`."""
    with pytest.raises(MarkupError) as caught:
        parse(text)
    return caught.value


@dataclass(frozen=True)
class InstructionFolder:
    """A copy of the shipped instruction files that a test may spoil."""

    path: Path

    @property
    def main(self) -> Path:
        return self.path / "main.md"

    @property
    def scenarios(self) -> Path:
        return self.path / "scenarios"

    def scenario(self, name: str) -> Path:
        return self.scenarios / f"{name}.md"

    def lexicon(self, language: str) -> Path:
        return self.path / "lexicon" / f"{language}.md"

    @property
    def files(self) -> InstructionFiles:
        return InstructionFiles(self.main, self.scenarios)

    def load(self) -> Instructions:
        return self.files.load()

    def problems(self) -> list[str]:
        """The lines of the error, with paths relative to the folder."""
        with pytest.raises(InstructionError) as caught:
            self.load()
        return caught.value.message.replace(f"{self.path}/", "").splitlines()

    def replace_all(self, path: Path, old: str, new: str) -> None:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def edit(self, path: Path, old: str, new: str) -> int:
        """Replace a text that stands once in a file; the line on which it stood, from 1."""
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return text[: text.index(old)].count("\n") + 1


@pytest.fixture
def folder(tmp_path: Path) -> InstructionFolder:
    shutil.copytree(SHIPPED, tmp_path / "instructions")
    return InstructionFolder(tmp_path / "instructions")

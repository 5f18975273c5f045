"""What is no error in the instruction files, and yet may not be what its author thinks: a sentence for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.utils.text import printable

_SKIPPED: Final = "._#"
"""What begins so is left out on purpose."""

_BACKUPS: Final = ("~", ".bak", ".orig", ".swp", ".tmp", ".rej")
"""What editors and `sed -i.bak` leave beside a file."""


class Overlooked(NamedTuple):
    """part: of the instructions, in one word."""

    part: str
    sentence: str


def find_overlooked(instructions: Instructions, scenarios_dir: Path) -> Iterator[Overlooked]:
    """Topics that no phrase speaks for, and files that nobody reads."""
    for topic in instructions.unphrased:
        sentence = f"no phrase of the lexicon speaks for '{topic}', so without a language model no mail is about it"
        yield Overlooked("Topics", f'{sentence}. Add <about topic="{topic}"> to a file of the lexicon')
    for name in sorted(os.listdir(scenarios_dir)):
        if not name.endswith(".md") and name[0] not in _SKIPPED and not name.lower().endswith(_BACKUPS):
            path = scenarios_dir / name
            why = "no folder is. Move its files up" if path.is_dir() else "its name does not end in .md. Rename it"
            yield Overlooked("Files", f"{printable(str(path))} is not read: {why}, or move it away")

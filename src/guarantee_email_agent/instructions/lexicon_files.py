"""Read the lexicon files: one for each language, in the folder `lexicon` beside the main instruction file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from guarantee_email_agent.files.file_signature import FileCache
from guarantee_email_agent.files.text_file import InputFileError, decode_text, read_bytes
from guarantee_email_agent.instructions.lexicon import Lexicon, parse_lexicon
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.utils.errors import InstructionError

MAX_BYTES = 256 * 1024
FOLDER = "lexicon"


@dataclass(slots=True)
class LexiconFiles:
    """The `*.md` files of a folder, read where one may have changed since, and parsed where one has."""

    folder: Path
    other_labels: tuple[str, ...] = ()
    _cache: FileCache[Lexicon] = field(default_factory=FileCache, repr=False, compare=False)

    @classmethod
    def beside(cls, main: Path, look_ups: Iterable[LookUp] = ()) -> Self:
        """Those of the set with this main file. look_ups: whose numbers are no serial numbers."""
        return cls(main.parent / FOLDER, tuple(label for look_up in look_ups for label in look_up.format.labels))

    def load(self) -> Lexicon:
        """Raises InstructionError, whose message has a line for every file that cannot be used."""
        if (unchanged := self._cache.begin()) is not None:
            return unchanged
        texts = self.read()
        return self._cache.keep(self.parse(texts), (str(self.folder), *(path for path, _ in texts)))

    def parse(self, texts: tuple[tuple[str, str], ...]) -> Lexicon:
        """What `read` gave. Raises InstructionError."""
        return parse_lexicon(texts, self.other_labels)

    def read(self) -> tuple[tuple[str, str], ...]:
        """(path, text) pairs in the order of the names. Raises InstructionError."""
        folder = str(self.folder)
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name[0] not in "._")
        except OSError as error:
            raise InstructionError(
                f"{folder}: cannot read the folder of the lexicon ({error.strerror}). The words for reading mail stand "
                "there, one file a language: 'guarantee-email-agent init' puts the shipped ones beside the main file",
                "instruction_lexicon_missing",
            ) from None
        return tuple((path, _read(path)) for path in (f"{folder}/{name}" for name in names))


def _read(path: str) -> str:
    try:
        return decode_text(read_bytes(path, MAX_BYTES))
    except InputFileError as error:
        raise InstructionError(
            f"{path}: cannot read the lexicon file ({error.message}). Correct it, or remove it",
            "instruction_lexicon_unreadable",
        ) from None

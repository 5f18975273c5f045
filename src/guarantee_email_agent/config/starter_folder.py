"""`init`: put the files that a user edits into a folder, and never replace one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from guarantee_email_agent.config.shipped_files import EDITED_FILES, shipped_path
from guarantee_email_agent.files.new_file import write_new_file
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable


@dataclass(frozen=True, slots=True)
class StarterFolder:
    """What became of each file, by its path in the folder: new, as this version has it, or different and kept."""

    written: tuple[Path, ...]
    same: tuple[Path, ...]
    different: tuple[Path, ...]


def fill_starter_folder(folder: Path) -> StarterFolder:
    """Copy config, instructions and scenarios into a folder, which is made where it is missing.

    What stands there already stays, whatever it is. Raises ConfigurationError (`init_no_folder`, `init_unwritable`)
    for a path that is no folder or cannot be written; what was written until then is whole, and a second call goes on.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{printable(str(folder))} is no folder. Name another one", "init_no_folder")
    written: list[Path] = []
    same: list[Path] = []
    different: list[Path] = []
    for source, name in _shipped_files():
        content, target = source.read_bytes(), folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if write_new_file(target, content):
                written.append(name)
            elif target.is_file() and target.read_bytes() == content:
                same.append(name)
            else:
                different.append(name)
        except OSError as error:
            raise ConfigurationError(
                f"{printable(str(target))} cannot be written ({error.strerror}). Correct that and run init again, or "
                "name another folder; files that are there stay as they are",
                "init_unwritable",
            ) from None
    return StarterFolder(tuple(written), tuple(same), tuple(different))


def _shipped_files() -> Iterator[tuple[Path, Path]]:
    """Each file with its path in the folder, in a fixed order."""
    for name in EDITED_FILES:
        source = shipped_path(name)
        if source is None:
            continue
        if source.is_file():
            yield source, Path(name)
            continue
        for file in sorted(source.rglob("*")):
            inside = file.relative_to(source)
            if file.is_file() and not any(part.startswith((".", "__pycache__")) for part in inside.parts):
                yield file, Path(name) / inside

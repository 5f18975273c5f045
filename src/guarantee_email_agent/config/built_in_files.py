"""The files that a user edits, as they come with the package, and what `init` copies of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.files.text_file import write_new_file
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

EDITED_FILES: Final = ("config.yaml", "instructions", "evals/scenarios")
"""What `init` copies: files, and folders with all that is in them."""

_PACKAGE: Final = Path(__file__).parent.parent


def built_in_path(name: str) -> Path | None:
    """Where one of `EDITED_FILES` is; None where the package came without it."""
    packaged = _PACKAGE / "defaults" / name
    if packaged.exists():
        return packaged
    checkout = _PACKAGE.parent.parent
    path = checkout / name
    return path if path.exists() and (checkout / "pyproject.toml").is_file() else None


class StarterFolder(NamedTuple):
    """What became of each file, by its path in the folder: new, as this version has it, or different and kept.

    left_out: translations that are not there and were not written, since what they translate is the owner's own text.
    """

    written: tuple[Path, ...]
    same: tuple[Path, ...]
    different: tuple[Path, ...]
    left_out: tuple[Path, ...] = ()


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
    left_out: list[Path] = []
    suite = EDITED_FILES[-1]
    places = {path.stem: path.parent for path in (folder / suite).rglob("*_*.yaml")}
    for source, name in _built_in_files():
        content, target = source.read_bytes(), folder / name
        if name.is_relative_to(suite) and name.stem in places:  # a second file of an id would be a duplicate
            target = places[name.stem] / name.name
            name = target.relative_to(folder)
        try:
            if not os.path.lexists(target) and _translates_own_text(source, target):
                left_out.append(name)
                continue
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
    return StarterFolder(tuple(written), tuple(same), tuple(different), tuple(left_out))


def _translates_own_text(source: Path, target: Path) -> bool:
    """Whether a file is `NAME.LANGUAGE.md` beside a `NAME.md` that is not the shipped one.

    Nobody here approved its words, and customers would read them beside what the owner wrote.
    """
    stem, dot, language = target.stem.partition(".")
    original = source.with_name(f"{stem}.md")
    own = target.with_name(f"{stem}.md")
    if not (dot and language and target.suffix == ".md" and original.is_file() and os.path.lexists(own)):
        return False
    return not own.is_file() or own.read_bytes() != original.read_bytes()


def _built_in_files() -> Iterator[tuple[Path, Path]]:
    """Each file with its path in the folder, in a fixed order."""
    for name in EDITED_FILES:
        source = built_in_path(name)
        if source is None:
            continue
        if source.is_file():
            yield source, Path(name)
            continue
        for file in sorted(source.rglob("*")):
            inside = file.relative_to(source)
            if file.is_file() and not any(part.startswith((".", "__pycache__")) for part in inside.parts):
                yield file, Path(name) / inside

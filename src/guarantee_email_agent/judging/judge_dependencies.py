"""The packages that a judge declares in its source (PEP 723).

What is declared is a version of Python and packages by name, read by `packaging` and written anew for uv: nothing in a
judge is a path, an address or an option.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.python_code import MAX_SOURCE_BYTES, NOTHING, FollowedCode, follow_code
from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.judging.package_installer import InstallError, create_environment, search_path
from guarantee_email_agent.utils.text import printable, truncate

_BLOCK: Final = re.compile(
    r"^# /// script[^\S\n]*\n(?P<content>(?:(?!# ///[^\S\n]*$)#(?: .*)?\n)*)(?P<end># ///[^\S\n]*$)?", re.MULTILINE
)
_BLOCK_START: Final = b"# /// script"
_MAX_BLOCK_CHARACTERS: Final = 20_000
_MAX_SHOWN_CHARACTERS: Final = 200

_environments: dict[tuple[_Declaration, str], Future[str]] = {}
_lock = threading.Lock()


class DependencyError(Exception):
    """Why a judge cannot have what it declares; to follow the name of its file."""


@dataclass(frozen=True, slots=True)
class _Declaration:
    """What a judge needs, in canonical form. python: version specifiers, empty where any Python will do."""

    dependencies: tuple[str, ...]
    python: str
    suits_this_python: bool

    def __str__(self) -> str:
        return _shown(", ".join(self.dependencies) or f"Python {self.python}")


def interpreter_for(judge: Path) -> str | None:
    """The Python that has what `judge` declares; None where it declares nothing that this one lacks.

    uv installs once for all judges that declare the same, into a folder that this process takes away at its end; they
    wait for each other, and no other judge waits for them. Raises DependencyError.
    """
    source = _read_source(judge)
    if _BLOCK_START not in source:
        return None
    declared = _parse_declaration(source)
    if declared is None or (not declared.dependencies and declared.suits_this_python):
        return None
    path = search_path(judge.parent)
    with _lock:
        provided = _environments.get((declared, path))
        if is_first := provided is None:
            provided = _environments[declared, path] = Future()
    if is_first:
        try:
            python = sys.executable if declared.suits_this_python else declared.python
            provided.set_result(create_environment(python, declared.dependencies, path))
        except BaseException as error:  # whoever waits gets it, too
            provided.set_exception(error)
            if not isinstance(error, InstallError):
                del _environments[declared, path]
                raise
    try:
        return provided.result()
    except InstallError as error:
        raise DependencyError(f"declares what it needs ({declared}), and {error}") from None


def follow_judges(judges: Iterable[str]) -> FollowedCode:
    """What these judges import and read. What they declare is chosen when they run."""
    code = NOTHING
    for judge in judges:
        code += follow_code([judge])
        if _BLOCK_START in _read_source(judge):
            what = "it declares packages whose versions are chosen when it runs"
            code += FollowedCode(unknown=(f"{os.path.basename(judge)}: {what}",))
    return code


def _read_source(judge: Path | str) -> bytes:
    with suppress(OSError):
        return read_start(judge, MAX_SOURCE_BYTES)
    return b""  # the judge's own process reports why


def _parse_declaration(source: bytes) -> _Declaration | None:
    """The `script` block, as PEP 723 reads it; None where there is none."""
    import tomllib  # few judges declare anything

    text = source.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        return None
    if len(blocks) > 1:
        raise DependencyError("declares dependencies in two blocks. Keep one")
    block = blocks[0]
    if not block["end"]:
        raise DependencyError("declares dependencies in a block without its end. Close it with the line: # ///")
    if len(block["content"]) > _MAX_BLOCK_CHARACTERS:
        raise DependencyError(f"declares dependencies in a block of more than {_MAX_BLOCK_CHARACTERS:,} characters")
    try:
        declared = tomllib.loads("".join(line[2:] + "\n" for line in block["content"].split("\n")))
    except (ValueError, RecursionError) as error:
        raise DependencyError(f"declares dependencies in a block that is no TOML: {_shown(str(error))}") from None
    tools = declared.get("tool")
    if isinstance(tools, dict) and "uv" in tools:
        # Ignoring a source given there would install another package of that name.
        raise DependencyError("has settings for uv, which a judge cannot make. Remove [tool.uv] from the block")
    dependencies = declared.get("dependencies", [])
    if not (isinstance(dependencies, list) and all(isinstance(each, str) for each in dependencies)):
        raise DependencyError("declares 'dependencies' not as a list of texts")
    python, suits = _parse_python(declared.get("requires-python", ""))
    return _Declaration(tuple(map(_parse_dependency, dependencies)), python, suits)


def _parse_python(declared: Any) -> tuple[str, bool]:
    """Version specifiers (PEP 440) in canonical form, and whether this Python is one of them.

    Anything else could be the path or the name of a program to uv, which it would run.
    """
    from packaging.specifiers import SpecifierSet  # 60 ms, and few judges declare anything

    if not isinstance(declared, str):
        raise DependencyError("declares 'requires-python' not as a text")
    try:
        specifiers = SpecifierSet(declared)
        _refuse_arbitrary_equality(specifiers)
        this_python = ".".join(map(str, sys.version_info[:3]))
        return str(specifiers), specifiers.contains(this_python, prereleases=True)
    except ValueError:
        problem = f"declares a 'requires-python' that is no version specifier: {_shown(declared)}"
        raise DependencyError(f'{problem}. Write one such as ">=3.11"') from None


def _parse_dependency(declared: str) -> str:
    """A package by name (PEP 508), in canonical form."""
    from packaging.requirements import Requirement  # few judges declare anything

    try:
        requirement = Requirement(declared)
        _refuse_arbitrary_equality(requirement.specifier)
    except (ValueError, RecursionError):
        problem = f"declares the dependency {_shown(declared)}, which is not the name of a package"
        raise DependencyError(f'{problem}. Write one such as "numpy>=2"') from None
    if requirement.url is not None:
        problem = f"declares the dependency {_shown(declared)} by its address"
        raise DependencyError(f"{problem}. Name a package of the index, with its version")
    return str(requirement)


def _refuse_arbitrary_equality(specifiers: Any) -> None:
    """`===` may be followed by anything at all."""
    if any(specifier.operator == "===" for specifier in specifiers):
        raise ValueError("=== compares texts, not versions")


def _shown(text: str) -> str:
    return printable(truncate(text, _MAX_SHOWN_CHARACTERS))

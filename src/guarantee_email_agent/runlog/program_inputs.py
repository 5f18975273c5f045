"""What every verdict depends on: the code of this package, and the versions of the libraries that decide."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.python_code import FollowedCode
from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.runlog.records import INCOMPLETE, Input
from guarantee_email_agent.utils.distribution import __version__

LIBRARIES: Final = ("jinja2", "packaging", "phonenumbers", "pycld2", "python-stdnum", "pyyaml", "ryaml")
OF_EXTRAS: Final = ("mcp", "pydantic")
"""Those of `--agent`. One that is not installed is known to decide nothing."""
_MAX_BYTES: Final = 1 << 28
_FOLDER: Final = Path(__file__).parents[1]
_METADATA: Final = re.compile(r"(.+?)-([^-]+?)(?:-py[\d.]+)?\.(?:dist|egg)-info")


@cache
def program_inputs() -> tuple[Input, ...]:
    """Read once: what runs here is the code that was loaded."""
    python = f"{sys.implementation.name} {sys.version}".encode()
    return (
        Input.of("package", "version", __version__.encode()),
        *_program(),
        Input.of("library", "python", python),
        *(each for name in LIBRARIES for each in _library(name)),
        *(each for name in OF_EXTRAS for each in _library(name, may_be_absent=True)),
    )


def _program() -> Iterator[Input]:
    try:
        yield Input("program", _FOLDER.name, digest_of_folder(_FOLDER))
    except OSError:  # it may be in an archive
        yield incomplete("the code of this program cannot be read")


def digest_of_folder(folder: Path) -> bytes:
    """Of the names and bytes of all files in it but those that Python makes. Raises OSError."""
    digest = hashlib.sha256()
    root = len(os.fspath(folder))
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            content = read_start(f"{place}/{name}", _MAX_BYTES)
            digest.update(b"%s/%s\0%d\0" % (os.fsencode(place[root:]), os.fsencode(name), len(content)))
            digest.update(content)
    return digest.digest()


def _raise(error: OSError) -> None:
    raise error


def code_inputs(code: FollowedCode) -> Iterator[Input]:
    """What followed code depends on beside its files; of variables of the environment the names alone are kept."""
    yield from _library_inputs(code.modules)
    for name in sorted(code.variables):
        yield Input.of("environment", name, b"")
        yield incomplete(f"the value of the environment variable {name} is not kept")
    yield from map(incomplete, code.unknown)


def _library_inputs(modules: Iterable[str]) -> Iterator[Input]:
    """The versions of what code imports, as it is installed beside us. modules: top-level ones."""
    from importlib.machinery import PathFinder

    for module in sorted(modules):
        names = [module] if _normalized(module) in _installed() else _distributions().get(module, [])
        for name in names:
            yield from _library(name)
        if names:
            continue
        if PathFinder.find_spec(module) is None:
            yield Input.of("library", module, b"not installed")
        else:
            yield incomplete(f"the version of {module} is not known")


def incomplete(reason: str) -> Input:
    return Input.of(INCOMPLETE, reason, b"", keep=False)


def _library(name: str, *, may_be_absent: bool = False) -> Iterator[Input]:
    found = _installed().get(_normalized(name))
    if found is None:
        absent = Input.of("library", name, b"not installed")
        yield absent if may_be_absent else incomplete(f"the version of {name} is not known")
        return
    version, place = found
    yield Input.of("library", name, version.encode())
    try:
        origin = (place / "direct_url.json").read_bytes()
    except OSError:
        return
    if re.search(rb'"editable":\s*true', origin):
        yield incomplete(f"{name} is installed from a folder whose files are not followed")


@cache
def _installed() -> dict[str, tuple[str, Path]]:
    """Version and metadata of each distribution that this Python finds, by the names of folders alone."""
    found: dict[str, tuple[str, Path]] = {}
    for place in sys.path:
        try:
            names = os.listdir(place or os.curdir)
        except OSError:
            continue
        for name in names:
            if known := _METADATA.fullmatch(name):
                found.setdefault(_normalized(known[1]), (known[2], Path(place, name)))
    return found


@cache
def _distributions() -> dict[str, list[str]]:
    from importlib.metadata import packages_distributions  # a tenth of a second, for code with other names

    return {module: list(names) for module, names in packages_distributions().items()}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

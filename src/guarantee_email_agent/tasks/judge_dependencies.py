"""The packages that a judge declares in its source (PEP 723), provided by uv."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UV_TIMEOUT_S = 600.0
_START = re.compile(rb"^# /// script[ \t\r]*$", re.MULTILINE)
_PLAIN_REQUIREMENT = re.compile(r">=\s*3\.(\d{1,4})(?:\.0)?")

_interpreters: dict[tuple[Path, bytes], str | DependencyError] = {}
_one_at_a_time = threading.Lock()


class DependencyError(Exception):
    """Why a judge cannot have what it declares; to follow the name of its file."""


def interpreter_for(judge: Path) -> str | None:
    """The Python that has what `judge` declares; None where it declares nothing that this one lacks.

    uv resolves and installs once for each version of the file. Raises DependencyError.
    """
    try:
        source = judge.read_bytes()
    except OSError:
        return None  # the judge's own process says why
    if not _START.search(source):
        return None
    key = (judge.absolute(), source)
    with _one_at_a_time:
        if key not in _interpreters:
            try:
                _interpreters[key] = _provided(judge, _declared(source))
            except DependencyError as error:
                _interpreters[key] = error
        found = _interpreters[key]
    if isinstance(found, DependencyError):
        raise found
    return found or None


def _declared(source: bytes) -> Mapping[str, Any]:
    """The `script` block, as PEP 723 reads it."""
    import tomllib  # few judges declare anything

    block: list[str] | None = None
    for line in source.decode("utf-8", "replace").splitlines():
        if block is None:
            block = [] if line.rstrip() == "# /// script" else None
        elif line.rstrip() == "# ///":
            break
        elif line == "#" or line.startswith("# "):
            block.append(line[2:])
        else:
            block = None
            break
    else:
        block = None
    if block is None:
        raise DependencyError("declares dependencies in a block without its end. Close it with the line: # ///")
    try:
        declared = tomllib.loads("\n".join(block))
    except tomllib.TOMLDecodeError as error:
        raise DependencyError(f"declares dependencies in a block that is no TOML: {error}") from None
    dependencies = declared.get("dependencies", [])
    if not (isinstance(dependencies, list) and all(isinstance(each, str) for each in dependencies)):
        raise DependencyError("declares 'dependencies' not as a list of texts")
    if not isinstance(declared.get("requires-python", ""), str):
        raise DependencyError("declares 'requires-python' not as a text")
    return declared


def _provided(judge: Path, declared: Mapping[str, Any]) -> str:
    if not declared.get("dependencies") and _suits(declared.get("requires-python", "")):
        return ""
    wanted = ", ".join(map(str, declared.get("dependencies", ()))) or f"Python {declared['requires-python']}"
    uv = _uv()
    if uv is None:
        raise DependencyError(
            f"declares what it needs ({wanted}), and there is no uv to provide it. Install uv: pip install uv"
        )
    _run(uv, wanted, "sync", "--quiet", "--script", str(judge))
    python = _run(uv, wanted, "python", "find", "--script", str(judge)).strip()
    if not python:
        raise DependencyError(f"declares what it needs ({wanted}), and uv named no Python that has it. Update uv")
    return python


def _suits(requirement: str) -> bool:
    if not requirement:
        return True
    plain = _PLAIN_REQUIREMENT.fullmatch(requirement.strip())
    return plain is not None and sys.version_info >= (3, int(plain[1]))


def _uv() -> tuple[str, ...] | None:
    import importlib.util
    import shutil

    if program := shutil.which("uv"):
        return (program,)
    return (sys.executable, "-m", "uv") if importlib.util.find_spec("uv") else None


def _run(uv: tuple[str, ...], wanted: str, *arguments: str) -> str:
    import subprocess

    try:
        done = subprocess.run(
            (*uv, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=UV_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DependencyError(f"declares what it needs ({wanted}), and uv did not run: {error}") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise DependencyError(f"declares what it needs ({wanted}), and uv cannot provide it: {said[-1000:]}")
    return done.stdout

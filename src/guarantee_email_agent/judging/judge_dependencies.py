"""The packages that a judge declares in its source (PEP 723), provided by uv.

Nothing of a package runs while it is installed, since that happens outside of the judge's isolation: no package is
built, no setting for uv is taken from the judge or the folders around it, and once there are packages in an environment
uv does not look into it again.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

UV_TIMEOUT_S = 600.0
_START = re.compile(rb"^# /// script[ \t\r]*$", re.MULTILINE)
_BLOCK = re.compile(
    r"^# /// script[^\S\n]*\n(?P<content>(?:(?!# ///[^\S\n]*$)#(?: .*)?\n)*)(?P<end># ///[^\S\n]*$)?", re.MULTILINE
)
_PLAIN_REQUIREMENT = re.compile(r">=\s*3\.(\d{1,4})(?:\.0)?")

_interpreters: dict[_Declaration, str | DependencyError] = {}
_lock = threading.Lock()


class DependencyError(Exception):
    """Why a judge cannot have what it declares; to follow the name of its file."""


@dataclass(frozen=True, slots=True)
class _Declaration:
    """What a judge needs. python: a version specifier, empty where any Python will do."""

    dependencies: tuple[str, ...]
    python: str

    def __str__(self) -> str:
        return ", ".join(self.dependencies) or f"Python {self.python}"


def interpreter_for(judge: Path) -> str | None:
    """The Python that has what `judge` declares; None where it declares nothing that this one lacks.

    uv installs once for all judges that declare the same, into a folder that this process takes away at its end.
    Raises DependencyError.
    """
    try:
        source = judge.read_bytes()
    except OSError:
        return None  # the judge's own process reports why
    if not _START.search(source):
        return None
    declared = _parse_declaration(source)
    if not declared.dependencies and _is_satisfied(declared.python):
        return None
    with _lock:
        if declared not in _interpreters:
            try:
                _interpreters[declared] = _create_environment(declared)
            except DependencyError as error:
                _interpreters[declared] = error
        found = _interpreters[declared]
    if isinstance(found, DependencyError):
        raise found
    return found


def _parse_declaration(source: bytes) -> _Declaration:
    """The `script` block, as PEP 723 reads it."""
    import tomllib  # few judges declare anything

    block = _BLOCK.search("\n".join(source.decode("utf-8", "replace").splitlines()))
    if block is None or not block["end"]:
        raise DependencyError("declares dependencies in a block without its end. Close it with the line: # ///")
    try:
        declared = tomllib.loads("\n".join(line[2:] for line in block["content"].splitlines()))
    except tomllib.TOMLDecodeError as error:
        raise DependencyError(f"declares dependencies in a block that is no TOML: {error}") from None
    dependencies = declared.get("dependencies", [])
    if not (isinstance(dependencies, list) and all(isinstance(each, str) for each in dependencies)):
        raise DependencyError("declares 'dependencies' not as a list of texts")
    python = declared.get("requires-python", "")
    if not isinstance(python, str):
        raise DependencyError("declares 'requires-python' not as a text")
    tools = declared.get("tool")
    if isinstance(tools, dict) and "uv" in tools:
        # Ignoring a source given there would install another package of that name.
        raise DependencyError("has settings for uv, which a judge cannot make. Remove [tool.uv] from the block")
    return _Declaration(tuple(dependencies), python.strip())


def _create_environment(declared: _Declaration) -> str:
    """The Python of a new environment that has what is declared."""
    if (uv := _find_uv()) is None:
        problem = "there is no uv to provide it. Install uv: pip install uv"
        raise DependencyError(f"declares what it needs ({declared}), and {problem}")
    folder = tempfile.mkdtemp(prefix="judge-packages-")
    atexit.register(_remove_folder, folder, os.getpid())
    os.chmod(folder, 0o755)  # noqa: S103 - a judge may be another user than we are
    environment = f"{folder}/environment"
    python = sys.executable if _is_satisfied(declared.python) else declared.python
    _run_uv(uv, declared, "venv", "--quiet", "--python", python, environment)
    if declared.dependencies:
        no_code = ("--no-build", "--no-compile-bytecode")
        where = ("--python", environment, "--", *declared.dependencies)
        _run_uv(uv, declared, "pip", "install", "--quiet", *no_code, *where)
    return f"{environment}/bin/python"


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a process that was forked from ours
        shutil.rmtree(folder, ignore_errors=True)


def _is_satisfied(requirement: str) -> bool:
    plain = _PLAIN_REQUIREMENT.fullmatch(requirement)
    return not requirement or (plain is not None and sys.version_info >= (3, int(plain[1])))


def _find_uv() -> tuple[str, ...] | None:
    if program := shutil.which("uv"):
        return (program,)
    package = importlib.util.find_spec("uv")
    # A folder that happens to have the name passes for a package, too, but for one without a file.
    return (sys.executable, "-m", "uv") if package is not None and package.origin is not None else None


def _run_uv(uv: tuple[str, ...], declared: _Declaration, *arguments: str) -> None:
    try:
        done = subprocess.run(
            (*uv, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",  # where no project's settings are found
            timeout=UV_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DependencyError(f"declares what it needs ({declared}), and uv did not run: {error}") from None
    if done.returncode != 0:
        output = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise DependencyError(f"declares what it needs ({declared}), and uv cannot provide it: {output[-1000:]}")

"""The packages that a judge declares in its source (PEP 723).

What is declared is a version of Python and packages by name, read by `packaging` and written anew for uv: nothing in a
judge is a path, an address or an option.

uv runs with our rights, outside of a judge's isolation, so it is given nothing that a task could have a say in: it
stands in an empty folder, reads no settings, has none of our variables but those that lead it to the index, writes to
its cache and the new environment alone (Landlock, where there is one), builds no package, downloads no Python, and ends
with its deadline and with this process. Once there are packages in an environment it does not look into it again.
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
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.python_code import MAX_SOURCE_BYTES, NOTHING, FollowedCode, follow_code
from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.isolation.processes import kill_group
from guarantee_email_agent.utils.text import printable, truncate

TIMEOUT_S: Final = 120.0
"""For one environment; the deadline of the judge begins after it."""

_MAX_OUTPUT_CHARACTERS: Final = 1000
_LANDLOCK_MOVES_FILES: Final = 2  # before, no file could be moved from a folder to another at all
_PACKAGE_ROOT: Final = str(Path(__file__).resolve().parents[2])

# Where the packages are, and how to get there.
_PASSED_VARIABLES: Final = frozenset(
    {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "NETRC", "TZ", "XDG_DATA_HOME"}
    | {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE", "SSL_CLIENT_CERT"}
    | {"UV_DEFAULT_INDEX", "UV_EXCLUDE_NEWER", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_HTTP_TIMEOUT"}
    | {"UV_INSECURE_HOST", "UV_LINK_MODE", "UV_NATIVE_TLS", "UV_OFFLINE", "UV_PYTHON_INSTALL_DIR"}
    | {"UV_SYSTEM_CERTS"}
)
_PASSED_PREFIX: Final = "UV_INDEX"  # UV_INDEX_URL, and the user and password of a named one
_FIXED_VARIABLES: Final = {"UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}

# Between our process and uv: ends with us, and may change nothing but the folders in its first argument.
_CONFINED: Final = (
    "import os, sys; sys.path.insert(0, {root!r}); from guarantee_email_agent.isolation import syscalls as kernel; "
    "kernel.die_with_parent(); kernel.no_new_privileges(); "
    "kernel.allow_changes_only_in({folders!r}, ['/dev/null']); os.execv(sys.argv[1], sys.argv[1:])"
)

_running: set[subprocess.Popen[str]] = set()


def search_path(excluded: Path) -> str:
    """`PATH` without what lies in a folder, or depends on the one that we stand in."""
    here, closed = Path(os.path.realpath(os.curdir)), os.path.realpath(excluded)
    entries = [entry for entry in os.get_exec_path() if os.path.isabs(entry)]
    real = {entry: Path(os.path.realpath(entry)) for entry in entries}
    return os.pathsep.join(entry for entry in entries if real[entry] != here and not real[entry].is_relative_to(closed))


def create_environment(python: str, packages: Sequence[str], path: str) -> str:
    """The Python of a new environment, which this process takes away at its end.

    python: our own one, or version specifiers. packages: names, with or without versions. path: where programs are
    looked for. Raises DependencyError.
    """
    uv = _find_uv(path)
    folder = tempfile.mkdtemp(prefix="judge-packages-")
    atexit.register(_remove_folder, folder, os.getpid())
    os.chmod(folder, 0o755)  # noqa: S103 - a judge may be another user than we are
    environment = f"{folder}/environment"
    deadline = time.monotonic() + TIMEOUT_S
    _run_uv(uv, folder, path, deadline, "venv", "--quiet", "--no-project", "--python", python, environment)
    if packages:
        no_code = ("--no-build", "--no-compile-bytecode")
        where = ("--python", environment, "--", *packages)
        _run_uv(uv, folder, path, deadline, "pip", "install", "--quiet", *no_code, *where)
    return f"{environment}/bin/python"


def _find_uv(path: str) -> tuple[str, ...]:
    if program := shutil.which("uv", path=path):
        return (program,)
    package = importlib.util.find_spec("uv")
    # A folder that happens to have the name passes for a package, too, but for one without a file.
    if package is not None and package.origin is not None:
        return (sys.executable, "-I", "-m", "uv")
    raise DependencyError("there is no uv to provide it. Install uv: pip install uv")


def _run_uv(uv: Sequence[str], folder: str, path: str, deadline: float, *arguments: str) -> None:
    workplace, temporary = f"{folder}/empty", f"{folder}/temporary"
    for each in (workplace, temporary):
        os.makedirs(each, exist_ok=True)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = os.path.abspath(os.environ.get("UV_CACHE_DIR") or os.path.join(home, "uv"))  # as uv finds it
    passed = [name for name in os.environ if name.upper() in _PASSED_VARIABLES or name.startswith(_PASSED_PREFIX)]
    given = {name: os.environ[name] for name in passed}
    command = [*uv, *arguments]
    if kernel.landlock_version() >= _LANDLOCK_MOVES_FILES:
        program = _CONFINED.format(root=_PACKAGE_ROOT, folders=[folder, cache])
        command = [sys.executable, "-I", "-B", "-c", program, *command]
    try:
        os.makedirs(cache, exist_ok=True)
        output, code = _run(
            command,
            workplace,
            {**given, **_FIXED_VARIABLES, "PATH": path, "UV_CACHE_DIR": cache, "TMPDIR": temporary},
            max(0.0, deadline - time.monotonic()),
        )
    except subprocess.TimeoutExpired:
        raise DependencyError(f"uv did not provide it within {TIMEOUT_S:g} s") from None
    except (OSError, ValueError) as error:
        raise DependencyError(f"uv did not run: {error}") from None
    if code != 0:
        reason = " ".join(output.split()) or f"exit code {code}"
        raise DependencyError(f"uv cannot provide it: {printable(reason[-_MAX_OUTPUT_CHARACTERS:])}")


def _run(command: Sequence[str], folder: str, environment: dict[str, str], timeout_s: float) -> tuple[str, int]:
    """What a program wrote to stderr, and its exit code; what runs for too long ends with all that it started."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        _running.add(process)
        try:
            return process.communicate(timeout=timeout_s)[1], process.returncode
        except BaseException:
            kill_group(process.pid)
            raise
        finally:
            _running.discard(process)


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a process that was forked from ours
        for process in tuple(_running):  # of a thread that nobody waits for any more
            kill_group(process.pid)
        shutil.rmtree(folder, ignore_errors=True)


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
            if not isinstance(error, DependencyError):
                del _environments[declared, path]
                raise
    try:
        return provided.result()
    except DependencyError as error:
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

"""A file system of a few kilobytes, for programs that are to find it full or read-only."""

import functools
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

_SUPPORT = Path(__file__).parent
_MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && cd "$2" && shift 2 && exec "$@"'


@functools.cache
def _missing() -> str | None:
    """Why there is none, by the program that is missing or refused."""
    try:
        tried = subprocess.run([*_unshare(), "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        return "unshare is not installed"
    return None if tried.returncode == 0 else f"unshare and mount: {tried.stderr.decode(errors='replace').strip()}"


def _unshare() -> list[str]:
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def run_on_small_disk(
    folder: Path, size: str, command: Sequence[str | Path], **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`, which is a disk of that size (`64k`) for it, empty, and gone once it is over."""
    if reason := _missing():
        pytest.skip(f"no small disk: {reason}")
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [*_unshare(), "sh", "-c", _MOUNT, "sh", size, str(folder), *map(str, command)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_SUPPORT), *sys.path]), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def run_python_on_small_disk(folder: Path, size: str, program: str) -> str:
    """What the program prints; it must end with 0."""
    done = run_on_small_disk(folder, size, [sys.executable, "-c", program])
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    """This process for a while: RLIMIT_FSIZE in bytes lets no file become larger, as a disk that is full does."""
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


def in_shell(*lines: str | Sequence[str | Path]) -> list[str | Path]:
    """A command that runs each line after the other, whatever it ends in; a sequence is quoted as one command."""
    commands = [line if isinstance(line, str) else shlex.join(map(str, line)) for line in lines]
    return ["sh", "-c", "\n".join(commands)]

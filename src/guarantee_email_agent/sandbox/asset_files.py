"""A task's `assets` folder on its way into a sandbox, read as what a stranger may have put together."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from guarantee_email_agent.sandbox.sandbox import SandboxLimits
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

_PART_BYTES: Final = 16 << 20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Upload = tuple[dict[str, str], bytes]
"""Query and body of a request that puts one entry, or a part of a file, into the sandbox."""


def require_real_folder(folder: Path) -> None:
    """Raises TaskError where `folder` is a link: what it leads to is the machine's, and not the task's."""
    if folder.is_symlink():
        raise _error(folder, f"is a link to {os.readlink(folder)}. Put a folder with the files themselves in its place")


def asset_uploads(folder: Path, name: str, limits: SandboxLimits) -> Iterator[Upload]:
    """What puts all that is in `folder` below `name`. Links come as links, so none leads to the machine's files.

    A file has the length that it had when it was opened, even where it grows. Raises TaskError where something is
    neither file, folder nor link, cannot be read, or has no room.
    """
    require_real_folder(folder)
    count, room = 0, limits.disk_bytes
    try:
        yield {"path": name, "folder": "1"}, b""
        for top, folders, files, descriptor in os.fwalk(folder, onerror=_raise):
            for entry in (*folders, *files):
                path = Path(top, entry)
                query = {"path": _as_text(path, f"{name}/{path.relative_to(folder)}")}
                found = os.stat(entry, dir_fd=descriptor, follow_symlinks=False)
                count += 1
                if count > limits.files:
                    raise _error(folder, f"holds more than the {limits.files} files that the sandbox may have")
                if stat.S_ISLNK(found.st_mode):
                    yield query | {"link": _as_text(path, os.readlink(entry, dir_fd=descriptor))}, b""
                elif stat.S_ISDIR(found.st_mode):
                    yield query | {"folder": "1"}, b""
                elif stat.S_ISREG(found.st_mode):
                    room -= found.st_size
                    if room < 0:
                        disk = f"the sandbox's disk of {limits.disk_bytes >> 20} MiB"
                        raise _error(folder, f"has no room on {disk}. Ask for more with sandbox.disk_mb")
                    for more, content in _read_parts(entry, descriptor, path):
                        yield query | more, content
                else:
                    raise _error(path, "is neither file, folder nor link. Remove it")
    except OSError as error:
        raise _error(Path(error.filename or folder), f"cannot be read ({error.strerror})") from None


def _read_parts(entry: str, folder: int, path: Path) -> Iterator[Upload]:
    with open(entry, "rb", opener=lambda name, _: os.open(name, _READ, dir_fd=folder)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _error(path, "was replaced while it was read. Try again")
        query, left = {"mode": f"{found.st_mode & 0o777:o}"}, found.st_size
        while True:
            content = file.read(min(left, _PART_BYTES))
            yield query, content
            left -= len(content)
            if left == 0 or not content:
                return
            query |= {"append": "1"}


def _as_text(path: Path, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _error(path, "has a name, or leads to one, that is not UTF-8. Rename it") from None
    return text


def _raise(error: OSError) -> None:
    raise error


def _error(path: Path, problem: str) -> TaskError:
    return TaskError(f"{printable(str(path))}: {printable(problem)}", "sandbox_assets")

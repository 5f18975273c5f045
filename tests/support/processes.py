"""Whether a process still runs, and ours as another user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534


def is_running(pid: int) -> bool:
    """False for a zombie too: it has ended, and its parent has not yet waited for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or before it was read
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@contextmanager
def as_nobody(sees: Path | None = None) -> Iterator[None]:
    """As a user who may not write what is not theirs, where we are root. sees: a temporary folder they can enter."""
    for folder in (sees, *sees.parents) if sees else ():
        if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    was = os.geteuid()
    os.seteuid(was or NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)

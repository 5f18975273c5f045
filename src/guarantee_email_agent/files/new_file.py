"""Writing a file that must not be there yet: whole or not at all, and never over another."""

from __future__ import annotations

import os
from pathlib import Path


def write_new_file(path: Path, content: bytes) -> bool:
    """Whether the file was written; False, and nothing happens, where anything stands there, be it a broken link.

    Raises OSError where it cannot be written; then nothing of it stays.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except FileExistsError:
        return False
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
    except BaseException:  # Ctrl-C, too
        path.unlink(missing_ok=True)
        raise
    return True

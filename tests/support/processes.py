"""Whether a process still runs."""

from pathlib import Path


def is_running(pid: int) -> bool:
    """False for a zombie too: it has ended, and its parent has not yet waited for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or before it was read
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"

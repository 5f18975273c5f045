"""Files are read again once they may have changed, and only then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.files.file_signature import SETTLED_NS, FileCache


def much_later() -> int:
    return time.time_ns() + 2 * SETTLED_NS


def cached(file: Path, now: Callable[[], int] = much_later) -> FileCache[str]:
    """A cache that holds what stands in the file."""
    cache = FileCache[str](now)
    assert cache.begin() is None
    cache.keep(file.read_text(), [str(file.parent), str(file)])
    return cache


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "main.md"
    path.write_text("before")
    return path


def test_files_that_did_not_change_are_not_read_again(file: Path) -> None:
    cache = cached(file)
    assert cache.begin() == cache.begin() == "before"


def _replaced(file: Path) -> None:
    status = file.stat()
    (file.parent / "new").write_text("behind")
    os.utime(file.parent / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (file.parent / "new").rename(file)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("longer than before"),
        lambda file: file.unlink(),
        lambda file: (file.parent / "de.md").touch(),
        lambda file: file.chmod(0),
        _replaced,
    ],
    ids=["written", "removed", "another added", "other rights", "replaced by one of the same size and time"],
)
def test_a_change_is_seen_and_stays_so_until_it_was_read(file: Path, change: Callable[[Path], object]) -> None:
    cache = cached(file)
    change(file)
    assert cache.begin() is None
    assert cache.begin() is None


def test_a_file_that_changed_just_now_is_read_again(file: Path) -> None:
    # It may be written once more within one tick of the file system's clock.
    assert cached(file, now=time.time_ns).begin() is None
    assert cached(file, now=lambda: time.time_ns() - 10 * SETTLED_NS).begin() is None

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small_disks import limited

from guarantee_email_agent.files.text_file import SETTLED_NS, FileCache, InputFileError, read_text, write_new_file


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("größe: ✓\n".encode(), "größe: ✓\n"),
        (b"\xef\xbb\xbfa: 1", "a: 1"),
        (b"a: 1\r\nb: 2\rc: 3\n", "a: 1\nb: 2\nc: 3\n"),
    ],
    ids=["text comes back as written", "a byte order mark is dropped", "every line break becomes a newline"],
)
def test_content_becomes_text(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    assert read_text(tmp_path / "a.yaml", 1000) == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nb: é\n".encode("latin-1"), r"not UTF-8 text \(line 2, column 4: byte 0xE9\); save it as UTF-8"),
        ("a: 1".encode("utf-16"), "UTF-16 text; save it as UTF-8"),
        (b"PK\3\4\x0a\0\xbf", "packed, as .zip, .gz, .xlsx and .eval are; unpack it"),
    ],
    ids=["Latin-1", "UTF-16", "ZIP"],
)
def test_another_encoding_is_named_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(InputFileError, match=message):
        read_text(tmp_path / "a.yaml", 1000)


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    assert not write_new_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_broken_link_stays_and_nothing_is_written_behind_it(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    assert not write_new_file(tmp_path / "a", b"new")
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_stays_of_a_file_that_does_not_fit(tmp_path: Path) -> None:
    with limited(resource.RLIMIT_FSIZE, 20), pytest.raises(OSError, match="File too large"):
        write_new_file(tmp_path / "a", b"new" * 10)
    assert not (tmp_path / "a").exists()


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


def test_another_file_behind_a_link_is_seen(file: Path) -> None:
    link, other = file.with_name("link.md"), file.with_name("other.md")
    link.symlink_to(file)
    other.write_text("behind")
    cache = FileCache[str](much_later)
    cache.begin()
    cache.keep("before", [str(link)])
    assert cache.begin() == "before"
    link.unlink()
    link.symlink_to(other)
    assert cache.begin() is None


def test_a_file_that_changed_just_now_is_read_again(file: Path) -> None:
    # It may be written once more within one tick of the file system's clock.
    assert cached(file, now=time.time_ns).begin() is None
    assert cached(file, now=lambda: time.time_ns() - 10 * SETTLED_NS).begin() is None

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guarantee_email_agent.files.text_file import InputFileError, read_text


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


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="the file does not exist") as caught:
        read_text(tmp_path / "none.yaml", 1000)
    assert caught.value.code == "document_not_found"


def test_folder_named_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    with pytest.raises(InputFileError, match="this is a folder, not a file"):
        read_text(tmp_path / "a.yaml", 1000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(InputFileError, match="this is a pipe, not a file"):
        read_text(tmp_path / "a.yaml", 1000)


def test_unreadable_file(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.symlink_to(file)  # taking its permissions away would not stop root
    with pytest.raises(InputFileError, match=r"cannot be read \(Too many levels of symbolic links\)"):
        read_text(file, 1000)


def test_name_with_a_nul() -> None:
    with pytest.raises(InputFileError, match="cannot be read"):
        read_text("a\0b", 1000)


def test_largest_size_is_accepted_and_one_more_byte_is_not(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"x" * 1000)
    assert len(read_text(file, 1000)) == 1000
    with pytest.raises(InputFileError, match="larger than 999 bytes") as caught:
        read_text(file, 999)
    assert caught.value.code == "document_too_large"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nb: é\n".encode("latin-1"), r"not UTF-8 text \(line 2, column 4: byte 0xE9\); save it as UTF-8"),
        ("a: 1".encode("utf-16"), "UTF-16 text; save it as UTF-8"),
    ],
    ids=["Latin-1", "UTF-16"],
)
def test_another_encoding_is_named_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(InputFileError, match=message):
        read_text(tmp_path / "a.yaml", 1000)

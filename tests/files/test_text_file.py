from __future__ import annotations

import os
from pathlib import Path

import pytest

from guarantee_email_agent.files.text_file import InputFileError, read_text


def test_text_comes_back_as_written(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("größe: ✓\n".encode())
    assert read_text(file, 1000) == "größe: ✓\n"


def test_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(file, 1000) == "a: 1"


def test_every_line_break_becomes_a_newline(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 1\r\nb: 2\rc: 3\n")
    assert read_text(file, 1000) == "a: 1\nb: 2\nc: 3\n"


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
    with pytest.raises(InputFileError, match="a pipe or a device"):
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


def test_latin1_names_the_place_and_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("a: 1\nb: é\n".encode("latin-1"))
    with pytest.raises(InputFileError, match=r"not UTF-8 text \(line 2, column 4: byte 0xE9\); save it as UTF-8"):
        read_text(file, 1000)


def test_utf16_is_called_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("a: 1".encode("utf-16"))
    with pytest.raises(InputFileError, match="UTF-16 text; save it as UTF-8"):
        read_text(file, 1000)

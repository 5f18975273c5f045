from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.eval.answer_command import read_mail_file
from guarantee_email_agent.utils.errors import ProcessingError

MAIL = b"From: ada@example.com\nSubject: Hi\n\nIs SN12345 covered?\n"


def no_stdin(_size: int) -> bytes:
    raise AssertionError("nobody asked for stdin")


def read(content: bytes, folder: Path) -> str:
    (folder / "mail.eml").write_bytes(content)
    return read_mail_file(str(folder / "mail.eml"), no_stdin)[1].new_text


def test_the_first_line_of_an_mbox_file_is_passed_over(tmp_path: Path) -> None:
    assert read(b"From ada@example.com Sat Jan 17 10:00:00 2026\n" + MAIL, tmp_path) == "Is SN12345 covered?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there is no mail in it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 99, "a file of Outlook's own. Save the mail as .eml"),
        (b"\xff\xfe\x00garbage", "no header fields, so it is no mail. A mail's file begins"),
        (b"Subject: Hi\n\nNobody wrote this", "has no sender"),
    ],
)
def test_what_is_no_mail_is_told_with_the_files_name(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProcessingError, match=rf"mail\.eml: .*{message}"):
        read(content, tmp_path)


def test_a_folder_is_no_mail(tmp_path: Path) -> None:
    with pytest.raises(ProcessingError, match="this is a folder, not a file"):
        read_mail_file(str(tmp_path), no_stdin)


def test_stdin_is_not_read_for_ever() -> None:
    with pytest.raises(ProcessingError, match="stdin: the mail is larger than 25,000,000 bytes"):
        read_mail_file("-", lambda size: b"a" * size)

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from mail_stores import REPLY, refused

from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.mail.maildir_folder import MaildirFolder, split_name
from guarantee_email_agent.services.mail.maildir_proofs import MaildirProofs

NOBODY = 65_534


@pytest.fixture
def folder(tmp_path: Path) -> MaildirFolder:
    folder = MaildirFolder(tmp_path / ".Drafts", "DS", MaildirProofs(tmp_path))
    folder.make()
    return folder


@contextmanager
def without_root() -> Iterator[None]:
    """As a user who may not write what is not theirs."""
    was = os.geteuid()
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.mark.parametrize(
    ("name", "base", "flags"),
    [
        ("1.host", "1.host", ""),
        ("1.host:2,", "1.host", ""),
        ("1.host:2,FSab", "1.host", "FSab"),
        ("1.host:1,x", "1.host", ""),
        ("Re: 00.eml", "Re: 00.eml", ""),
        ("Re: 00.eml:2,Sa", "Re: 00.eml", "Sa"),
        ("Re:2, at last.eml", "Re:2, at last.eml", ""),
        ("12:30", "12:30", ""),
    ],
)
def test_only_what_ends_a_name_is_flags(name: str, base: str, flags: str) -> None:
    assert split_name(name) == (base, flags)


@pytest.mark.parametrize("place", [".Drafts/cur", ".Drafts/new", ".Sent/cur"])
def test_a_draft_that_a_mail_program_wrote_anew_or_sent_is_still_found(
    maildir: Maildir, tmp_path: Path, place: str
) -> None:
    maildir.save_draft(REPLY)
    maildir.test_connection()
    (file,) = (tmp_path / "mailbox/.Drafts/cur").iterdir()
    file.rename(tmp_path / "mailbox" / place / "1800000000.M1P1.host:2,S")
    assert maildir.find_draft(REPLY.message_id) == "saved"
    assert maildir.save_draft(REPLY) == "already_saved"
    assert maildir.find_draft("<reply-2@example.com>") == "not_saved"


@pytest.mark.parametrize(
    ("raw", "is_found"),
    [
        (b"Subject: x\n\nMessage-ID: <a@example.com>\n", False),
        (b"Subject: x\r\n\r\nMessage-ID: <a@example.com>\r\n", False),
        (b"In-Reply-To: <a@example.com>\nX-Message-ID: <a@example.com>\nMessage-ID: <b@example.com>\n\n", False),
        (b"", False),
        (b"message-id:\n <a@example.com>\n\n", True),
        (b"Subject: x\r\nMessage-ID: <a@example.com>\r\n", True),
    ],
)
def test_only_the_header_names_a_mail_in_any_form(folder: MaildirFolder, raw: bytes, is_found: bool) -> None:
    (folder.directory / "cur" / "1:2,").write_bytes(raw)
    assert folder.has_message_id("<a@example.com>") is is_found


def test_a_folder_in_the_folder_is_no_mail(folder: MaildirFolder) -> None:
    (folder.directory / "cur" / "a folder").mkdir()
    assert not folder.has_message_id("<a@example.com>")


def test_a_file_in_place_of_the_folder_is_told_and_nothing_is_stored(maildir: Maildir, tmp_path: Path) -> None:
    drafts = tmp_path / "mailbox/.Drafts"
    drafts.touch()
    for work in (lambda: maildir.save_draft(REPLY), lambda: maildir.test_connection(drafts=True)):
        with refused("mail_folder_missing") as caught:
            work()
        assert str(drafts) in caught.value.message
        assert "there is a file where a directory of the Maildir belongs. Move it away" in caught.value.message
    assert maildir.test_connection()


@pytest.mark.parametrize("part", ["cur", "new", "tmp"])
def test_what_a_folder_lacks_is_made_anew(maildir: Maildir, tmp_path: Path, part: str) -> None:
    maildir.test_connection()
    (tmp_path / "mailbox/.Sent" / part).rmdir()
    assert maildir.test_connection()
    (tmp_path / "mailbox/.Sent" / part).rmdir()
    assert maildir.send(REPLY) == "sent"
    assert (tmp_path / "mailbox/.Sent" / part).is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to do without it for a while")
@pytest.mark.parametrize("part", ["cur", "new", "tmp"])
def test_a_maildir_that_cannot_be_written_is_told_before_a_mail_is_marked(part: str) -> None:
    with tempfile.TemporaryDirectory(prefix="inbox-", dir="/tmp") as root:
        os.chmod(root, 0o777)
        with without_root():
            maildir = Maildir(Path(root) / "mailbox", "support@example.com", create=True)
            maildir.test_connection()
            (Path(root) / "mailbox" / part).chmod(0o555)
            with refused("mail_unavailable") as caught:
                maildir.test_connection()
    assert caught.value.message.endswith("Permission denied. Give the user of the agent the right to write there")


def test_a_read_only_file_system_is_told_as_such(maildir: Maildir, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    with refused("mail_unavailable") as caught:
        maildir.test_connection()
    assert caught.value.message.endswith(f"{os.strerror(errno.EROFS)}. Mount it so that it can be written")
    assert not caught.value.retryable

import errno
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mail_stores import REPLY, open_maildir, refused
from processes import as_nobody
from small_disks import limited

from guarantee_email_agent.services.mail import maildir_folder
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.mail.maildir_folder import KEPT_MONTHS, MaildirFolder, MaildirProofs, split_name


@pytest.fixture
def folder(tmp_path: Path) -> MaildirFolder:
    folder = MaildirFolder(tmp_path / ".Drafts", "DS", MaildirProofs(tmp_path))
    folder.make()
    return folder


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
    (folder.directory / "cur" / "a folder").mkdir()
    os.mkfifo(folder.directory / "cur" / "a pipe")
    (folder.directory / "cur" / "not to be read").symlink_to("not to be read")
    (folder.directory / "cur" / "1:2,").write_bytes(raw)
    assert folder.has_message_id("<a@example.com>") is is_found
    assert sorted(folder.read_since(0.0, 3)) == sorted([b"", raw[:3]])


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
        with as_nobody():
            maildir = Maildir(Path(root) / "mailbox", "support@example.com", create=True)
            maildir.test_connection()
            (Path(root) / "mailbox" / part).chmod(0o555)
            with refused("mail_unavailable") as caught:
                maildir.test_connection()
    assert caught.value.message.endswith("Permission denied. Give the user of the agent the right to write there")


def test_a_read_only_file_system_is_told_as_such(maildir: Maildir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    with refused("mail_unavailable") as caught:
        maildir.test_connection()
    assert caught.value.message.endswith(f"{os.strerror(errno.EROFS)}. Mount it so that it can be written")
    assert not caught.value.retryable


SHARED_MEMORY = Path("/dev/shm")


def take_all(folder: Path) -> int:
    """As a program does that delivers what it finds: how many mails there were, which are gone then."""
    files = list(folder.glob("cur/*"))
    for file in files:
        file.unlink()
    return len(files)


@pytest.mark.parametrize("take", [take_all, lambda folder: folder.rename(folder.with_name(".Sent.2026"))])
def test_a_reply_that_another_program_took_is_still_proved(
    maildir: Maildir, directory: Path, take: Callable[[Path], object]
) -> None:
    maildir.send(REPLY)
    take(directory / ".Sent")
    for store in (maildir, open_maildir(directory)):
        assert store.find_sent(REPLY.message_id) == "sent"
        assert store.send(REPLY) == "already_sent"
    assert list(directory.glob(".Sent/cur/*")) == []


def test_a_draft_that_a_person_threw_away_is_not_stored_again(maildir: Maildir, directory: Path) -> None:
    maildir.save_draft(REPLY)
    take_all(directory / ".Drafts")
    assert open_maildir(directory).find_draft(REPLY.message_id) == "saved"
    assert maildir.save_draft(REPLY) == "already_saved"
    assert maildir.find_sent(REPLY.message_id) == "not_sent"


class Killed(BaseException):
    """In place of SIGKILL: no handler of ours catches it."""


class KilledAt:
    """Stands in for the module `os`, and dies before the given call that changes something."""

    CHANGES = frozenset({"open", "mkdir", "fsync", "rename", "truncate"})

    def __init__(self, step: int) -> None:
        self.left = step

    def __getattr__(self, name: str) -> Any:
        if name in self.CHANGES:
            self.left -= 1
            if self.left < 0:
                raise Killed(name)
        return getattr(os, name)


def test_killed_at_any_step_a_reply_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever another program takes away at once, what was delivered is proved, and the rest is sent by the next."""
    states = []
    for step in range(100):
        directory = tmp_path / str(step)
        with monkeypatch.context() as patch:
            patch.setattr(maildir_folder, "os", KilledAt(step))
            try:
                open_maildir(directory).send(REPLY)
            except Killed:
                killed = True
            else:
                killed = False
        taken = take_all(directory / ".Sent")
        states.append(open_maildir(directory).find_sent(REPLY.message_id))
        assert states[-1] == ("sent" if taken else "not_sent"), step
        open_maildir(directory).send(REPLY)
        assert taken + take_all(directory / ".Sent") == 1, step
        if not killed:
            break
    assert states.count("not_sent") > 10
    assert states.count("sent") >= 2  # one of them killed before the folder was known to be on the disk


def test_of_replies_with_one_id_at_once_one_is_sent_while_another_program_takes_them(directory: Path) -> None:
    mailboxes = [open_maildir(directory) for _ in range(8)]
    gate, done = threading.Barrier(8), threading.Event()
    mailboxes[0].test_connection()

    def send(maildir: Maildir) -> str:
        gate.wait()
        return maildir.send(REPLY)

    def take() -> int:
        taken = 0
        while not done.is_set():
            taken += take_all(directory / ".Sent")
        return taken + take_all(directory / ".Sent")

    with ThreadPoolExecutor(9) as threads:
        taking = threads.submit(take)
        assert sorted(threads.map(send, mailboxes)) == ["already_sent"] * 7 + ["sent"]
        done.set()
        assert taking.result() == 1


def fail(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_full_disk_at_the_second_try_leaves_the_reply_not_sent(
    maildir: Maildir, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maildir.test_connection()
    with monkeypatch.context() as patch:
        patch.setattr(maildir_folder, "rename_without_replacing", fail)
        with refused("mail_unavailable"):
            maildir.send(REPLY)
    with limited(resource.RLIMIT_FSIZE, 50), refused("mail_disk_full"):
        maildir.send(REPLY)
    assert maildir.find_sent(REPLY.message_id) == "not_sent"
    (waiting,) = (directory / "guarantee-email-agent/outgoing").iterdir()
    assert waiting.stat().st_size == 0


def deliver(proofs: MaildirProofs, name: str, target: Path, now: datetime) -> None:
    with proofs.exclusive(name):
        proofs.deliver(name, b"", target, now)


def test_a_mail_that_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    proofs, target = MaildirProofs(tmp_path), tmp_path / "target"
    target.write_bytes(b"it was there")
    with proofs.exclusive("sent-1"):
        assert not proofs.deliver("sent-1", b"", target, datetime(2026, 11, 30, tzinfo=UTC))
    assert target.read_bytes() == b"it was there"
    assert proofs.is_delivered("sent-1")


@pytest.mark.parametrize("first_year", [2026, 2099])
def test_the_oldest_months_are_forgotten_whatever_the_clock_said(tmp_path: Path, first_year: int) -> None:
    """A clock that was once far ahead takes no proof of the year away."""
    proofs = MaildirProofs(tmp_path)
    months = [(first_year, 1), *((2027 + year, month) for year in range(2) for month in range(1, 13))]
    for year, month in months:
        deliver(proofs, f"sent-{year}-{month}", tmp_path / "target", datetime(year, month, 1, tzinfo=UTC))
    kept = [f"sent-{year}-{month}" for year, month in months if proofs.is_delivered(f"sent-{year}-{month}")]
    assert len(kept) == KEPT_MONTHS
    assert {f"sent-{year}-{month}" for year, month in months[-12:]} <= set(kept)


def test_a_try_of_last_month_is_finished_in_this_one(tmp_path: Path) -> None:
    proofs = MaildirProofs(tmp_path)
    with pytest.raises(FileNotFoundError):
        deliver(proofs, "sent-1", tmp_path / "missing/target", datetime(2026, 11, 30, tzinfo=UTC))
    assert not proofs.is_delivered("sent-1")
    deliver(proofs, "sent-1", tmp_path / "target", datetime(2026, 12, 1, tzinfo=UTC))
    assert proofs.is_delivered("sent-1")
    assert len(list((proofs.directory / "proofs").glob("*/sent-1"))) == 1


@pytest.mark.skipif(
    not SHARED_MEMORY.is_dir() or SHARED_MEMORY.stat().st_dev == Path("/tmp").stat().st_dev,
    reason="needs a second file system, such as /dev/shm",
)
def test_a_sent_folder_on_another_file_system_is_refused_with_the_reason(
    maildir: Maildir, directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = SHARED_MEMORY / tmp_path_factory.getbasetemp().name / directory.parent.name
    for part in ("cur", "new", "tmp"):
        (elsewhere / part).mkdir(parents=True)
    (directory / ".Sent").symlink_to(elsewhere)
    try:
        for work in (lambda: maildir.test_connection(), lambda: maildir.send(REPLY)):
            with refused("mail_unsupported") as caught:
                work()
            assert caught.value.message.endswith("so that no proof of sending can be kept. Put both on one")
        assert maildir.find_sent(REPLY.message_id) == "not_sent"
    finally:
        for path in sorted(elsewhere.parent.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        elsewhere.parent.rmdir()

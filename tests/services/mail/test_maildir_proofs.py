from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mail_stores import REPLY, open_maildir, refused

from guarantee_email_agent.services.mail import maildir_proofs
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.mail.maildir_proofs import KEPT_MONTHS, MaildirProofs

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
            patch.setattr(maildir_proofs, "os", KilledAt(step))
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


@pytest.fixture
def full_disk() -> Iterator[Callable[[], None]]:
    """No file can have more than 50 bytes from the call on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fail(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_full_disk_at_the_second_try_leaves_the_reply_not_sent(
    maildir: Maildir, directory: Path, monkeypatch: pytest.MonkeyPatch, full_disk: Callable[[], None]
) -> None:
    maildir.test_connection()
    with monkeypatch.context() as patch:
        patch.setattr(maildir_proofs, "rename_without_replacing", fail)
        with refused("mail_unavailable"):
            maildir.send(REPLY)
    full_disk()
    with refused("mail_disk_full"):
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

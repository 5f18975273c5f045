import itertools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mail_stores import REPLY, ids, open_maildir, refused

from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.ports import InboxFilter

RAW = b"From: customer@example.org\nSubject: warranty\n\nSN12345\n"


def put(directory: Path, name: str, part: str = "new", raw: bytes = RAW) -> Path:
    path = directory / part / name
    path.write_bytes(raw)
    return path


def test_mails_are_listed_oldest_first_with_their_sizes(maildir: Maildir, directory: Path) -> None:
    put(directory, "1700000002.M1P1.host")
    put(directory, "1700000001.M20P1.host:2,S", "cur", RAW * 2)
    put(directory, "1700000001.M3P1.host")
    listing = maildir.list_unprocessed(100)
    assert [(entry.id, entry.size) for entry in listing.entries] == [
        ("1700000001.M3P1.host", len(RAW)),
        ("1700000001.M20P1.host", 2 * len(RAW)),
        ("1700000002.M1P1.host", len(RAW)),
    ]
    assert listing.total == 3


def test_a_mail_whose_file_cannot_be_read_is_the_only_one(maildir: Maildir, directory: Path) -> None:
    file = put(directory, "1700000001.M1P1.host")
    put(directory, "1700000002.M1P1.host")
    bad, good = ids(maildir)
    file.unlink()
    file.mkdir()  # that not even root may read
    with refused("mail_unreadable") as caught:
        maildir.read_raw(bad, 10_000)
    assert not caught.value.outage
    assert maildir.read_raw(good, 10_000) == RAW


def test_names_that_are_not_utf8_are_passed_over_and_told_once(
    maildir: Maildir, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(directory, os.fsdecode(b"1700000000.M1P1.h\xf6st"))
    put(directory, "1700000000.M2P1.höst")
    for _ in range(2):
        assert ids(maildir) == ["1700000000.M2P1.höst"]
    (told,) = caplog.messages
    assert "/new/1700000000.M1P1.h\\xf6st: such mails are passed over" in told
    assert maildir.count_by_outcome()["unprocessed"] == 1


def test_what_is_no_mail_is_not_listed(maildir: Maildir, directory: Path) -> None:
    put(directory, ".hidden")
    put(directory, "1700000000.M1P1.host:2,T", "cur")
    put(directory, "1700000000.M2P1.host", "tmp")
    (directory / "cur" / "folder").mkdir()
    (directory / "new" / "link").symlink_to(directory / "tmp" / "1700000000.M2P1.host")
    os.mkfifo(directory / "new" / "pipe")
    assert ids(maildir) == []


@pytest.mark.parametrize("mail_id", ["../../etc/passwd", "/etc/passwd", "a\0b", ".", "..", "new/1.host"])
def test_an_id_cannot_name_a_file_elsewhere(maildir: Maildir, directory: Path, mail_id: str) -> None:
    put(directory, "1.host")
    with refused("mail_not_found"):
        maildir.read_raw(mail_id, 1000)


def test_a_mail_that_another_program_moved_is_still_found(maildir: Maildir, directory: Path) -> None:
    path = put(directory, "1.host")
    ids(maildir)
    path.rename(directory / "cur" / "1.host:2,FS")
    assert maildir.read_raw("1.host", 1000) == RAW
    maildir.mark("1.host", "answered")
    assert [file.name for file in (directory / "cur").iterdir()] == ["1.host:2,FSa"]


def test_mails_that_a_mail_program_moves_meanwhile_stay_listed(maildir: Maildir, directory: Path) -> None:
    names = {f"{1_700_000_000 + number}.M1P1.host" for number in range(300)}
    paths = [put(directory, name) for name in names]
    flags = itertools.cycle(["", "S", "PS"])

    def move() -> None:
        for number, path in enumerate(paths):
            paths[number] = path.rename(directory / "cur" / f"{path.name.partition(':')[0]}:2,{next(flags)}")

    with ThreadPoolExecutor(1) as threads:
        moving = threads.submit(lambda: [move() for _ in range(5)])
        while not moving.done():
            assert {entry.id for entry in maildir.list_unprocessed(1000, InboxFilter(1.0)).entries} <= names
        moving.result()
    assert set(ids(maildir, 1000)) == names


def test_a_reply_is_a_seen_file_in_the_sent_folder(maildir: Maildir, directory: Path) -> None:
    assert maildir.send(REPLY) == "sent"
    (file,) = (directory / ".Sent/cur").iterdir()
    assert file.name.endswith(":2,S")
    assert file.read_bytes().startswith(b"From: support@example.com\nTo: customer@example.org\nSubject: Re: warranty\n")
    assert list((directory / ".Sent/tmp").iterdir()) == []
    assert (directory / ".Sent/maildirfolder").exists()


def test_a_directory_that_is_no_maildir_is_told(tmp_path: Path) -> None:
    with refused("mail_folder_missing") as caught:
        Maildir(tmp_path, "support@example.com")
    assert caught.value.message.startswith(f"{tmp_path} is no Maildir: it has no directory new.")


def test_a_maildir_that_goes_away_is_told(maildir: Maildir, directory: Path) -> None:
    put(directory, "1.host")
    directory.rename(directory.with_name("elsewhere"))
    for work in (
        lambda: maildir.list_unprocessed(1),
        lambda: maildir.read_raw("1.host", 1000),
        lambda: maildir.mark("1.host", "answered"),
        maildir.count_by_outcome,
        lambda: maildir.wait(0.1, threading.Event()),
        maildir.test_connection,
    ):
        with refused("mail_folder_missing"):
            work()


def test_what_writers_left_behind_is_removed_after_36_hours(maildir: Maildir, directory: Path) -> None:
    maildir.send(REPLY)
    old, young = put(directory, "old", "tmp"), put(directory, "young", "tmp")
    old_reply = put(directory / ".Sent", "old", "tmp")
    for path in (old, old_reply):
        os.utime(path, (time.time() - 37 * 3600,) * 2)
    open_maildir(directory)
    assert (old.exists(), old_reply.exists(), young.exists()) == (False, False, True)


def test_a_reader_makes_no_folder_and_cleans_nothing_up(maildir: Maildir, directory: Path) -> None:
    old = directory / "tmp" / "abandoned"
    old.touch()
    os.utime(old, (0, 0))
    reader = Maildir(directory, "support@example.com", read_only=True)
    assert reader.test_connection(drafts=True) == f"Maildir {directory}"
    assert old.exists()
    assert not list(directory.glob(".*"))


def test_a_mail_by_the_name_of_one_before_came_when_it_came(maildir: Maildir, directory: Path) -> None:
    """Or it would be taken for the mail that was answered, or left alone as too old."""
    os.utime(put(directory, "mail.eml"), (1_700_000_000, 1_700_000_000))
    assert maildir.list_unprocessed(10, InboxFilter(1.0)).total == 1
    maildir.mark("mail.eml", "answered")
    next((directory / "cur").iterdir()).unlink()
    os.utime(put(directory, "mail.eml"), (1_800_000_000, 1_800_000_000))
    assert maildir.list_unprocessed(10, InboxFilter(1_750_000_000.0)).total == 1

"""Files of a Maildir that have one name before their flags, or one that no mark fits into."""

import os
import threading
import time
from pathlib import Path

import pytest
from mail_stores import counts, ids, open_maildir, refused

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail import maildir_listing
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.mail.maildir_listing import KeywordLetters

FIRST, SECOND = b"From: one@example.org\n\nSN12345\n", b"From: two@example.org\n\nSN67890\n"


def put(path: Path, raw: bytes = FIRST) -> Path:
    path.write_bytes(raw)
    return path


def contents(directory: Path) -> list[bytes]:
    return sorted(file.read_bytes() for part in ("new", "cur") for file in (directory / part).iterdir())


def test_mails_that_a_mail_program_saved_by_their_subjects_keep_their_names(maildir: Maildir, directory: Path) -> None:
    put(directory / "new" / "Re: 00.eml")
    put(directory / "new" / "Re: 01.eml", SECOND)
    assert ids(maildir) == ["Re: 00.eml", "Re: 01.eml"]
    maildir.mark("Re: 00.eml", "answered")
    assert [file.name for file in (directory / "cur").iterdir()] == ["Re: 00.eml:2,a"]
    assert ids(maildir) == ["Re: 01.eml"]


@pytest.mark.parametrize("place", ["new/mail.eml", "cur/mail.eml:2,", "cur/mail.eml:2,S"])
def test_a_mail_with_the_name_of_one_that_was_answered_is_answered_too(
    maildir: Maildir, directory: Path, place: str
) -> None:
    put(directory / "new/mail.eml")
    maildir.mark("mail.eml", "answered")
    ids(maildir)
    put(directory / place, SECOND)
    (mail_id,) = ids(maildir)
    assert mail_id != "mail.eml"
    assert maildir.read_raw(mail_id, 1000) == SECOND
    assert maildir.is_waiting(mail_id)
    assert {(mail.id, mail.mark) for mail in maildir.list_mails()} == {("mail.eml", "answered"), (mail_id, None)}
    maildir.mark(mail_id, "answered")
    assert contents(directory) == [FIRST, SECOND]
    assert maildir.count_by_outcome() == counts(answered=2)
    assert {mail.id for mail in open_maildir(directory).list_mails()} == {"mail.eml", mail_id}


def test_the_id_of_its_own_stays_as_the_mail_moves_and_the_agent_starts_anew(maildir: Maildir, directory: Path) -> None:
    put(directory / "new/mail.eml")
    maildir.mark("mail.eml", "answered")
    second = put(directory / "new/mail.eml", SECOND)
    first_ids = ids(maildir)
    moved = second.rename(directory / "cur/mail.eml:2,")
    assert ids(maildir) == first_ids
    moved.rename(directory / "cur/mail.eml:2,S")
    assert ids(open_maildir(directory)) == first_ids
    assert maildir.read_raw(first_ids[0], 1000) == SECOND


def test_of_two_mails_without_a_mark_neither_takes_over_the_id_of_the_other(maildir: Maildir, directory: Path) -> None:
    first = put(directory / "new/mail.eml").rename(directory / "cur/mail.eml:2,")
    assert ids(maildir) == ["mail.eml"]
    second = put(directory / "new/mail.eml", SECOND)
    both = {mail_id: maildir.read_raw(mail_id, 1000) for mail_id in ids(maildir)}
    assert sorted(both.values()) == [FIRST, SECOND]
    assert "mail.eml" not in both
    first.rename(directory / "cur/mail.eml:2,S")
    second.rename(directory / "cur/mail.eml:2,")
    assert {mail_id: maildir.read_raw(mail_id, 1000) for mail_id in ids(maildir)} == both
    for mail_id in both:
        maildir.mark(mail_id, "answered")
    assert contents(directory) == [FIRST, SECOND]
    assert maildir.count_by_outcome() == counts(answered=2)


def test_a_file_that_lies_under_two_names_is_one_mail(maildir: Maildir, directory: Path) -> None:
    """Some mail programs make a link and remove the old name, and may be killed in between."""
    file = put(directory / "new/mail.eml")
    os.link(file, directory / "cur/mail.eml:2,S")
    assert ids(maildir) == ["mail.eml"]
    maildir.mark("mail.eml", "answered")
    assert ids(maildir) == []


def test_a_mark_never_overwrites_a_mail(maildir: Maildir, directory: Path) -> None:
    put(directory / "new/mail.eml")
    put(directory / "new/other")
    maildir.mark("other", "answered")
    assert ids(maildir) == ["mail.eml"]
    there = put(directory / "cur/mail.eml:2,a", SECOND)
    with refused("mail_not_found") as caught:
        maildir.mark("mail.eml", "answered")
    assert str(there) in caught.value.message
    assert caught.value.message.endswith("that is another mail. List the mails anew")
    assert not caught.value.retryable
    assert contents(directory) == [FIRST, FIRST, SECOND]
    (mail_id,) = ids(maildir)
    maildir.mark(mail_id, "answered")
    assert contents(directory) == [FIRST, FIRST, SECOND]
    assert maildir.count_by_outcome() == counts(answered=3)


def test_a_name_without_room_for_a_mark_is_passed_over_and_told_once(
    maildir: Maildir, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("ü" * 127 + "x", "x" * 246, "1.host"):
        put(directory / "new" / name)
    for _ in range(2):
        assert ids(maildir) == ["1.host"]
    (told,) = caplog.messages
    assert ": such mails are passed over: their file names are too long for a mark to be added. Shorten them" in told


def test_the_longest_name_is_marked_whatever_a_mail_program_adds(maildir: Maildir, directory: Path) -> None:
    mail_id = "x" * 245
    file = put(directory / "new" / mail_id)
    assert ids(maildir) == [mail_id]
    file.rename(directory / "cur" / f"{mail_id}:2,DFPRS")
    maildir.mark(mail_id, "answered")
    assert maildir.count_by_outcome() == counts(answered=1)


def test_letters_of_other_programs_are_kept(tmp_path: Path) -> None:
    (tmp_path / "dovecot-keywords").write_text("0 $Forwarded\n2 Junk\n")
    assert KeywordLetters(tmp_path).allocate(["$One", "Junk", "$Two"]) == {
        "$Forwarded": "a",
        "$One": "b",
        "Junk": "c",
        "$Two": "d",
    }
    assert (tmp_path / "dovecot-keywords").read_text() == "0 $Forwarded\n1 $One\n2 Junk\n3 $Two\n"


def test_what_another_process_gave_out_is_seen(tmp_path: Path) -> None:
    ours, theirs = KeywordLetters(tmp_path), KeywordLetters(tmp_path)
    ours.allocate(["$One"])
    theirs.allocate(["$Two"])
    assert ours.allocate(["$Two"]) == {"$One": "a", "$Two": "b"}


def test_lines_that_are_none_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "dovecot-keywords").write_text("x $A\n99 $B\n\n1\n3 $C\n")
    assert KeywordLetters(tmp_path).load() == {"$C": "d"}


def test_a_full_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "dovecot-keywords").write_text("".join(f"{number} k{number}\n" for number in range(26)))
    with pytest.raises(ToolError, match="gives all 26 letters to other keywords"):
        KeywordLetters(tmp_path).allocate(["$One"])
    assert not (tmp_path / "dovecot-keywords.lock").exists()


def test_a_stale_lock_is_taken_over(tmp_path: Path) -> None:
    lock = tmp_path / "dovecot-keywords.lock"
    lock.touch()
    os.utime(lock, (time.time() - 200,) * 2)
    assert KeywordLetters(tmp_path).allocate(["$One"]) == {"$One": "a"}


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "dovecot-keywords.lock"
    lock.touch()
    threading.Timer(0.1, lock.unlink).start()
    assert KeywordLetters(tmp_path).allocate(["$One"]) == {"$One": "a"}


def test_a_lock_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maildir_listing, "_LOCK_WAIT_S", 0.05)
    (tmp_path / "dovecot-keywords.lock").touch()
    with pytest.raises(ToolError, match="is held by another program") as caught:
        KeywordLetters(tmp_path).allocate(["$One"])
    assert caught.value.retryable

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from guarantee_email_agent.services.mail import maildir_keywords
from guarantee_email_agent.services.mail.maildir_keywords import KeywordLetters
from guarantee_email_agent.services.tool_error import ToolError


def test_letters_are_given_out_in_order(tmp_path: Path) -> None:
    assert KeywordLetters(tmp_path).allocate(["$One", "$Two"]) == {"$One": "a", "$Two": "b"}
    assert (tmp_path / "dovecot-keywords").read_text() == "0 $One\n1 $Two\n"


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
    monkeypatch.setattr(maildir_keywords, "_LOCK_WAIT_S", 0.05)
    (tmp_path / "dovecot-keywords.lock").touch()
    with pytest.raises(ToolError, match="is held by another program") as caught:
        KeywordLetters(tmp_path).allocate(["$One"])
    assert caught.value.retryable

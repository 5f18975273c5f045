from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.capture.scenario_file import anonymizer_for, anonymous_mail, file_text, next_id


def email(headers: str = "", body: str = "Is SN48213 covered?", sender: str = "Ida Lund") -> Email:
    start = f"From: {sender} <ida.lund@firm.de>\nTo: help@shop.de\nSubject: Dryer of Ida Lund\n"
    return parse_email(f"{start}Date: Sun, 18 Jan 2026 10:01:00 +0000\n{headers}\n{body}\n".encode())


def anonymous(mail: Email) -> dict[str, Any]:
    return anonymous_mail(mail, anonymizer_for(mail, b"mail", ()), "2026-02-01T00:00:00Z")


def test_sender_recipient_and_subject_are_anonymous_and_the_date_stays() -> None:
    mail = anonymous(email())
    assert mail["from"] == "Alex Robin <customer@example.com>"
    assert (mail["to"], mail["subject"]) == ("help@example.org", "Dryer of Alex Robin")
    assert mail["received"] == "2026-01-18T10:01:00Z"
    assert "99887766" not in anonymous(email(sender="Lund 99887766"))["from"]


def test_only_headers_that_decide_something_are_kept() -> None:
    mail = anonymous(
        email(
            "X-Mailer: Foo\nDKIM-Signature: v=1\nReturn-Path: <ida.lund@firm.de>\nAuto-Submitted: auto-replied\n"
            "List-Id: Our friends <friends.firm.de>\nReferences: <a@firm.de> <b@shop.de>\n"
        )
    )
    assert mail["headers"] == {
        "Auto-Submitted": "auto-replied",
        "List-Id": "<https://www.example.com/list>",
        "References": "<message-1@example.com> <message-2@example.com>",
    }


def test_a_null_return_path_is_kept() -> None:
    assert anonymous(email("Return-Path: <>\n"))["headers"] == {"Return-Path": "<>"}


def test_quoted_text_and_file_names_are_anonymous_too() -> None:
    raw = (
        b"From: Ida Lund <i@firm.de>\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n"
        b"See below.\n\n> Dear Ms Lund, what is SN48213?\n--b\n"
        b"Content-Disposition: attachment; filename=Lund_SN48213.jpg\n\nx\n--b--\n"
    )
    mail = anonymous(parse_email(raw))
    assert "Lund" not in mail["body"]
    number = mail["body"].rpartition(" ")[2].rstrip("?\n")
    assert mail["attachments"] == [f"Robin_{number}.jpg"]


def test_the_next_number_is_behind_the_highest_of_the_category(tmp_path: Path) -> None:
    for name in ("valid_warranty_007.yaml", "valid_warranty_012.yaml", "missing_info_099.yaml", "_template.yaml"):
        (tmp_path / name).touch()
    assert next_id(tmp_path, "valid-warranty") == "valid_warranty_013"
    assert next_id(tmp_path, "no-reply") == "no_reply_001"


@pytest.mark.parametrize(("note", "lines"), [(None, 1), ("Look at it.\nTwice.", 3)])
def test_a_note_stands_in_front_as_a_comment(note: str | None, lines: int) -> None:
    text = file_text({"scenario_id": "a_1"}, note)
    assert sum(line.startswith("# ") for line in text.splitlines()) == lines

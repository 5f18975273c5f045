"""Mails of which nobody can be sure that they are to be answered, or what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from mocked_desk import desk

MAILS = Path(__file__).parent / "mails"
HEAD = b"From: Jane <jane@example.com>\r\nTo: support@example.com\r\nSubject: Kettle\r\nMessage-ID: <1@example.com>\r\n"
TEXT = b"\r\nHello, is my kettle SN12345 still under warranty?\r\n"


@pytest.mark.parametrize("name", ["13-a", "13-c", "13-g"])
def test_what_a_machine_wrote_is_not_answered(name: str) -> None:
    result = desk().process((MAILS / f"{name}.eml").read_bytes())
    assert (result.scenario_used, result.hand_over_reasons, result.email_sent) == ("no-reply", (), False)


DAMAGES = {
    "a CR too many": b"X-Mailer: Foo\r\r\n",
    "bare CRs": b"X-Mailer: Foo\rBar\r\rBaz\r\n",
    "a line without a colon": b"nonsense\r\n",
    "an unfolded report": b"X-Spam-Report:\r\nContent preview:  see below\r\n* 1.0 FOO bar\r\n",
    "a line of an mbox": b">From jane@example.com Mon Jan  5 10:00:00 2026\r\n",
    "a name with a blank": b"X Mailer: Foo\r\n",
    "a name that is not ASCII": "X-Größe: 5\r\n".encode(),
    "more fields than are read": b"X: y\r\n" * 1_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_header_leaves_a_mail_to_a_person(damage: bytes) -> None:
    agent = desk()
    assert agent.process(HEAD + damage + TEXT).hand_over_reasons == ("damaged-header",)
    assert agent.sent == agent.asked == []


@pytest.mark.parametrize("damage", list(DAMAGES.values())[:-1], ids=list(DAMAGES)[:-1])
@pytest.mark.parametrize("field", [b"Auto-Submitted: auto-replied\r\n", b"List-Id: <a.example.com>\r\n"])
def test_what_follows_a_damaged_line_still_counts(damage: bytes, field: bytes) -> None:
    assert desk().process(HEAD + damage + field + TEXT).scenario_used == "no-reply"


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r"])
@pytest.mark.parametrize("more", [b"", b"X-Folded: a\r\n \r\n\tb\r\n", b"X-Empty:\r\n"])
def test_a_header_that_is_read_with_certainty_is_not_damaged(more: bytes, end: bytes) -> None:
    result = desk().process((HEAD + more + TEXT).replace(b"\r\n", end))
    assert (result.hand_over_reasons, result.email_sent) == ((), True)


def test_a_forgotten_empty_line_hides_no_word_for_a_person() -> None:
    result = desk().process(HEAD + b"Hello,\r\nNote: it caught fire.\r\n" + TEXT)
    assert result.hand_over_reasons == ("fire", "damaged-header")


@pytest.mark.parametrize("name", ["07-a", "07-d", "09-a", "09-c", "09-e"])
def test_a_text_that_is_there_is_read(name: str) -> None:
    agent = desk()
    assert agent.process((MAILS / f"{name}.eml").read_bytes()).email_sent
    assert agent.asked == ["SN12345"]

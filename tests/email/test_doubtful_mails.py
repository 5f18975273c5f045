"""Mails of which nobody can be sure that they are to be answered, or what they say."""

from pathlib import Path

import pytest
from mocked_desk import desk, mail

from guarantee_email_agent.email.processor_models import AnswerPolicy

MAILS = Path(__file__).parent / "mails"
DAY_S = 86_400.0
WRITTEN = 1_768_730_400.0  # 18 January 2026, 10:00
HEAD = b"From: Jane <jane@example.com>\r\nTo: support@example.com\r\nSubject: Kettle\r\nMessage-ID: <1@example.com>\r\n"
TEXT = b"\r\nHello, is my kettle SN12345 still under warranty?\r\n"


MACHINES, DOUBTFUL = ("no-reply", ()), ("hand-over", ("maybe-automatic",))
NOT_ANSWERED = {
    **dict.fromkeys(("05-a", "05-d", "05-f", "05-g", "06-a", "13-a", "13-c", "13-g"), MACHINES),
    **dict.fromkeys(("12-a", "12-c", "12-e"), DOUBTFUL),
    **dict.fromkeys(("10-b", "10-d"), ("hand-over", ("encrypted",))),
}


@pytest.mark.parametrize(("name", "expected"), NOT_ANSWERED.items())
def test_what_no_person_wrote_or_nobody_can_read_is_not_answered(name: str, expected: tuple[str, object]) -> None:
    agent = desk()
    result = agent.process((MAILS / f"{name}.eml").read_bytes())
    assert (result.scenario_used, result.hand_over_reasons) == expected
    assert agent.sent == agent.asked == []


DAMAGES = {
    "a CR too many": b"X-Mailer: Foo\r\r\n",
    "bare CRs": b"X-Mailer: Foo\rBar\r\rBaz\r\n",
    "a line without a colon": b"nonsense\r\n",
    "an unfolded report": b"X-Spam-Report:\r\nContent preview:  see below\r\n* 1.0 FOO bar\r\n",
    "a line of an mbox": b">From jane@example.com Mon Jan  5 10:00:00 2026\r\n",
    "a name with a blank": b"X Mailer: Foo\r\n",
    "a name that is not ASCII": "X-Größe: 5\r\n".encode(),
    "a second subject": b"Subject: My lawyer\r\n",
    "two encodings": b"Content-Transfer-Encoding: 8bit\r\nContent-Transfer-Encoding: base64\r\n",
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


@pytest.mark.parametrize("name", ["07-a", "07-d", "09-a", "09-c", "09-e"])
def test_a_text_that_is_there_is_read(name: str) -> None:
    agent = desk()
    assert agent.process((MAILS / f"{name}.eml").read_bytes()).email_sent
    assert agent.asked == ["SN12345"]


CALENDAR = b"\r\n--b\r\nContent-Type: text/calendar; method=%s\r\n\r\nBEGIN:VCALENDAR\r\nSUMMARY:SN54321\r\n--b--\r\n"
MIXED = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
UNREAD = "hand-over", ("unexplained",)
HTML = b"Content-Type: text/html\r\n"
UTF16 = b"\r\n--b\r\nContent-Type: text/plain; charset=utf-16\r\n\r\n\xff\xfeI\0s\r\n--b--"
BASE64 = b"Content-Transfer-Encoding: base64\r\n\r\nSXMgaXQgU04xMjM0NT8=\r\n!\r\n" + b"TXkgbGF3eWVy" * 6
NAMED = b"Content-Type: application/octet-stream; name=%s\r\n\r\nx\r\n--b--\r\n"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (HEAD + MIXED + TEXT + CALENDAR % b"REPLY", DOUBTFUL),
        (HEAD + MIXED + CALENDAR % b"request", DOUBTFUL),
        (HEAD + MIXED + TEXT + CALENDAR.replace(b"; method=%s", b""), DOUBTFUL),
        (HEAD + MIXED + b"Content-Type: multipart/report; boundary=c\r\n\r\n--c\r\n" + TEXT + b"--b--", DOUBTFUL),
        (mail("BEGIN:VCALENDAR\nSUMMARY:SN54321", headers={"Content-Type": "text/calendar; method=REPLY"}), MACHINES),
        (mail("BEGIN:VCALENDAR\nSUMMARY:SN54321"), DOUBTFUL),
        (HEAD + TEXT + b"\r\n" * 200_001 + b"My lawyer", UNREAD),
        (HEAD + MIXED + TEXT + b"--b\r\nContent-Type: image/png\r\n\r\n" * 201, UNREAD),
        (HEAD + HTML + TEXT + b"<img src='" + b"x" * 1_000_000 + b"'>My lawyer", UNREAD),
        (HEAD + MIXED + TEXT + UTF16, UNREAD),
        (HEAD + BASE64, UNREAD),
        (HEAD + BASE64[:40] + b"V29y_3ZTTGF3eWVyIG15", UNREAD),
        (HEAD + b"Content-Transfer-Encoding: quoted-printable\r\n" + TEXT + b"Serial number=12345678", UNREAD),
        (HEAD + b"Content-Transfer-Encoding: x-uuencode\r\n" + TEXT, UNREAD),
        (mail(html=b"<p>My lawyer"), UNREAD),
        *(
            (mail(subject=subject), DOUBTFUL)
            for subject in ("[EXTERNAL] Accepted: Visit", "Lu : Visite", "Abgesagt: Termin")
        ),
        (
            mail("Your message\n\nSubject: SN12345\n\nwas read on 1 May. Is it in warranty?", subject="Read: x"),
            DOUBTFUL,
        ),
        (mail("It is SN12345.\n\nPlease do not reply to this e-mail."), DOUBTFUL),
        (mail("Ihre Nachricht wurde weitergeleitet. SN12345"), DOUBTFUL),
        (mail("-----BEGIN PGP MESSAGE-----\n\nhQEMA1\n"), ("hand-over", ("encrypted",))),
        *(
            (HEAD + MIXED + TEXT + b"--b\r\n" + NAMED % name, ("hand-over", ("encrypted",)))
            for name in (b"smime.p7m", b"a.rpmsg")
        ),
    ],
)
def test_what_a_machine_may_have_written_is_for_a_person(raw: object, expected: tuple[str, object]) -> None:
    agent = desk()
    result = agent.process(raw)
    assert (result.scenario_used, result.hand_over_reasons) == expected
    assert agent.sent == agent.asked == []


@pytest.mark.parametrize(
    "raw",
    [
        HEAD + MIXED + TEXT + CALENDAR.replace(b"; method=%s", b"\r\nContent-Disposition: attachment; filename=a.ics"),
        HEAD + MIXED + TEXT + b"--b\r\n" + NAMED % b"smime.p7s",
        mail(
            "I read it, and my serial number is SN12345. Please do not reply to this address.", subject="Kettle read: x"
        ),
    ],
)
def test_what_only_looks_like_it_is_answered(raw: object) -> None:
    assert desk().process(raw).email_sent


@pytest.mark.parametrize(
    ("sender", "reply_to"),
    [
        *(
            ("form@shop.example", each)
            for each in ("", "Jane", "Doe, Jane <j@x.org>", "j@x.org, k@x.org", "form@shop.example")
        ),
        *(("form@shop.example", each) for each in ("no-reply@x.org", "support@example.com", "mailer-daemon@x.org")),
        *(("noreply@other.example", each) for each in ("jane@x.org", "Jane", "")),
        *(("support+form@example.com", each) for each in ("jane@x.org", "Jane", "support@example.com, jane@x.org")),
    ],
)
def test_a_form_that_names_nobody_for_certain_is_for_a_person(sender: str, reply_to: str) -> None:
    forms, own = frozenset({"form@shop.example"}), frozenset({"support@example.com"})
    agent = desk(policy=AnswerPolicy(trusted_forms=forms, own_addresses=own))
    result = agent.process(mail(**{"from": sender, "headers": {"Reply-To": reply_to}}))
    assert (result.hand_over_reasons, agent.sent, agent.asked) == (("unclear-recipient",), [], [])


DATE = "Sun, 18 Jan 2026 10:00:00 +0000"
EARLIER = "from a by b; Sun, 11 Jan 2026 10:00:00 +0000"


@pytest.mark.parametrize(
    ("headers", "days", "is_old"),
    [
        ({"Date": DATE}, 7.1, True),
        ({"Date": DATE}, 6.9, False),
        ({"Received": ["from c by d; Sun, 25 Jan 2026 10:00:00 +0000", EARLIER]}, 6.9, True),
        ({"Date": DATE, "Received": [EARLIER]}, 6.9, False),  # a clock that is behind makes no mail old
        ({"Date": "Sun, 18 Jan 1970 10:00:00 +0000", "Received": [f"from a by b; {DATE}"]}, 6.9, False),
        ({"Date": "yesterday", "Received": [EARLIER]}, 6.9, True),
        ({"Date": "yesterday"}, 99.0, False),
        ({"Date": DATE}, -99.0, False),
        ({"Date": DATE}, 1e9, True),  # a file's time may be any
    ],
)
def test_a_mail_that_is_old_by_its_own_dates_is_for_a_person(
    headers: dict[str, object], days: float, is_old: bool
) -> None:
    agent = desk(policy=AnswerPolicy(max_delay_days=7.0))
    result = agent.process(mail(headers=headers), WRITTEN + days * DAY_S)
    assert (result.hand_over_reasons, result.email_sent) == (("delayed",) if is_old else (), not is_old)
    agent.policy = AnswerPolicy(max_delay_days=None)
    assert agent.process(mail(headers=headers), WRITTEN + days * DAY_S).email_sent

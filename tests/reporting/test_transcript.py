from __future__ import annotations

from typing import Any

import sample_reports

from guarantee_email_agent.reporting.transcript import MAX_TEXT, Section, cut, sections, visible


def titles(**changes: Any) -> list[str]:
    return [part.title for part in sections(sample_reports.case(**changes))]


def section(title: str, **changes: Any) -> Section:
    return next(part for part in sections(sample_reports.case(**changes)) if part.title == title)


def test_mail_calls_reply_and_ticket_in_the_order_in_which_they_happened() -> None:
    assert titles() == ["Mail", "Calls (2)", "Reply", "Ticket", "Outcome"]


def test_a_mail_has_its_headers_and_its_text() -> None:
    mail = section("Mail")
    assert ("from", "customer@example.com") in mail.fields
    assert mail.text is not None
    assert mail.text.startswith("Hi, I need")


def test_a_call_is_a_line() -> None:
    assert section("Calls (2)").text == (
        'warranty.check_warranty {"serial_number": "SN12345"}\nmail.send_reply {"to": "customer@example.com"}'
    )


def test_what_did_not_happen_is_said() -> None:
    response = {"email_sent": False, "ticket_created": False, "note_added": True}
    assert section("Reply", response=response).text == "No mail was sent."
    assert section("Ticket", response=response).text == "No ticket was created. A note was added to the conversation's."


def test_a_draft_is_no_reply() -> None:
    assert section("Draft", response={"response_body": "Hello", "draft_stored": True}).text == "Hello"


def test_messages_of_a_model_and_words_of_a_judge() -> None:
    trace = {"conversation": [{"role": "user", "content": "Hi"}], "execution_trace": []}
    judged = {"verdict": "failed", "feedback": "No.", "output": "looked at it"}
    assert titles(trace=trace, judgement=judged)[-3:] == [
        "Conversation with the model (1)",
        "Judge",
        "Printed by the judge",
    ]


def test_a_case_without_a_transcript_has_no_sections() -> None:
    assert titles(request=None, response=None) == []


def test_a_transcript_of_five_megabytes_is_cut_and_says_so() -> None:
    mail = section("Mail", request={"body": "x" * 5_000_000})
    assert len(mail.text or "") == MAX_TEXT
    assert mail.note == "4,980,000 characters more, left out here"


def test_what_a_program_prints_is_cut_at_its_beginning() -> None:
    assert cut("abcdef", 2, from_end=True) == ("ef", "4 characters more, left out here")


def test_many_calls_are_cut() -> None:
    calls = [{"server": "mail", "tool": "list", "arguments": {}}] * 1_000
    assert section("Calls (1000)", response={"calls": calls}).text.endswith("… and 900 calls more")  # type: ignore[union-attr]


def test_control_characters_are_written_out_and_line_breaks_stay() -> None:
    assert visible("a\r\nb\x1b[31m\u202ec\ud800") == "a\nb\\x1b[31m\\u202ec\\ud800"

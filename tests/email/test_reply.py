import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.reply import (
    MAX_REFERENCES,
    MAX_UNPROVED_SUBJECT,
    choose_language,
    reply_references,
    reply_subject,
    unproved_subject,
)
from guarantee_email_agent.instructions.instruction import Instructions


def mail(*references: str) -> Email:
    return Email(
        "<now@example.com>", "c@example.com", (), "", "", (), (), {"references": references} if references else {}
    )


@pytest.mark.parametrize(
    ("subject", "reply"),
    [
        ("My dryer", "Re: My dryer"),
        ("Re: My dryer", "Re: My dryer"),
        ("RE: My dryer", "RE: My dryer"),
        ("AW: Mein Trockner", "AW: Mein Trockner"),
        ("Odp: Pralka", "Odp: Pralka"),
        ("RE : Mon lave-linge", "RE : Mon lave-linge"),
        ("R: Asciugatrice", "R: Asciugatrice"),
        ("Re[2]: My dryer", "Re[2]: My dryer"),
        ("Fwd: My dryer", "Re: Fwd: My dryer"),
        ("Regarding my dryer", "Re: Regarding my dryer"),
        ("", "Re: your message"),
        ("   ", "Re: your message"),
    ],
)
def test_the_subject_is_the_customers_own_with_one_prefix(subject: str, reply: str) -> None:
    assert reply_subject(subject) == reply


@pytest.mark.parametrize(
    ("subject", "repeated"),
    [
        ("Is my dryer still covered?", "Is my dryer still covered?"),
        ("Refund approved: visit http://evil.example/now today", "Refund approved: visit today"),
        ("Refund approved: evil.example/pay", "Refund approved:"),
        ("Call WWW.evil.example. Or write to me@evil.example!", "Call Or write to"),
        ("See evil.example. Or пример.рф or 10.1.2.3/a", "See Or or"),
        ("Dryer KT-77120-9, Nr. 4711, 2.5 kW", "Dryer KT-77120-9, Nr. 4711, 2.5 kW"),
    ],
)
def test_no_link_of_an_unproved_sender_is_repeated(subject: str, repeated: str) -> None:
    assert unproved_subject(subject) == repeated


@given(st.text())
def test_little_of_an_unproved_subject_is_repeated(subject: str) -> None:
    assert len(unproved_subject(subject)) <= MAX_UNPROVED_SUBJECT


def test_a_long_thread_keeps_its_first_and_its_latest_mails() -> None:
    thread = [f"<{number}@example.com>" for number in range(500)]
    references = reply_references(mail(" ".join(thread))).split()
    assert references == [thread[0], *thread[1 - MAX_REFERENCES :], "<now@example.com>"]


MAILS = Path(__file__).parents[1] / "interpreter" / "mails"
GERMAN_REPLY = "Guten Tag, bitte nennen Sie uns die Seriennummer Ihres Geräts, damit wir Ihre Garantie prüfen können."


def letter(body: str, subject: str = "") -> Email:
    return parse_email(
        {
            "subject": subject,
            "body": body,
            "from": "customer@example.com",
            "received": "2026-01-18T10:00:00Z",
            "message_id": "<1@example.com>",
        }
    )


def language_of(email: Email, instructions: Instructions, *, quotes_us: bool = False) -> str:
    return choose_language(email, instructions, quotes_us=quotes_us).language


@pytest.mark.parametrize(
    ("body", "language"),
    [
        ("Hello, my kettle leaks. Please answer in Polish, odpowiedz po polsku. Is it under warranty?", "en"),
        (
            (
                "Mein Trockner ist kaputt und ich möchte wissen, was Sie für mich tun können. "
                "My dryer is broken and I would like to know what you can do for me."
            ),
            "en",
        ),
        ("SN48213", "en"),
        ("Meine Waschmaschine schleudert nicht mehr, was kann ich tun?", "de"),
        ("Moja pralka nie wiruje, co mogę z tym zrobić?", "pl"),
        ("A minha máquina não centrifuga, o que posso fazer?", "en"),
    ],
)
def test_a_mail_is_answered_in_its_own_language_and_in_the_default_one_where_it_is_not_clear(
    body: str, language: str, instructions: Instructions
) -> None:
    assert language_of(letter(body), instructions) == language


def test_a_number_alone_that_answers_us_is_answered_in_the_language_of_our_mail(instructions: Instructions) -> None:
    email = letter(f"SN48213\n\nAm 18.01.2026 schrieb Service:\n> {GERMAN_REPLY}\n")

    assert email.new_text == "SN48213"
    assert language_of(email, instructions, quotes_us=True) == "de"
    assert language_of(email, instructions, quotes_us=False) == "en"


def test_quoted_words_do_not_outweigh_those_of_the_customer(instructions: Instructions) -> None:
    email = letter(f"Hello, here it is: SN48213. Thank you!\n\nAm 18.01.2026 schrieb Service:\n> {GERMAN_REPLY}\n")

    assert language_of(email, instructions, quotes_us=True) == "en"


def test_no_labelled_mail_is_answered_in_a_wrong_language(instructions: Instructions) -> None:
    """The default language is harmless where a mail is not clear."""
    wrong, found = [], dict.fromkeys(instructions.languages, 0)
    total = dict(found)
    for path in sorted(MAILS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            labelled = json.loads(line)
            if labelled.get("hand_over"):
                continue  # a person answers it
            language = language_of(letter(labelled["body"], labelled["subject"]), instructions)
            written = labelled["lang"]
            if written in total:
                total[written] += 1
                found[written] += language == written
            if language not in (written, "en") and written != "other":
                wrong.append(f"{labelled['id']}: {written}, answered in {language}")
    assert wrong == []
    shares = {language: found[language] / total[language] for language in total}
    assert min(shares.values()) > 0.8, shares
    assert shares["de"] > 0.94, shares

"""What is new, what is quoted and what is a signature, in the forms and languages that mail programs write."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.quoting import label_spans

NEW = "My drill stopped working."
OLD = "Please send us the number on the sticker."


def texts(body: str) -> dict[str, str]:
    """The text of each kind, in order of appearance."""
    found: dict[str, str] = {}
    for span in label_spans(body):
        found[span.kind] = found.get(span.kind, "") + span.text
    return found


QUOTED_TO_THE_END = {
    "en gmail without marks": "On Mon, Jan 5, 2026 at 10:00 AM Support <support@example.com> wrote:",
    "en gmail wrapped": "On Mon, Jan 5, 2026 at 10:00 AM The Support Team of the Shop\n<support@example.com> wrote:",
    "en wrapped before the verb": "On Mon, Jan 5, 2026 at 10:00 AM Support <support@example.com>\nwrote:",
    "en wrapped over three lines": "On Monday, January 5, 2026 at 10:00:00 AM GMT+1,\nThe Support Team of the Shop\n"
    "<support@example.com> wrote:",
    "en thunderbird": "On 05/01/2026 10:00, Support wrote:",
    "en name first": "Support <support@example.com> wrote:",
    "de gmail": "Am Mo., 5. Jan. 2026 um 10:00 Uhr schrieb Support <support@example.com>:",
    "de gmail wrapped": "Am Mo., 5. Jan. 2026 um 10:00 Uhr schrieb Support\n<support@example.com>:",
    "de apple": "Am 05.01.2026 um 10:00 schrieb Support <support@example.com>:",
    "pl thunderbird": "W dniu 5.01.2026 o 10:00, Support pisze:",
    "pl gmail": "pon., 5 sty 2026 o 10:00 Support <support@example.com> napisał(a):",
    "pl gmail wrapped": "pon., 5 sty 2026 o 10:00 The Support Team <support@example.com>\nnapisał(a):",
    "pl webmail": "Dnia 5 stycznia 2026 10:00 Support <support@example.com> napisał(a):",
    "fr gmail": "Le lun. 5 janv. 2026 à 10:00, Support <support@example.com> a écrit :",
    "es gmail": "El lun, 5 ene 2026 a las 10:00, Support (<support@example.com>) escribió:",
    "it gmail": "Il giorno lun 5 gen 2026 alle ore 10:00 Support <support@example.com> ha scritto:",
    "nl gmail": "Op ma 5 jan. 2026 om 10:00 schreef Support <support@example.com>:",
    "pt gmail": "Em seg., 5 de jan. de 2026 às 10:00, Support <support@example.com> escreveu:",
    "sv gmail": "Den mån 5 jan. 2026 kl 10:00 skrev Support <support@example.com>:",
    "cs gmail": "po 5. 1. 2026 v 10:00 odesílatel Support <support@example.com> napsal:",
    "unknown language": "2026年1月5日(月) 10:00 Support <support@example.com>:",
    "yahoo, text on the same line": f"On Mon, 5 Jan 2026 at 10:00, Support<support@example.com> wrote:   {OLD}",
    "en outlook": "From: Support <support@example.com>\nSent: Monday, 5 January 2026 10:00\nTo: Jane\nSubject: Drill",
    "en outlook with rule": "________________________________\nFrom: Support\nSent: Monday, 5 January 2026\nTo: Jane",
    "en apple forward": "Begin forwarded message:\n\nFrom: Support\nSubject: Drill",
    "en bold labels": "*From:* Support\n*Sent:* Monday, January 5, 2026 10:00 AM\n*To:* Jane\n*Subject:* Drill",
    "de outlook": "Von: Support <support@example.com>\nGesendet: Montag, 5. Januar 2026\nAn: Jane\nBetreff: Bohrer",
    "pl outlook": "Od: Support <support@example.com>\nWysłano: 5 stycznia 2026\nDo: Jane\nTemat: Wiertarka",
    "fr outlook": "De : Support <support@example.com>\nEnvoyé : lundi 5 janvier 2026\nÀ : Jane\nObjet : Perceuse",
    "es outlook": "De: Support <support@example.com>\nEnviado: lunes, 5 de enero de 2026\nPara: Jane\nAsunto: Taladro",
    "en original": "-----Original Message-----",
    "de original": "-----Ursprüngliche Nachricht-----",
    "pl original": "-----Wiadomość oryginalna-----",
    "fr original": "-----Message d'origine-----",
    "gmail forward": "---------- Forwarded message ---------",
    "de forward": "-------- Weitergeleitete Nachricht --------",
}


@pytest.mark.parametrize("mark", QUOTED_TO_THE_END.values(), ids=QUOTED_TO_THE_END.keys())
def test_everything_after_the_mark_is_quoted(mark: str) -> None:
    body = f"{NEW}\n\n{mark}\n\n{OLD}\nSecond line of the old mail.\n"
    assert texts(body) == {"new": f"{NEW}\n\n", "quoted": f"{mark}\n\n{OLD}\nSecond line of the old mail.\n"}


@pytest.mark.parametrize(
    "mark",
    [
        "On Mon, Jan 5, 2026 at 10:00 AM Support <support@example.com> wrote:",
        "On 5 January you wrote:",
        "Am 05.01.2026 um 10:00 schrieb Support:",
        "W dniu 5.01.2026 o 10:00, Support pisze:",
        "Le 05/01/2026 à 10:00, Support a écrit :",
        "El 5/1/26 a las 10:00, Support escribió:",
        "Support schrieb am 05.01.2026 10:00:",
    ],
)
def test_after_marked_lines_the_text_is_new_again(mark: str) -> None:
    body = f"{mark}\n> {OLD}\n\n{NEW}\n"
    assert texts(body) == {"quoted": f"{mark}\n> {OLD}\n\n", "new": f"{NEW}\n"}


def test_replies_between_quoted_lines_are_new() -> None:
    spans = label_spans("> Which model?\nBarista 300\n\n> Which number?\n> It is on the back.\nSN12345\n")
    assert [(span.kind, span.text) for span in spans] == [
        ("quoted", "> Which model?\n"),
        ("new", "Barista 300\n\n"),
        ("quoted", "> Which number?\n> It is on the back.\n"),
        ("new", "SN12345\n"),
    ]


def test_a_bottom_posted_reply_is_new() -> None:
    body = f"On Mon, Jan 5, 2026 at 10:00 AM Support <support@example.com> wrote:\n> {OLD}\n>\n> Regards\n\n{NEW}"
    assert texts(body)["new"] == NEW


def test_a_forwarded_mail_without_a_word_of_its_own_is_all_quoted() -> None:
    body = (
        f"---------- Forwarded message ---------\nFrom: Jane <jane@example.com>\nDate: Mon\nSubject: Drill\n\n{NEW}\n"
    )
    assert texts(body) == {"quoted": body}


@pytest.mark.parametrize(
    "signature",
    [
        "-- \nJane\nExample Ltd.",
        "--\nJane",
        "Sent from my iPhone",
        "Sent from Yahoo Mail on Android",
        "Get Outlook for iOS",
        "Von meinem iPhone gesendet",
        "Gesendet mit der GMX Mail App",
        "Diese Nachricht wurde von meinem Android-Gerät mit GMX Mail gesendet.",
        "Wysłane z iPhone'a",
        "Envoyé de mon iPhone",
        "Enviado desde mi iPhone",
        "Inviato da iPhone",
        "Verstuurd vanaf mijn iPhone",
    ],
)
def test_a_signature_runs_to_the_end(signature: str) -> None:
    assert texts(f"{NEW}\n\n{signature}\n") == {"new": f"{NEW}\n\n", "signature": f"{signature}\n"}


def test_a_signature_ends_at_the_next_quotation() -> None:
    body = (
        f"{NEW}\n\nSent from my iPhone\n\nOn Mon, Jan 5, 2026 at 10:00, Support <support@example.com> wrote:\n> {OLD}\n"
    )
    assert [span.kind for span in label_spans(body)] == ["new", "signature", "quoted"]


def test_text_below_the_phones_line_is_new_when_nothing_stands_above_it() -> None:
    assert texts(f"Sent from my iPhone\n\n{NEW}") == {"new": f"Sent from my iPhone\n\n{NEW}"}


def test_a_quotation_at_the_top_is_no_new_text_for_a_signature_to_follow() -> None:
    quoted = "On Mon, 5 Jan 2026 at 10:00\nSupport <support@example.com> wrote:\n> Which number?\n"
    assert texts(f"{quoted}Sent from my iPhone\nSN12345") == {"quoted": quoted, "new": "Sent from my iPhone\nSN12345"}


def test_two_dashes_above_a_long_text_are_a_rule_and_no_signature() -> None:
    body = f"{NEW}\n--\n" + "One more thing.\n" * 20
    assert texts(body) == {"new": body}


def test_a_line_that_may_hold_a_serial_number_is_no_signature() -> None:
    body = f"{NEW}\nSent from my house, serial SN12345\n"
    assert texts(body) == {"new": body}


@pytest.mark.parametrize(
    "prose",
    [
        "On Monday my son wrote: the drill is broken.\nSerial number: SN12345",
        "On 5 January you wrote:\nthe warranty is void. But the serial number is SN12345.",
        "I wrote to you on 05.01.2026 at 10:00.\nMy serial number:\nSN12345",
        "Am 05.01.2026 um 10:00 schrieb ich Ihnen.\nSeriennummer:\nSN12345",
        "From: Jane\nMessage: my drill, SN12345, is broken",
        "From: Jane\nTo: Support\nSerial number: SN12345",
        "Details:\n- bought 2026\n- serial:\n  SN12345",
        "---\nSN12345\n---",
        "-",
        "_____________\nSN12345",
        "Do: SN12345 and SN54321 share a warranty?",
    ],
)
def test_prose_that_looks_like_a_mark_stays_new(prose: str) -> None:
    assert texts(prose) == {"new": prose}


def test_an_empty_body_has_no_spans() -> None:
    assert label_spans("") == ()


LINES = st.sampled_from(
    [
        "",
        " ",
        "text",
        "> quoted",
        "-- ",
        "--",
        "-",
        "_____",
        "Details:",
        "wrote:",
        "From: a",
        "Sent: b",
        "To: c",
        "é:",
        "On 5 Jan 2026 at 10:00 a@example.com",
        "On 5 Jan 2026 10:00 <a@example.com> wrote:",
        "Sent from my iPhone",
        "-----Original Message-----",
        "Begin forwarded message:",
        "x <a@example.com> 2026:",
        ":",
        "@",
        "@:",
    ]
)


@settings(max_examples=200)
@given(st.lists(LINES, max_size=30).map("\n".join) | st.text(max_size=300))
def test_the_spans_are_the_body_and_neighbours_differ(body: str) -> None:
    spans = label_spans(body)
    assert "".join(span.text for span in spans) == body
    assert all(one.kind != other.kind for one, other in itertools.pairwise(spans))

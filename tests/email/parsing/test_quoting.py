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
    "nl apple": "Op 5 jan. 2026, om 10:00 heeft Support <support@example.com> het volgende geschreven:",
    "zoho": "---- On Mon, 05 Jan 2026 10:00:00 +0100 support@example.com wrote ----",
    "zoho with a name": "---- On Mon, 05 Jan 2026 10:00:00 +0100 Support &lt;support@example.com&gt; wrote ----",
    "android, between dashes": "---- Support Team wrote ----",
    "without its colon": "On Mon, 5 Jan 2026 10:00:00 +0100 Support <support@example.com> wrote",
    "en thunderbird, a name in lower case": "On 05/01/2026 10:00, support_team wrote:",
    "en with a broken address": "On Mon, Jan 5, 2026 at 10:00 AM Support\n\n<\nmailto:support@example.com\n> wrote:",
    "no gmail": "man. 5. jan. 2026 kl. 10:00 skrev Support <support@example.com>:",
    "no gmail, the bracket wrapped": "man. 5. jan. 2026 kl. 10:00 skrev Support <support@example.com\n>:",
    "no apple": "Den 5. jan. 2026 kl. 10:00 skrev Support <support@example.com>:",
    "da apple": "Den 5. jan. 2026 kl. 10.00 skrev Support <support@example.com>:",
    "fi gmail": "ma 5. tammikuuta 2026 klo 10.00 Support\n<support@example.com> kirjoitti:",
    "fi apple": "Support <support@example.com> kirjoitti 5.1.2026 kello 10.00:",
    "hu gmail": "Support <support@example.com> ezt írta (időpont: 2026. jan. 5., H, 10:00):",
    "hu thunderbird": "2026. 01. 05. 10:00 keltezéssel, Support írta:",
    "ro gmail": "lun., 5 ian. 2026 la 10:00, Support <support@example.com> a scris:",
    "tr gmail": "Support <support@example.com>, 5 Oca 2026 Pzt, 10:00 tarihinde şunu yazdı:",
    "el gmail": "Στις Δευ 5 Ιαν 2026 στις 10:00 π.μ., ο χρήστης Support <support@example.com> έγραψε:",
    "ru gmail": "пн, 5 янв. 2026 г. в 10:00, Support <support@example.com>:",
    "ru android": "5 янв. 2026 г. 10:00 пользователь Support <\nsupport@example.com> написал:",
    "ru thunderbird": "05.01.2026 10:00, Support пишет:",
    "ru yandex": "10:00, 5 января 2026 г., Support <support@example.com>:",
    "uk gmail": "пн, 5 січ. 2026 р. о 10:00 Support <support@example.com> пише:",
    "uk apple": "5 січ. 2026 р. о 10:00 Support <support@example.com> написав(ла):",
    "vi gmail": "Vào Th 2, 5 thg 1, 2026 vào lúc 10:00 Support <support@example.com> đã viết:",
    "zh gmail": "Support <support@example.com> 于2026年1月5日周一 10:00写道:",
    "zh apple": "在 2026年1月5日,10:00,Support <support@example.com> 写道:",
    "ko gmail": "2026년 1월 5일 (월) 오전 10:00, Support <support@example.com>님이 작성:",
    "pl apple": "Wiadomość napisana przez Support <support@example.com> w dniu 5 sty 2026, o godz. 10:00:",
    "hu apple": "Support <support@example.com> írta (2026. jan. 5. dátummal, 10:00):",
    "tr apple": "Support <support@example.com> şunları yazdı (5 Oca 2026 10:00):",
    "sv apple": "5 jan. 2026 kl. 10:00 skrev Support <support@example.com>:",
    "cs apple": "5. 1. 2026 v 10:00, Support <support@example.com>:",
    "ca gmail": "El dl., 5 de gen. 2026, 10:00, Support <support@example.com> va escriure:",
    "pt apple": "No dia 5 de jan. de 2026, às 10:00, Support <support@example.com> escreveu:",
    "ru mail.ru": "Понедельник, 5 января 2026, 10:00 +03:00 от Support <support@example.com>:",
    "pl yahoo": "W dniu poniedziałek, 5 stycznia 2026 10:00:00 CET użytkownik Support <a@example.com> napisał:",
    "en proton": "On Monday, January 5th, 2026 at 10:00 AM, Support <support@example.com> wrote:",
    "yahoo, text on the same line": f"On Mon, 5 Jan 2026 at 10:00, Support<support@example.com> wrote:   {OLD}",
    "en outlook": "From: Support <support@example.com>\nSent: Monday, 5 January 2026 10:00\nTo: Jane\nSubject: Drill",
    "en outlook with rule": "________________________________\nFrom: Support\nSent: Monday, 5 January 2026\nTo: Jane",
    "en apple forward": "Begin forwarded message:\n\nFrom: Support\nSubject: Drill",
    "en bold labels": "*From:* Support\n*Sent:* Monday, January 5, 2026 10:00 AM\n*To:* Jane\n*Subject:* Drill",
    "de outlook": "Von: Support <support@example.com>\nGesendet: Montag, 5. Januar 2026\nAn: Jane\nBetreff: Bohrer",
    "pl outlook": "Od: Support <support@example.com>\nWysłano: 5 stycznia 2026\nDo: Jane\nTemat: Wiertarka",
    "fr outlook": "De : Support <support@example.com>\nEnvoyé : lundi 5 janvier 2026\nÀ : Jane\nObjet : Perceuse",
    "es outlook": "De: Support <support@example.com>\nEnviado: lunes, 5 de enero de 2026\nPara: Jane\nAsunto: Taladro",
    "en outlook.com, date first": "Date: Mon, 5 Jan 2026 10:00:00 +0100\nFrom: a@example.com\nTo: b@example.com",
    "date and recipient alone": "Date: Mon, 5 Jan 2026 10:00:00 +0100\nTo: jane@example.com",
    "sender and date alone": "From: support@example.com\nDate: Mon, 5 Jan 2026 10:00:00 +0100",
    "en bold labels, the first one wrapped": "*From:* Support [mailto:\nsupport@example.com]\n"
    "*Sent:* Monday, January 5, 2026 10:00 AM\n*To:* Jane",
    "en outlook with a line of dashes": "------------------------------\n\nFrom: Support\nSent: Monday\nTo: Jane",
    "de gmx": "Gesendet: Montag, 05. Januar 2026 um 10:00 Uhr\nVon: a@example.com\nAn: b@example.com\nBetreff: Bohrer",
    "pl interia": "Od: Support <a@example.com>\nDo: Jane\nWysłane: 10:00 Poniedziałek 2026-01-05\nTemat: Wiertarka",
    "ja outlook": "差出人: Support\n送信日時: 2026年1月5日 10:00\n宛先: Jane\n件名: ドリル",
    "ko outlook": "보낸 사람: Support <a@example.com>\n보낸 날짜: 2026년 1월 5일\n받는 사람: Jane\n제목: 드릴",
    "tr outlook": "Kimden: Support\nGönderildi: 5 Ocak 2026 10:00\nKime: Jane\nKonu: Matkap",
    "hu outlook": "Feladó: Support\nElküldve: 2026. január 5. 10:00\nCímzett: Jane\nTárgy: Fúró",
    "nl outlook": "Van: Support\nVerzonden: maandag 5 januari 2026 10:00\nAan: Jane\nOnderwerp: Boor",
    "cs seznam": "---------- Původní e-mail ----------",
    "zh netease": "---- 回复的原邮件 ----",
    "fr sfr": "Message du : 05/01/2026 10:00\nDe : support@example.com\nA : jane@example.com\nSujet : Perceuse",
    "da outlook": "Fra: Support\nSendt: 5. januar 2026 10:00\nTil: Jane\nEmne: Boremaskine",
    "fi outlook": "Lähettäjä: Support\nLähetetty: maanantai 5. tammikuuta 2026 10.00\nVastaanottaja: Jane\nAihe: Pora",
    "ru outlook": "От: Support\nОтправлено: 5 января 2026 г. 10:00\nКому: Jane\nТема: Дрель",
    "uk outlook": "Від: Support\nНадіслано: 5 січня 2026 р. 10:00\nКому: Jane\nТема: Дриль",
    "zh outlook": "发件人: Support\n发送时间: 2026年1月5日 10:00\n收件人: Jane\n主题: 电钻",
    "de reply": "-----Antwort Nachricht-----",
    "da original": "-------- Oprindelig besked --------",
    "no original": "-----Opprinnelig melding-----",
    "fi original": "-----Alkuperäinen viesti-----",
    "ru original": "-------- Исходное сообщение --------",
    "de david": "Original Message processed by david®",
    "en outlook with more headers": "From: Support\nSent: Monday 10:00 AM\nTo: Jane\nSubject: Drill\nImportance: High",
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


@pytest.mark.parametrize(
    "mark",
    [
        "Jane wrote:",
        "support team <support@example.com> wrote:",
        "At 5/1/2026 10:00 AM, you wrote:",
        "понедельник, 5 января 2026 г. пользователь Support написал:",
        "20 жовт. 2026 р. 19:37 Support пише:",
        "2026/1/5 Support <support@example.com>",
        "On 5-Jan-2026, at 10:00 AM, Support <support@example.com> sent:",
    ],
)
def test_an_attribution_that_only_its_marked_lines_prove(mark: str) -> None:
    body = f"{NEW}\n\n{mark}\n> {OLD}\n"
    assert texts(body) == {"new": f"{NEW}\n\n", "quoted": f"{mark}\n> {OLD}\n"}


def test_an_attribution_above_everything_leaves_what_follows_new() -> None:
    mark = "On Mon, Jan 5, 2026 at 10:00 AM Support <support@example.com> wrote:\n\n"
    assert texts(f"{mark}{NEW}\n") == {"quoted": mark, "new": f"{NEW}\n"}


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("It is SN12345. ", "On Mon, Jan 5, 2026 at 10:00 AM, Support <support@example.com> wrote:"),
        ("I bought it on 5 May 2024. ", "On Mon, Jan 5, 2026 at 10:00 AM, support@example.com wrote:"),
        ("It is SN12345", "--- On Mon, Jan 5, 2026 at 10:00 AM, support@example.com wrote:"),
        ("  Ja, SN12345 ", "Am 05.01.2026 um 10:00 schrieb Support <support@example.com>:"),
        ("It is SN12345. ", "On Mon, Jan 5, 2026 at 10:00 AM, Support <\nsupport@example.com>\nwrote:"),
        ("long " * 400, "On Mon, Jan 5, 2026 at 10:00 AM, support@example.com wrote:"),
    ],
)
def test_a_reply_on_the_attributions_own_line_is_new(reply: str, mark: str) -> None:
    spans = label_spans(f"{NEW}\n{reply}{mark}\n> {OLD}\n")
    assert [(span.kind, span.text) for span in spans] == [
        ("new", f"{NEW}\n{reply}"),
        ("quoted", f"{mark}\n> {OLD}\n"),
    ]


def test_a_line_above_a_whole_attribution_stays_new() -> None:
    above = "On 5 May it broke, SN12345\n\n"
    mark = "Support <support@example.com> wrote:\n"
    for body in (f"{above}{mark}> {OLD}\n", f"{above.strip()}\n{mark}> {OLD}\n"):
        assert "SN12345" in texts(body)["new"]


@pytest.mark.parametrize(("length", "first_quoted"), [(40, "On Mon,"), (41, "> ")])
def test_a_marked_line_that_closes_an_attribution_is_short(length: int, first_quoted: str) -> None:
    opening = "On Mon, Jan 5, 2026 at 10:00 AM, Support <support@example.com\n"
    closing = f"> {'wrote:':>{length - 2}}"
    assert texts(f"{NEW}\n\n{opening}{closing}\n> {OLD}\n")["quoted"].startswith(first_quoted)


def test_a_link_that_was_broken_stays_with_the_marked_lines() -> None:
    body = "> See (https://example.com/a\nb?c=d)\n> and\n (https://example.com/e) >\n> more\n"
    assert texts(body) == {"quoted": body}


@pytest.mark.parametrize("body", ["See <https://example.com/a\n> for SN12345", "Look:\n>>> SN12345 <<<\nThanks"])
def test_a_bracket_at_the_start_of_a_line_marks_nothing(body: str) -> None:
    assert texts(body) == {"new": body}


def test_a_forwarded_mail_of_header_lines_alone_is_all_quoted() -> None:
    body = f"From: Support\nSent: Monday, 5 January 2026 10:00\nTo: Jane\nSubject: Drill\n\n{OLD}\n"
    assert texts(body) == {"quoted": body}


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
        "Sent from my Verizon Wireless BlackBerry",
        "Sent from TypeApp<https://example.com/r?b=26210>",
        "Отправлено с iPhone",
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


def test_a_paragraph_below_the_phones_line_is_new() -> None:
    body = f"{NEW}\n\nSent from my iPhone\nGet Outlook for iOS\n\nPS: it is SN12345\n"
    assert [span.kind for span in label_spans(body)] == ["new", "signature", "new"]


@pytest.mark.parametrize(
    "line", ["Sent from my house, serial SN12345", "Sent from my desk, is much easier than from my phone."]
)
def test_a_sentence_that_starts_like_a_phones_line_is_new(line: str) -> None:
    body = f"{NEW}\n\n{line}\n"
    assert texts(body) == {"new": body}


def test_text_below_the_phones_line_is_new_when_nothing_stands_above_it() -> None:
    assert texts(f"Sent from my iPhone\n\n{NEW}") == {"new": f"Sent from my iPhone\n\n{NEW}"}


def test_a_quotation_at_the_top_is_no_new_text_for_a_signature_to_follow() -> None:
    quoted = "On Mon, 5 Jan 2026 at 10:00\nSupport <support@example.com> wrote:\n> Which number?\n"
    assert texts(f"{quoted}Sent from my iPhone\nSN12345") == {"quoted": quoted, "new": "Sent from my iPhone\nSN12345"}


def test_two_dashes_above_a_long_text_are_a_rule_and_no_signature() -> None:
    body = f"{NEW}\n--\n" + "One more thing.\n" * 20
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
        "It broke.\n\nOn 5 January 2026 at 10:00 I wrote:\nthe serial number is SN12345",
        "It broke.\n\nOn 05.01.2026 at 10:00 my son wrote:\nthe serial number is SN12345",
        "It broke.\n\nThis is what jane@example.com wrote:\nSN12345",
        "It broke.\n\nYour colleague\nJane <jane@example.com> wrote:\nsend the number. It is SN12345.",
        "It broke.\n\nI bought it on 5 May 2024 10:00 and jane@example.com wrote:\nSN12345",
        "It broke.\n\nDate: 5 May 2024 10:00\nFrom: Berlin\nTo: Munich\nSubject: SN12345",
        "It broke.\n\nFrom: A to B\nDate: 12 May\nTo: be honest, SN12345",
        "Von: Jane\nAn: Elektromarkt\nBetreff: Bohrer\nDatum: 5.1.2026\n\nSN12345 ist kaputt.",
        "It broke.\n\nMy number is SN12345, Jane <jane@example.com> wrote:\nthank you",
        "It broke.\n\nSN12345, bought 2024 at 10:00 from <shop@example.com>:\nit leaks",
        "It broke.\n\n2024-05-01 Shop <shop@example.com>\nSN12345",
        "It broke.\n\n---- My number ----\nSN12345",
        "It broke.\n\n---- what I wrote ----\nSN12345",
        "It broke.\n\nDate: Monday 5, January 2026\nTime: 7:00\nAddress: 1 Example Street\nSN12345",
        "It broke.\n\nDate: 5 January 2026\nTo: the shop\nSN12345",
        "New request:\nFrom: Jane\nDate: 5 January 2026\nSubject: Drill\nMessage: SN12345 is broken",
        "From: Jane\nDate: 5 January 2026\nSubject: Drill\nSerial: SN12345",
        "From: Jane\nDate: 5 January 2026\nSubject: Drill\nit is broken",
        "New request:\n\nFrom: jane@example.com\nDate: 5 January 2026 10:00\n\nSN12345 is broken",
        "New request:\nFrom: jane@example.com\nDate: 5 Jan 2026 10:00\nSubject: Drill\nSerial: SN12345\n\nIt leaks",
        "Garantie:\nVon: Elektromarkt\nDatum: 05.01.2024\nAn: Jane\nSeriennummer: SN12345",
        "It broke.\n\nOn Monday support@example.com wrote: send the number. It is SN12345.",
        "On 5/1/2026 10:00, support@example.com wrote: send the number. It is SN12345.",
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
        "new On 5 Jan 2026 10:00 a@example.com wrote:",
        "  yes--- On 5 Jan 2026 10:00 a@example.com wrote:",
        "> wrote:",
        "x <https://example.com",
        "---- On 5 Jan 2026 10:00 X wrote ----",
        "On 5 Jan 2026 10:00 a@example.com wrote",
        "Date: 5 Jan 2026 10:00",
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


@settings(max_examples=200)
@given(st.lists(LINES, max_size=30))
def test_what_stands_above_every_mark_is_new(lines: list[str]) -> None:
    body = "\n".join(["The number is SN12345", "", *lines])
    first = label_spans(body)[0]
    assert (first.kind, first.text.partition("\n")[0]) == ("new", "The number is SN12345")


@pytest.mark.parametrize(
    "line",
    [
        "On :",
        "@:",
        "wrote:",
        "> wrote:",
        "On 5 May 2026 at 10:00 x <a@example.com> wrot:",
        " on 5" * 19 + ":",
        " on 5" * 200 + " wrote:",
        "On @ wrote :",
        "From: a",
        "Date: 2026 10:00",
        "<",
        "> (https://example.com",
        "-----",
        "---- X wrote ----x",
        "Sent from my <https://example.com",
    ],
)
def test_two_hundred_kilobytes_of_starts_are_labelled_line_by_line(line: str) -> None:
    body = f"{line}\n" * (200_000 // len(line))
    assert "".join(span.text for span in label_spans(body)) == body


@pytest.mark.parametrize("sign", "@>-5:. <(")
def test_one_line_of_two_hundred_kilobytes_is_labelled(sign: str) -> None:
    body = f"On {sign * 200_000} wrote:"
    assert "".join(span.text for span in label_spans(body)) == body

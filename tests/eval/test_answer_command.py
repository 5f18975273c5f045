"""`answer` on single mails."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN

from guarantee_email_agent.config import look_up_settings as made
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.answer_command import AnswerOptions, answer_mail, read_mail_file
from guarantee_email_agent.eval.dry_run import UNKNOWN_SCENARIO, reply_of_thread, with_previous_reply
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.eval.models import PreviousReply
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.errors import ConfigurationError, ProcessingError

VALID = LookUpSource(answers={"warranty_api": {"status": "valid", "expiration_date": "2027-01-01"}})
NOTHING = LookUpSource()


def mail(body: str, headers: str = "") -> bytes:
    text = f"From: Ada <ada@example.com>\nTo: support@example.com\nSubject: Dryer\n{headers}\n{body}\n"
    return text.encode()


ORDERS = load_config(Path(__file__).parents[2] / "examples" / "orders" / "config.yaml", {})
SHIPPED = LookUpSource(answers={"orders": {"status": "shipped", "delivery_date": "2027-01-01"}})


def shown(raw: bytes, source: LookUpSource = NOTHING, config: Config | None = None, **options: Any) -> tuple[int, str]:
    stream = io.StringIO()
    config = config or BUILT_IN
    code = answer_mail(AnswerOptions(mail="-", look_up=source, **options), config, stream, lambda size: raw[:size])
    return code, stream.getvalue()


def test_every_step_of_a_warranty_mail_is_shown() -> None:
    code, text = shown(mail("Is SN12345 still covered?"), VALID)
    steps = [line.split(":")[0] for line in text.splitlines() if line.startswith("✓")]
    assert code == 0
    assert steps == [
        *("✓ mail", "✓ may reply", "✓ triage", "✓ language", "✓ serial number", "✓ look-up"),
        *("✓ scenario", "✓ sentences", "✓ ticket", "✓ reply", "✓ sentence ids"),
    ]
    assert "2027-01-01" in text
    assert text.endswith("Outcome: answered. Nothing was sent.\n")


def test_without_an_answer_no_number_is_known_and_the_step_says_so() -> None:
    formats = made.SerialNumberSettings((made.NumberFormatSettings("SN[0-9]+", "SN12345"),))
    _, text = shown(
        mail("Is SN12345 still covered?"), config=replace(BUILT_IN, warranty=made.WarrantySettings(formats))
    )
    assert "look-up: check_warranty SN12345 (nothing given, so no number is known; say --status" in text
    assert "✓ scenario: invalid-warranty" in text


def test_a_mail_that_must_not_be_answered_has_the_reason() -> None:
    code, text = shown(mail("Back on Monday", "Auto-Submitted: auto-replied\n"))
    assert code == 0
    assert "✓ may reply: no: Auto-Submitted is not 'no'\n" in text
    assert "✓ reply" not in text


def test_a_mail_for_a_person_has_the_reason() -> None:
    _, text = shown(mail("My dryer SN12345 caught fire, there were flames!"))
    assert "✓ for a person: yes, by the mail's words: fire" in text
    assert text.endswith("Outcome: handed over. Nothing was sent.\n")


def test_control_characters_of_a_mail_are_written_out() -> None:
    _, text = shown(b"From: ada@example.com\nSubject: =?utf-8?q?a=1b[31mb?=\n\nHello\n")
    assert "\x1b" not in text


def test_the_json_report_has_reply_and_ticket(tmp_path: Path) -> None:
    shown(mail("Is SN12345 still covered?"), VALID, json_file=tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["outcome"], report["scenario_used"]) == ("answered", "valid-warranty")
    assert report["reply_sentences"][:3] == ["greeting", "thanks", "status-valid"]
    assert report["reply"]["to"] == report["ticket"]["customer_email"] == "ada@example.com"


@pytest.mark.parametrize("mode", ["drafts", "observe"])
def test_what_would_leave_unattended_is_shown_in_every_mode(mode: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"agent: {{mode: {mode}}}\n", encoding="utf-8")
    stream, raw = io.StringIO(), mail("Is SN12345 still covered?")
    config = load_config(tmp_path / "config.yaml", {})
    answer_mail(AnswerOptions(mail="-", look_up=VALID), config, stream, lambda size: raw[:size])
    assert "✓ reply: to ada@example.com" in stream.getvalue()


def test_a_configured_look_up_answers_as_given() -> None:
    code, text = shown(mail("Where is my order AB-10001?"), SHIPPED, ORDERS)
    assert code == 0
    assert "✓ order number: AB-10001\n" in text
    assert '✓ look-up: orders AB-10001 (as given)\n    {"status": "shipped", "delivery_date": "2027-01-01"}' in text
    assert "It should reach you by: 2027-01-01" in text


def test_without_an_answer_the_step_names_the_option_of_that_look_up() -> None:
    _, text = shown(mail("Where is my order AB-10001?"), config=ORDERS)
    assert "(nothing given, so no number is known; say --answer orders.status=…, or --look-up)" in text


def test_an_answer_that_no_topic_asks_for_is_told() -> None:
    with pytest.raises(
        ConfigurationError, match="No topic of the instruction files asks warranty_api; they ask orders"
    ):
        shown(mail("Where is my order AB-10001?"), VALID, ORDERS)


def test_an_answer_for_another_address_is_withheld() -> None:
    source = LookUpSource(answers={"orders": {"status": "shipped", "owner_email": "eve@example.com"}})
    _, text = shown(mail("Where is my order AB-10001?"), source, ORDERS)
    assert "    withheld: owner_email is not the sender\n" in text
    assert "✓ scenario: order-unverified" in text


@pytest.mark.parametrize(
    ("body", "step"),
    [
        ("Is my dryer still covered?", "warranty_api is not asked: the mail does not give exactly one serial number"),
        ("Are SN12345 and SN54321 covered?", "warranty_api is not asked: the mail does not give exactly one"),
        ("Thank you very much!", "none: the topic 'other' has no look-up"),
    ],
)
def test_why_no_look_up_is_asked(body: str, step: str) -> None:
    assert f"✓ look-up: {step}" in shown(mail(body))[1]


def test_numbers_that_do_not_count_are_named_with_the_reason() -> None:
    _, text = shown(mail("Is SN12345 still covered? I bought it on 2024-05-06, invoice number 991823."), VALID)
    assert "✓ serial number: SN12345\n" in text
    assert "    dropped 2024-05-06: has no label\n" in text
    assert "    dropped 991823: belongs to 'invoice number'\n" in text


@pytest.mark.parametrize(
    ("body", "language"),
    [
        ("Mein Trockner SN12345 wird nicht mehr warm. Habe ich noch Garantie darauf?", "de, which its text is in"),
        ("SN12345?", "en, the default one: the text is too short to tell"),
    ],
)
def test_the_language_is_shown_with_what_decided(body: str, language: str) -> None:
    text = shown(mail(body).replace(b"Dryer", b"SN"), VALID)[1]
    assert f"✓ language: {language}" in text


def test_a_language_without_replies_is_a_persons() -> None:
    text = shown(mail("O meu secador não funciona, você pode ver se a garantia ainda está? SN12345"), VALID)[1]
    assert "✓ scenario: hand-over\n" in text
    assert "language" in text


def test_what_is_not_understood_is_shown() -> None:
    odd = "The quokka wibbled, snorfled, frobnicated and gronked beneath the gazebo."
    text = shown(mail(f"Is SN12345 still covered? {odd}"), VALID)[1]
    assert "✓ for a person: yes: unexplained\n    not understood in sentence 3: quokka, wibbled, snorfled" in text


def test_a_follow_up_is_shown_as_one() -> None:
    raw = mail("4711-A12 it is.", "In-Reply-To: <ours@example.com>\n").replace(b"Dryer", b"Re: Dryer")
    _, text = shown(raw, VALID, previous_reply="missing-info:WEB-7")
    assert "✓ answers our reply: missing-info, ticket WEB-7 (as given)\n✓ may reply" in text
    assert "✓ scenario: valid-warranty" in text


def test_a_follow_up_that_names_no_mail_gets_the_header_and_says_so() -> None:
    _, text = shown(mail("Why is that? It is not fair."), previous_reply="invalid-warranty")
    assert "    note: the mail names no earlier one, so a header In-Reply-To was added\n" in text
    assert "✓ for a person: yes: follow-up" in text


MAIL = b"From: ada@example.com\nSubject: Hi\n\nIs SN12345 covered?\n"


def no_stdin(_size: int) -> bytes:
    raise AssertionError("nobody asked for stdin")


def read(content: bytes, folder: Path) -> str:
    (folder / "mail.eml").write_bytes(content)
    return read_mail_file(str(folder / "mail.eml"), no_stdin)[1].new_text


def test_the_first_line_of_an_mbox_file_is_passed_over(tmp_path: Path) -> None:
    assert read(b"From ada@example.com Sat Jan 17 10:00:00 2026\n" + MAIL, tmp_path) == "Is SN12345 covered?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there is no mail in it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 99, "a file of Outlook's own. Save the mail as .eml"),
        (b"\xff\xfe\x00garbage", "no header fields, so it is no mail. A mail's file begins"),
        (b"Subject: Hi\n\nNobody wrote this", "has no sender"),
    ],
)
def test_what_is_no_mail_is_told_with_the_files_name(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProcessingError, match=rf"mail\.eml: .*{message}"):
        read(content, tmp_path)


def test_stdin_is_not_read_for_ever() -> None:
    with pytest.raises(ProcessingError, match="stdin: the mail is larger than 25,000,000 bytes"):
        read_mail_file("-", lambda size: b"a" * size)


def answer(headers: str = "") -> Email:
    return parse_email(f"From: ada@example.com\nSubject: Re: Dryer\n{headers}\nHere it is.\n".encode())


def test_the_reply_is_the_nearest_mail_that_this_one_answers(instructions: Instructions) -> None:
    email = answer("References: <first@a.example> <ours@b.example>\nIn-Reply-To: <ours@b.example>\n")
    reply, same = with_previous_reply("missing-info:WEB-00017", email, instructions.scenarios)
    assert reply == PreviousReply("<ours@b.example>", "missing-info", "WEB-00017")
    assert same == email


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing-inf", "no scenario 'missing-inf' sends a reply – did you mean 'missing-info'?"),
        ("no-reply", "no scenario 'no-reply' sends a reply; those that do are "),
        ("", "no scenario '' sends a reply; those that do are "),
        ("missing-info:", "'' is no ticket number. Write it as missing-info:WEB-00017, or leave it out"),
        ("missing-info:a b", "'a b' is no ticket number"),
    ],
)
def test_what_is_no_reply_of_ours_is_told(text: str, message: str, instructions: Instructions) -> None:
    with pytest.raises(ConfigurationError) as caught:
        with_previous_reply(text, answer(), instructions.scenarios)
    assert message in caught.value.message


@pytest.mark.parametrize(("code", "name"), [("missing_info", "missing-info"), ("gone_since", UNKNOWN_SCENARIO)])
def test_a_reply_that_the_ledger_knows(code: str, name: str, instructions: Instructions) -> None:
    thread = Thread("k", code, "WEB-1", "<ours@b.example>", replied_at=0.0, replies=2, follow_ups=1)
    reply = reply_of_thread(thread, instructions.scenarios)
    assert reply == PreviousReply("<ours@b.example>", name, "WEB-1", follow_ups=1)

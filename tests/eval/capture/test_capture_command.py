import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scenario_folder import BUILT_IN

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.capture.capture_command import (
    MESSAGE_ID,
    CaptureOptions,
    capture_mail,
    capture_wrong,
    read_mailbox_mail,
)
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.ports import MarkedMail
from guarantee_email_agent.utils.errors import ConfigurationError, MCPConnectionError, ProcessingError

MAIL = b"From: Ida Lund <ida.lund@firm.de>\nSubject: Dryer\nDate: Sun, 18 Jan 2026 10:01:00 +0000\n\n%s\n"
QUESTION = MAIL % b"Is SN48213 still covered?\n\nKind regards\nIda Lund"
CONFIG = BUILT_IN
VALID = LookUpSource(answers={"warranty_api": {"status": "valid", "expiration_date": "2027-01-31", "coverage": "full"}})


def capture(raw: bytes, folder: Path, source: LookUpSource = VALID, scenario_id: str | None = None) -> str:
    stream = io.StringIO()
    options = CaptureOptions(directory=folder, look_up=source, today="2026-02-01", scenario_id=scenario_id)
    assert capture_mail(options, CONFIG, stream, lambda: (raw, parse_email(raw))) == 0
    return stream.getvalue()


def only_case(folder: Path) -> EvalTestCase:
    (case,) = EvalLoader().discover_test_cases(folder)
    return case


def test_a_captured_mail_is_a_scenario_that_passes_and_asks_for_a_review(tmp_path: Path) -> None:
    capture(QUESTION, tmp_path)
    case = only_case(tmp_path)
    assert (case.scenario_id, case.review, case.created) == ("valid_warranty_001", True, "2026-02-01")
    assert run_without_event_loop(EvalRunner(CONFIG).run_test_case(case)).failures == []
    expected = case.expected_output
    number = expected.ticket_fields["serial_number"]
    assert (expected.email_sent, expected.scenario_instruction_used) == (True, "valid-warranty")
    assert (list(expected.response_body_contains), number == "SN48213") == ([number, "2027-01-31"], False)


def test_nothing_of_the_person_stands_in_the_file_or_the_output(tmp_path: Path) -> None:
    printed = capture(QUESTION, tmp_path)
    written = (tmp_path / "valid_warranty_001.yaml").read_text(encoding="utf-8")
    for original in ("Ida", "Lund", "firm.de", "48213"):
        assert original not in written + printed
    assert "Replaced: 1 address, 2 names, 1 number\n" in printed


def test_the_same_mail_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        capture(QUESTION, tmp_path / name)
    one, two = ((tmp_path / name / "valid_warranty_001.yaml").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    capture(QUESTION, tmp_path, scenario_id="valid_warranty_083")
    with pytest.raises(ConfigurationError, match=r"valid_warranty_083\.yaml is there already, and stays"):
        capture(MAIL % b"Is SN12345 covered?", tmp_path, scenario_id="valid_warranty_083")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_mail_for_a_person_is_expected_to_be_handed_over_for_that_reason(tmp_path: Path) -> None:
    capture(MAIL % b"My dryer caught fire, there were flames!", tmp_path)
    expected = only_case(tmp_path).expected_output
    assert (expected.email_sent, expected.hand_over_reason) == (False, "fire")


def test_a_mail_of_a_machine_keeps_the_header_that_says_so(tmp_path: Path) -> None:
    capture(QUESTION.replace(b"Subject", b"Auto-Submitted: auto-replied\nSubject"), tmp_path)
    case = only_case(tmp_path)
    assert (case.category, case.expected_output.email_sent) == ("no-reply", False)


def test_a_mail_that_the_replacement_changes_says_so_in_output_and_file(tmp_path: Path) -> None:
    raw = QUESTION.replace(b"ida.lund@firm.de", b"us@firm.de")
    (tmp_path / "config.yaml").write_text("mailbox: {from_address: us@firm.de}\n", encoding="utf-8")
    folder = tmp_path / "scenarios"
    folder.mkdir()
    stream = io.StringIO()
    options = CaptureOptions(directory=folder, look_up=VALID, today="2026-02-01")
    capture_mail(options, load_config(tmp_path / "config.yaml", {}), stream, lambda: (raw, parse_email(raw)))
    change = "✗ the replacement changed what happens: the scenario was no-reply and is invalid-warranty"
    assert change in stream.getvalue()
    (file,) = folder.iterdir()
    assert "# Replacing personal data changed what happens" in file.read_text(encoding="utf-8")


def test_a_mail_of_five_megabytes_is_cut_and_the_output_says_so(tmp_path: Path) -> None:
    printed = capture(MAIL % (b"Is SN48213 still covered?\n" + b"It makes a loud noise. " * 230_000), tmp_path)
    assert "Note: the texts of the mail are too long; the rest was left out\n" in printed
    assert only_case(tmp_path).category == "hand-over"


def test_a_mail_without_text_is_captured_too(tmp_path: Path) -> None:
    capture(b"From: ida@firm.de\n\n", tmp_path)
    assert only_case(tmp_path).input.email.body.strip() == ""


ORDERS = load_config(Path(__file__).parents[3] / "examples" / "orders" / "config.yaml", {})
SHIPPED = {"status": "shipped", "delivery_date": "2027-01-01", "carrier": "Ida Lund", "total": "1200"}
ORDER = b"From: Ida Lund <ida@firm.de>\nSubject: Order\n%s\n%s\n\nKind regards\nIda Lund\n"


def captured(
    folder: Path, raw: bytes, answer: dict[str, str] = SHIPPED, config: Config = ORDERS, reply: str | None = None
) -> EvalTestCase:
    """The scenario, which passes."""
    source = LookUpSource(answers={"orders": answer})
    options = CaptureOptions(directory=folder, look_up=source, today="2026-02-01", previous_reply=reply)
    assert capture_mail(options, config, io.StringIO(), lambda: (raw, parse_email(raw))) == 0
    (case,) = EvalLoader().discover_test_cases(folder)
    assert run_without_event_loop(EvalRunner(config).run_test_case(case)).failures == []
    return case


def test_the_order_number_is_another_of_its_form_everywhere(tmp_path: Path) -> None:
    case = captured(tmp_path, ORDER % (b"", b"Where is my order AB-10001? I wrote AB10001 before."))
    number = case.expected_output.response_body_contains[0]
    assert re.fullmatch(r"AB-[0-9]{5}", number)
    assert number != "AB-10001"
    assert case.input.email.body.startswith(f"Where is my order {number}? I wrote {number.replace('-', '')} before.")


def test_the_answer_is_recorded_below_its_tool_without_anybodys_name(tmp_path: Path) -> None:
    case = captured(tmp_path, ORDER % (b"", b"Where is my order AB-10001?"), SHIPPED | {"owner_email": "ida@firm.de"})
    assert case.input.mock_responses["orders"]["find_row"] == {
        "status": "shipped",
        "delivery_date": "2027-01-01",
        "carrier": "Alex Robin",
        "total": "1200",
        "owner_email": "customer@example.com",
    }


def test_what_nobody_reads_of_an_answer_is_not_recorded(tmp_path: Path) -> None:
    answer = SHIPPED | {"street": "Hauptstr. 5", "order_number": "AB-10001"}
    case = captured(tmp_path, ORDER % (b"", b"Where is my order AB-10001?"), answer)
    recorded = case.input.mock_responses["orders"]["find_row"]
    assert "street" not in recorded
    assert recorded["order_number"] == case.expected_output.response_body_contains[0]


@pytest.mark.parametrize("pattern", ["[A-Z]{2}-?[1-5][0-9]{4}", "AB-?[0-9]0{3}[0-9]"])
def test_a_narrow_form_is_kept_where_one_of_its_numbers_is_found(pattern: str, tmp_path: Path) -> None:
    orders = replace(ORDERS.look_ups["orders"], pattern=pattern)
    config = replace(ORDERS, look_ups={"orders": orders})
    case = captured(tmp_path, ORDER % (b"", b"Where is my order AB-10001?"), config=config)
    assert re.fullmatch(pattern, case.expected_output.response_body_contains[0])


def test_a_form_that_has_no_other_number_is_told(tmp_path: Path) -> None:
    orders = replace(ORDERS.look_ups["orders"], pattern="AB-10001")
    stream, raw = io.StringIO(), ORDER % (b"", b"Where is my order AB-10001?")
    options = CaptureOptions(
        directory=tmp_path, look_up=LookUpSource(answers={"orders": SHIPPED}), today="2026-02-01", previous_reply=None
    )
    capture_mail(options, replace(ORDERS, look_ups={"orders": orders}), stream, lambda: (raw, parse_email(raw)))
    assert "✗ the replacement changed what happens: the scenario was order-shipped" in stream.getvalue()


def test_a_follow_up_has_the_reply_that_it_answers(tmp_path: Path) -> None:
    raw = ORDER % (b"In-Reply-To: <ours-4711@firm.de>\n", b"AB-10001, here it is.")
    case = captured(tmp_path, raw, reply="order-number-missing:WEB-40017")
    reply = case.input.previous_reply
    assert (reply.message_id, reply.scenario) == ("<message-1@example.com>", "order-number-missing")
    assert re.fullmatch(r"WEB-[0-9]{5}", reply.ticket_id or "")
    assert reply.ticket_id != "WEB-40017"


BOX_MAIL = b"From: ida@firm.de\nMessage-ID: <one@firm.de>\nSubject: Dryer\n\nIs SN48213 covered?\n"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A Maildir with one mail, which was answered."""
    for part in ("cur", "new", "tmp"):
        (tmp_path / "mailbox" / part).mkdir(parents=True)
    (tmp_path / "mailbox" / "cur" / "1700000000.M1P1.host:2,RS").write_bytes(BOX_MAIL)
    (tmp_path / "config.yaml").write_text("mailbox: {from_address: us@shop.de}\n", encoding="utf-8")
    return load_config(tmp_path / "config.yaml", {})


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_mail_is_read_and_the_mailbox_stays_as_it_is(config: Config, tmp_path: Path) -> None:
    before = files(tmp_path)
    raw, email = read_mailbox_mail("<one@firm.de>", config)
    assert (raw, email.sender) == (BOX_MAIL, "ida@firm.de")
    assert files(tmp_path) == before


def test_an_unknown_message_id_is_told(config: Config) -> None:
    with pytest.raises(ProcessingError, match="No mail of the mailbox has the Message-ID <two@"):
        read_mailbox_mail("<two@firm.de>", config)


def test_a_mailbox_that_is_not_there_is_a_connection_error(config: Config, tmp_path: Path) -> None:
    (tmp_path / "mailbox" / "cur").rename(tmp_path / "elsewhere")
    with pytest.raises(MCPConnectionError):
        read_mailbox_mail("<one@firm.de>", config)


def test_mails_that_a_person_flagged_wrong_become_scenarios_once(config: Config, tmp_path: Path) -> None:
    mailbox, suite = tmp_path / "mailbox", tmp_path / "scenarios"
    suite.mkdir()
    (mailbox / "dovecot-keywords").write_text("0 $AgentAnswered\n1 Wrong\n")
    (mailbox / "cur" / "1700000001.M1P1.host:2,Sab").write_bytes(BOX_MAIL.replace(b"covered", b"under warranty"))
    (mailbox / "cur" / "1700000002.M1P1.host:2,b").write_bytes(b"no mail")
    before = files(mailbox)
    options = CaptureOptions(directory=suite, look_up=LookUpSource(), today="2026-02-01")
    for _ in range(2):
        stream = io.StringIO()
        assert capture_wrong(options, config, stream, lambda _: None) == 1
        assert "✗ A mail that is flagged wrong: It cannot be read. Save it as a file" in stream.getvalue()
        assert stream.getvalue().endswith("2 mails flagged wrong. What has a scenario already gets no other.\n")
        (case,) = EvalLoader().discover_test_cases(suite)
        assert (case.scenario_id, case.review) == ("invalid_warranty_001", True)
        assert case.description.startswith("A mail that a person flagged wrong: answered, invalid-warranty.")
        assert "SN48213" not in case.input.email.body
    assert files(mailbox) == before


def test_a_mailbox_without_keywords_is_told(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Maildir, "list_mails", lambda _: [MarkedMail("first", None)])
    options = CaptureOptions(directory=Path(), look_up=LookUpSource(), today="2026-02-01")
    with pytest.raises(ConfigurationError, match="This mailbox keeps no keywords"):
        capture_wrong(options, config, io.StringIO(), lambda _: None)


@pytest.mark.parametrize("text", ["one@firm.de", "<>", "<one>", "<a b@firm.de>", "<a@b> <c@d>", '<a"@b>'])
def test_what_is_no_message_id_is_none(text: str) -> None:
    assert MESSAGE_ID.fullmatch(text) is None

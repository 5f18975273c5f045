"""`capture` where a configured look-up serves the mail, and where the mail answers a reply of ours."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.capture.capture_command import CaptureOptions, capture_mail
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.eval.models import EvalTestCase, PreviousReply
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop

CONFIG = load_config(Path(__file__).parents[3] / "examples" / "orders" / "config.yaml", {})
SHIPPED = {"status": "shipped", "delivery_date": "2027-01-01", "carrier": "Ida Lund", "total": "1200"}
MAIL = b"From: Ida Lund <ida@firm.de>\nSubject: Order\n%s\n%s\n\nKind regards\nIda Lund\n"


def captured(
    folder: Path, raw: bytes, answer: dict[str, str] = SHIPPED, config: Config = CONFIG, reply: str | None = None
) -> EvalTestCase:
    """The scenario, which passes."""
    source = LookUpSource(answers={"orders": answer})
    options = CaptureOptions(directory=folder, look_up=source, today="2026-02-01", previous_reply=reply)
    assert capture_mail(options, config, io.StringIO(), lambda: (raw, parse_email(raw))) == 0
    (case,) = EvalLoader().discover_test_cases(folder)
    assert run_without_event_loop(EvalRunner(config).run_test_case(case)).failures == []
    return case


def test_the_order_number_is_another_of_its_form_everywhere(tmp_path: Path) -> None:
    case = captured(tmp_path, MAIL % (b"", b"Where is my order AB-10001? I wrote AB10001 before."))
    number = case.expected_output.response_body_contains[0]
    assert re.fullmatch(r"AB-[0-9]{5}", number)
    assert number != "AB-10001"
    assert case.input.email.body.startswith(f"Where is my order {number}? I wrote {number.replace('-', '')} before.")


def test_the_answer_is_recorded_below_its_tool_without_anybodys_name(tmp_path: Path) -> None:
    case = captured(tmp_path, MAIL % (b"", b"Where is my order AB-10001?"), SHIPPED | {"owner_email": "ida@firm.de"})
    assert case.input.mock_responses["orders"]["find_row"] == {
        "status": "shipped",
        "delivery_date": "2027-01-01",
        "carrier": "Alex Robin",
        "total": "1200",
        "owner_email": "customer@example.com",
    }


def test_what_nobody_reads_of_an_answer_is_not_recorded(tmp_path: Path) -> None:
    answer = SHIPPED | {"street": "Hauptstr. 5", "order_number": "AB-10001"}
    case = captured(tmp_path, MAIL % (b"", b"Where is my order AB-10001?"), answer)
    recorded = case.input.mock_responses["orders"]["find_row"]
    assert isinstance(recorded, dict)
    assert "street" not in recorded
    assert recorded["order_number"] == case.expected_output.response_body_contains[0]


@pytest.mark.parametrize("pattern", ["[A-Z]{2}-?[1-5][0-9]{4}", "AB-?[0-9]0{3}[0-9]"])
def test_a_narrow_form_is_kept_where_one_of_its_numbers_is_found(pattern: str, tmp_path: Path) -> None:
    orders = replace(CONFIG.look_ups["orders"], pattern=pattern)
    config = replace(CONFIG, look_ups={"orders": orders})
    case = captured(tmp_path, MAIL % (b"", b"Where is my order AB-10001?"), config=config)
    assert re.fullmatch(pattern, case.expected_output.response_body_contains[0])


def test_a_form_that_has_no_other_number_is_told(tmp_path: Path) -> None:
    orders = replace(CONFIG.look_ups["orders"], pattern="AB-10001")
    stream, raw = io.StringIO(), MAIL % (b"", b"Where is my order AB-10001?")
    options = CaptureOptions(
        directory=tmp_path, look_up=LookUpSource(answers={"orders": SHIPPED}), today="2026-02-01", previous_reply=None
    )
    capture_mail(options, replace(CONFIG, look_ups={"orders": orders}), stream, lambda: (raw, parse_email(raw)))
    assert "✗ the replacement changed what happens: the scenario was order-shipped" in stream.getvalue()


def test_a_follow_up_has_the_reply_that_it_answers(tmp_path: Path) -> None:
    raw = MAIL % (b"In-Reply-To: <ours-4711@firm.de>\n", b"AB-10001, here it is.")
    case = captured(tmp_path, raw, reply="order-number-missing:WEB-40017")
    reply = case.input.previous_reply
    assert isinstance(reply, PreviousReply)
    assert (reply.message_id, reply.scenario) == ("<message-1@example.com>", "order-number-missing")
    assert re.fullmatch(r"WEB-[0-9]{5}", reply.ticket_id or "")
    assert reply.ticket_id != "WEB-40017"

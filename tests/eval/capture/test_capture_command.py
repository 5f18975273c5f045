from __future__ import annotations

import io
from pathlib import Path

import pytest
from scenario_folder import BUILT_IN

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.capture.capture_command import CaptureOptions, capture_mail
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.utils.errors import ConfigurationError

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
    assert only_case(tmp_path).category == "valid-warranty"


def test_a_mail_without_text_is_captured_too(tmp_path: Path) -> None:
    capture(b"From: ida@firm.de\n\n", tmp_path)
    assert only_case(tmp_path).input.email.body.strip() == ""

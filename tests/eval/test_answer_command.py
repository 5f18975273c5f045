from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.answer_command import AnswerOptions, LookUpSource, answer_mail

VALID = LookUpSource(answer={"status": "valid", "expiration_date": "2027-01-01"})
NOTHING = LookUpSource()


def mail(body: str, headers: str = "") -> bytes:
    text = f"From: Ada <ada@example.com>\nTo: support@example.com\nSubject: Dryer\n{headers}\n{body}\n"
    return text.encode()


def shown(raw: bytes, source: LookUpSource = NOTHING, **options: Any) -> tuple[int, str]:
    stream = io.StringIO()
    config = load_config(None, {})
    code = answer_mail(AnswerOptions(mail="-", look_up=source, **options), config, stream, lambda size: raw[:size])
    return code, stream.getvalue()


def test_every_step_of_a_warranty_mail_is_shown() -> None:
    code, text = shown(mail("Is SN12345 still covered?"), VALID)
    steps = [line.split(":")[0] for line in text.splitlines() if line.startswith("✓")]
    assert code == 0
    assert steps == [
        *("✓ mail", "✓ may reply", "✓ triage", "✓ look-up", "✓ scenario", "✓ sentences", "✓ ticket", "✓ reply")
    ]
    assert "2027-01-01" in text
    assert text.endswith("Outcome: answered. Nothing was sent.\n")


def test_without_an_answer_no_number_is_known_and_the_step_says_so() -> None:
    _, text = shown(mail("Is SN12345 still covered?"))
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
    assert report["reply"]["to"] == report["ticket"]["customer_email"] == "ada@example.com"


@pytest.mark.parametrize("mode", ["drafts", "observe"])
def test_what_would_leave_unattended_is_shown_in_every_mode(mode: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"agent: {{mode: {mode}}}\n", encoding="utf-8")
    stream, raw = io.StringIO(), mail("Is SN12345 still covered?")
    config = load_config(tmp_path / "config.yaml", {})
    answer_mail(AnswerOptions(mail="-", look_up=VALID), config, stream, lambda size: raw[:size])
    assert "✓ reply: to ada@example.com" in stream.getvalue()

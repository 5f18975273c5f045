from pathlib import Path

import pytest
import sample_reports

from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.runlog.views.report import line_of, relative_to

SOURCE = b'expected_output:\n  email_sent: true\n  response_body_contains: ["a"]\n  "ticket_fields": {}\n'


@pytest.mark.parametrize(
    ("verdict", "check", "line"),
    [
        ("failed", Check("response_body_contains", "no"), 3),
        ("failed", Check("run 2 of 3: ticket_fields", "no"), 4),
        ("failed", Check("email_sent", "no"), 2),
        ("failed", Check("crash", "no (line 3)"), 1),
        ("invalid", Check("Invalid eval file", "a_1.yaml - Unknown key: x (line 16)"), 16),
        ("invalid", Check("Invalid eval file", "a_1.yaml - Missing field: x"), 1),
    ],
)
def test_a_check_stands_where_it_was_expected_or_where_its_problem_says(verdict: str, check: Check, line: int) -> None:
    assert line_of(sample_reports.case(verdict=verdict, source=SOURCE), check) == line


def test_a_file_elsewhere_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert relative_to(str(tmp_path / "a" / "b.yaml")) == relative_to("a/b.yaml") == "a/b.yaml"
    assert (relative_to("/elsewhere/b.yaml"), relative_to("")) == ("/elsewhere/b.yaml", "")

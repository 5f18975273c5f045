import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
import sample_reports

from guarantee_email_agent.runlog.records import Usage
from guarantee_email_agent.runlog.suite_statistics import Totals
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.row_files import COLUMNS, as_csv, as_json_lines


def rows(*cases: sample_reports.Case) -> list[dict[str, str]]:
    content = b"".join(as_csv(sample_reports.report(*cases))).decode()
    return list(csv.DictReader(io.StringIO(content, newline=""), strict=True))


class TestCsv:
    def test_a_row_for_each_repetition(self) -> None:
        usage = Usage(input_tokens=7, output_tokens=3, cost_usd=0.5)
        failed = sample_reports.result(passed=False, repetition=2, duration_ms=1.23456, usage=usage)
        case = sample_reports.Case((sample_reports.result(), failed))
        first, second = rows(case)
        assert (first["name"], first["repetition"], first["verdict"], first["failures"]) == (
            "valid_warranty_001",
            "1",
            "passed",
            "",
        )
        assert second == {
            "run_id": "20260118T100000-5f3a9c1e",
            "name": "valid_warranty_001",
            "repetition": "2",
            "repetitions": "2",
            "category": "valid-warranty",
            "language": "en",
            "verdict": "failed",
            "duration_ms": "1.235",
            "tokens": "10",
            "cost_usd": "0.5",
            "failures": "response_body_contains: missing phrase 'type plate'",
            "description": "Customer with valid warranty requests status check",
            "file": "evals/scenarios/valid_warranty_001.yaml",
            "planned": "1",
            "interrupted": "false",
            "taken_over": "",
            "score": "",
        }

    def test_lines_end_and_quotes_double_as_rfc_4180_says(self) -> None:
        content = b"".join(as_csv(sample_reports.report(sample_reports.case(description='say "hi", twice'))))
        assert content.startswith(",".join(COLUMNS).encode() + b"\r\n")
        assert b'"say ""hi"", twice"' in content

    @pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "＝1", "\n=1"])
    def test_what_a_spreadsheet_would_run_is_text(self, text: str) -> None:
        (row,) = rows(sample_reports.case(name=text))
        assert row["name"].startswith("'")

    @pytest.mark.parametrize(
        ("text", "shown"),
        [("a;=1", "a;'=1"), ("a; @b;c", "a;' @b;c"), ("a\n+1", "a\n'+1"), ('a;"-1"', 'a;\'"-1"'), ("a=1;b", "a=1;b")],
    )
    def test_what_would_be_a_cell_where_semicolons_part_cells_is_text(self, text: str, shown: str) -> None:
        (row,) = rows(sample_reports.case(name=text))
        assert row["name"] == shown

    def test_an_unknown_price_is_an_empty_cell(self) -> None:
        assert rows(sample_reports.case(usage=Usage(cost_usd=None)))[0]["cost_usd"] == ""

    def test_a_cell_holds_no_more_than_a_spreadsheet_takes(self) -> None:
        failed = sample_reports.Check("agent", "x" * 5_000_000)
        (row,) = rows(sample_reports.case(passed=False, checks=(failed,)))
        assert len(row["failures"]) < 32_767
        assert row["failures"].endswith("characters more, left out here")

    def test_whatever_strangers_write_can_be_read_back(self) -> None:
        assert len(rows(sample_reports.hostile_case(), sample_reports.case())) == 2


def json_lines(report: Report) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(as_json_lines(report)).split(b"\n")[:-1]]


def test_json_lines_hold_any_text_one_repetition_a_line() -> None:
    odd = "日本 \x1b \u2028 \ud800 \n"
    runs = sample_reports.result(description=odd), sample_reports.result(passed=False, repetition=2)
    report = sample_reports.report(sample_reports.Case(runs))
    first, second = json_lines(report)
    assert first | {"run_id": report.run.id, "planned": 1, "interrupted": False, "repetition": 1} == first
    assert (first["description"], first["passed"]) == (odd, True)
    assert (second["repetition"], second["passed"], len(second["failures"])) == (2, False, 1)
    assert "runs" not in second


def test_every_row_says_where_a_run_was_stopped_even_before_its_first_result() -> None:
    report = sample_reports.report(sample_reports.case(), gate="undecided", of_run={"planned": 9})
    empty = replace(report, cases=(), totals=Totals())
    known = {"run_id": report.run.id, "planned": 9, "interrupted": True}
    (line,) = json_lines(report)
    assert line | known == line
    assert json_lines(empty) == [known]
    for each in (report, empty):
        (row,) = csv.DictReader(b"".join(as_csv(each)).decode().splitlines())
        assert (row["run_id"], row["planned"], row["interrupted"]) == (report.run.id, "9", "true")
    assert "".join(row.values()) == f"{report.run.id}9true"

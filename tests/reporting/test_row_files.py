from __future__ import annotations

import csv
import io
import json

import pytest
import sample_reports

from guarantee_email_agent.reporting.report import Run
from guarantee_email_agent.reporting.row_files import COLUMNS, as_csv, as_json_lines
from guarantee_email_agent.reporting.totals import Totals


def rows(*cases: sample_reports.Case) -> list[dict[str, str]]:
    content = b"".join(as_csv(sample_reports.report(*cases))).decode()
    return list(csv.DictReader(io.StringIO(content, newline=""), strict=True))


class TestCsv:
    def test_a_row_for_each_repetition(self) -> None:
        misses = (sample_reports.MISSING,)
        case = sample_reports.case(passed=False, runs=(Run("passed", 3.0), Run("failed", 1.23456, misses, 10, 0.5)))
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
        }

    def test_a_run_that_was_stopped_says_so_in_each_row(self) -> None:
        content = b"".join(as_csv(sample_reports.report(sample_reports.case(), gate="undecided", planned=9))).decode()
        (row,) = csv.DictReader(io.StringIO(content, newline=""), strict=True)
        assert (row["planned"], row["interrupted"]) == ("9", "true")

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
        assert rows(sample_reports.case(runs=(Run("passed", cost_usd=None),)))[0]["cost_usd"] == ""

    def test_a_cell_holds_no_more_than_a_spreadsheet_takes(self) -> None:
        failed = sample_reports.Check("agent", "x" * 5_000_000)
        (row,) = rows(sample_reports.case(runs=(Run("failed", failed_checks=(failed,)),)))
        assert len(row["failures"]) < 32_767
        assert row["failures"].endswith("characters more, left out here")

    def test_whatever_strangers_write_can_be_read_back(self) -> None:
        assert len(rows(sample_reports.hostile_case(), sample_reports.case())) == 2


def test_json_lines_hold_any_text_one_object_a_line() -> None:
    odd = {"text": "日本 \x1b \u2028 \ud800 \n"}
    content = b"".join(as_json_lines(sample_reports.report(sample_reports.case()), [odd, {"b": 1}]))
    run = {"run_id": "20260118T100000-5f3a9c1e", "planned": 1, "interrupted": False}
    assert [json.loads(line) for line in content.split(b"\n")[:-1]] == [{**run, **odd}, {**run, "b": 1}]


def test_json_lines_of_a_run_that_was_stopped_say_so() -> None:
    report = sample_reports.report(sample_reports.case(), gate="undecided", planned=9)
    row = json.loads(b"".join(as_json_lines(report, [{}])))
    assert (row["planned"], row["interrupted"]) == (9, True)


def test_a_run_without_a_result_says_that_it_was_interrupted() -> None:
    report = sample_reports.report(gate="undecided", planned=9, cases=(), totals=Totals())
    header, row = csv.reader(b"".join(as_csv(report)).decode().splitlines())
    known = {name: value for name, value in zip(header, row, strict=True) if value}
    assert known == {"run_id": report.run_id, "planned": "9", "interrupted": "true"}
    line = json.loads(b"".join(as_json_lines(report, [])))
    assert line == {"run_id": report.run_id, "planned": 9, "interrupted": True}

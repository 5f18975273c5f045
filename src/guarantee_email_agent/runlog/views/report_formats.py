"""All report files of a run, each in its form and loaded only where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from guarantee_email_agent.files.report_files import as_json_with_rows, write_reports
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.run_report import RunOptions


def write_report_files(options: RunOptions, error_code: str, report: Report) -> None:
    """Write what the options name, and show the run in the step of a workflow that runs us.

    Raises ConfigurationError with `error_code` for a file that cannot be written, once the others are.
    """

    def json() -> Iterator[bytes]:
        return as_json_with_rows(report.summary, "results", map(report.json_case, report.cases))

    def jsonl() -> Iterator[bytes]:
        from guarantee_email_agent.runlog.views.row_files import as_json_lines

        return as_json_lines(report)

    def csv() -> Iterator[bytes]:
        from guarantee_email_agent.runlog.views.row_files import as_csv

        return as_csv(report)

    def junit() -> Iterator[bytes]:
        from guarantee_email_agent.runlog.views.junit_report import as_junit

        return as_junit(report)

    def html() -> bytes:
        if options.html_for == "board":
            from guarantee_email_agent.runlog.views.board_page import board_page

            return board_page(report).content
        from guarantee_email_agent.runlog.views.html_report import as_html

        return as_html(report)

    def markdown() -> bytes:
        from guarantee_email_agent.runlog.views.markdown_report import as_markdown

        return as_markdown(report)

    if options.github is not None:
        options.github.add(report)
    write_reports(
        error_code,
        (options.json_file, json),
        (options.jsonl_file, jsonl),
        (options.csv_file, csv),
        (options.junit_file, junit),
        (options.html_file, html),
        (options.markdown_file, markdown),
    )

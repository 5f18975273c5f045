"""What GitHub Actions shows of a run: annotations at the lines of scenario files, and the summary of the step."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Final

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.views.markdown_report import as_markdown
from guarantee_email_agent.runlog.views.report import WORDS, Report, line_of, relative_to
from guarantee_email_agent.utils.terminal import TextStream, warn_on_stderr
from guarantee_email_agent.utils.text import printable, truncate, visible

MAX_ANNOTATIONS: Final = 10
"""GitHub shows so many errors of a step, and drops the others."""
_MAX_MESSAGE: Final = 2_000


@contextmanager
def github_step(environ: Mapping[str, str], stream: TextStream) -> Iterator[Callable[[Report], None]]:
    """The step that runs us. Yields what shows a report in it: appends the summary, and keeps the annotations.

    GitHub reads commands in whatever is printed, and what mails say is printed: within this, it reads none. The
    annotations are printed to `stream` at the end.
    """
    token = secrets.token_hex(16)
    annotations: list[str] = []

    def show(report: Report) -> None:
        annotations.extend(annotate(report, environ.get("GITHUB_WORKSPACE", "")))
        if summary := environ.get("GITHUB_STEP_SUMMARY"):
            _append_summary(summary, report)

    stream.write(f"::stop-commands::{token}\n")
    stream.flush()
    try:
        yield show
    finally:
        stream.write("".join(f"{line}\n" for line in (f"::{token}::", *annotations)))
        stream.flush()


def _append_summary(path: str, report: Report) -> None:
    try:
        with open(path, "ab") as file:
            file.write(as_markdown(report))
    except (OSError, ValueError) as error:  # it is no result, so what fails is told, and ends no run
        reason = getattr(error, "strerror", None) or error
        warn_on_stderr(f"The summary of the step cannot be written ({reason})")


def annotate(report: Report, root: str = "") -> list[str]:
    """One error for each case that did not pass, as many as are shown, or for a gate that is closed without any.

    root: what files are named relative to.
    """
    lines = [_annotation(case, root) for case in islice(report.cases_that(passed=False), MAX_ANNOTATIONS)]
    if more := report.failed_count - len(lines):
        lines.append(f"::notice title={_property(printable(report.title))}::{more:,} more {report.noun}s did not pass")
    if report.interrupted:
        reason = f"Interrupted: {report.totals.total:,} of {report.run.planned:,} {report.noun}s ran"
        lines.append(f"::warning title={_property(printable(report.title))}::{_data(reason)}")
    elif report.gate != "passed" and not lines:  # as where scenarios that the baseline has are gone
        lines.append(f"::error title={_property(printable(report.title))}::{_data(printable(report.verdict))}")
    return lines


def _annotation(case: Case, root: str) -> str:
    message = truncate(visible("\n".join(map(str, case.failed_checks))), _MAX_MESSAGE)
    properties = {"title": f"{printable(case.name)}: {WORDS[case.verdict].lower()}"}
    if file := case.shown.file:
        line = line_of(case, case.failed_checks[0]) if case.failed_checks else 1
        properties |= {"file": printable(relative_to(file, root)), "line": str(line)}
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::error {written}::{_data(message or WORDS[case.verdict])}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

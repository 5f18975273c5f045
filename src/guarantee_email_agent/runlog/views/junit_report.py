"""A run as JUnit XML, in the form that Jenkins, GitLab and GitHub's actions read.

The schema of Jenkins' xunit plugin is the strictest of them: properties belong to the suite alone, times have at most
three decimals, and a test case names no file. GitLab links that file, so it gets it where it runs us.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.views.report import Report, line_of, relative_to
from guarantee_email_agent.runlog.views.transcript import cut
from guarantee_email_agent.utils.text import printable, visible

_PLACE: Final = re.compile(rb'<testcase name="cases" ?/>')


def as_junit(report: Report, environ: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """One document with one suite, case by case; control characters, which XML cannot hold, are written out.

    An interrupted run has one case more, with an error: whoever reads only this file must not take it for whole.
    """
    import junitparser  # only for those who ask for this format

    environ = os.environ if environ is None else environ
    names_files = environ.get("GITLAB_CI") == "true"
    suite = junitparser.TestSuite("evals" if report.run.command == "eval" else "tasks")
    suite.add_testcase(junitparser.TestCase("cases"))  # the place of all
    totals, stopped = report.totals, int(report.interrupted)
    suite.tests, suite.skipped = totals.total + stopped, 0
    suite.failures, suite.errors = totals.failed - totals.invalid, totals.error + totals.invalid + stopped
    for name, value in _properties(report):
        suite.add_property(name, printable(value))
    if report.run.started:
        suite.timestamp = report.run.started.removesuffix("Z")
    document = junitparser.JUnitXml(f"guarantee-email-agent {report.run.command}")
    document.add_testsuite(suite)
    if report.run.duration_s is not None:
        suite.time = document.time = round(report.run.duration_s, 3)
    else:  # junitparser writes 0
        suite._elem.attrib.pop("time", None)  # noqa: SLF001
    before, after = _PLACE.split(_xml(document), 1)
    yield b"<?xml version='1.0' encoding='UTF-8'?>\n" + before
    for case in report.cases:
        yield _xml(_test_case(case, names_files=names_files))
    if report.interrupted:
        yield _xml(_interrupted(report))
    yield after


def _xml(element: Any) -> bytes:
    """Without the declaration, which lxml writes and the standard library does not."""
    written: bytes = element.tostring()
    return written.partition(b"?>")[2].lstrip() if written.startswith(b"<?xml") else written


def _properties(report: Report) -> list[tuple[str, str]]:
    measured = [("pass_rate", report.rate), ("threshold", report.threshold)]
    known = [(name.lower().replace(" ", "_"), value) for name, value in report.facts]
    gate = [("gate", report.gate), ("planned", str(report.run.planned))]
    found = [("suite", report.suite), ("run_id", report.run.id), *gate, *measured, *known]
    return [(name, value) for name, value in found if value]


def _test_case(case: Case, *, names_files: bool) -> Any:
    import junitparser

    shown = case.shown
    element = junitparser.TestCase(
        printable(case.name), printable(shown.category or case.name), round(case.duration_ms / 1000, 6)
    )
    if names_files and shown.file:
        element._elem.set("file", printable(relative_to(shown.file)))  # noqa: SLF001 - it has no name for this
    if not case.passed:
        outcome = junitparser.Failure if case.verdict == "failed" else junitparser.Error
        first = case.failed_checks[0].summary.partition("\n")[0] if case.failed_checks else ""
        verdict = outcome(printable(first or case.verdict), case.verdict)
        verdict.text = visible(_reasons(case))
        element.result = [verdict]
    taken_over = f"taken over from {shown.taken_over}" if shown.taken_over else ""
    printed = (shown.judgement or {}).get("output")
    if output := "\n".join(filter(None, (taken_over, printed))):
        element.system_out = visible(output)
    return element


def _interrupted(report: Report) -> Any:
    import junitparser

    element = junitparser.TestCase("interrupted", report.run.command, 0.0)
    element.result = [junitparser.Error("The run was stopped before its end", "error")]
    return element


def _reasons(case: Case) -> str:
    shown = case.shown
    lines = [*map(str, case.failed_checks), *map(str, shown.nearest)]
    reply = shown.response.get("response_body") if isinstance(shown.response, Mapping) else None
    if isinstance(reply, str) and reply:
        lines += ["reply:", *(f"  {line}" for line in cut(reply)[0].split("\n"))]
    if shown.file and case.failed_checks:
        lines.append(f"{relative_to(shown.file)}:{line_of(case, case.failed_checks[0])}")
    text, note = cut("\n".join(lines), 100_000)
    return f"{text}\n… {note}" if note else text

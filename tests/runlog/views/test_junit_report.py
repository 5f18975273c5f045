"""What the readers of JUnit XML take: Jenkins' xunit plugin has the strictest schema, GitLab reads `file`."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import sample_reports
from lxml import etree

from guarantee_email_agent.runlog.views.junit_report import as_junit

# The elements, attributes and their order as the plugin's junit-10.xsd allows them, as far as we write them.
JENKINS = etree.RelaxNG(etree.parse(Path(__file__).with_name("jenkins_junit.rng")))


def suite(report: Any = None, **environ: str) -> ET.Element:
    document = ET.fromstring(b"".join(as_junit(report or sample_reports.report(), environ)))
    (found,) = document
    return found


@pytest.mark.parametrize(
    "report",
    [
        sample_reports.report(),
        sample_reports.report(sample_reports.hostile_case()),
        sample_reports.report(sample_reports.case(), gate="undecided", of_run={"planned": 2, "duration_s": None}),
    ],
    ids=["each kind", "hostile", "interrupted"],
)
def test_jenkins_takes_it(report: Any) -> None:
    JENKINS.assertValid(document := etree.fromstring(b"".join(as_junit(report, {}))))
    assert ("time" in document[0].attrib) == (report.run.duration_s is not None)


def test_counts_times_and_names() -> None:
    written = suite()
    assert {name: written.get(name) for name in ("name", "tests", "failures", "errors", "time", "timestamp")} == {
        "name": "evals",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "time": "0.41",
        "timestamp": "2026-01-18T10:00:00",
    }
    case = written.find("testcase")
    assert case.attrib == {"name": "valid_warranty_001", "classname": "valid-warranty", "time": "0.003"}


def test_a_failure_has_its_reason_and_its_place() -> None:
    failure = suite().find(".//failure")
    assert failure.get("message") == "response_body_contains: missing phrase 'type plate'"
    assert failure.text == (
        "response_body_contains: missing phrase 'type plate'\n  expected: 'type plate'\n"
        "  actual:   'Hello, Thank you …'\nreply:\n"
        + "".join(f"  {line}\n" for line in sample_reports.REPLY.split("\n"))
        + "evals/scenarios/valid_warranty_002.yaml:1"
    )


def test_an_invalid_file_is_an_error() -> None:
    error = suite().find(".//error")
    assert error.get("type") == "invalid"


def test_what_is_known_of_the_run_are_properties() -> None:
    properties = {each.get("name"): each.get("value") for each in suite().iter("property")}
    assert properties == {
        "suite": "evals/scenarios",
        "run_id": "20260118T100000-5f3a9c1e",
        "gate": "failed",
        "pass_rate": "50.0%",
        "threshold": "99",
        "planned": "4",
        "language_model": "offline (instruction-interpreter)",
        "version": "0.1.0",
    }


def test_gitlab_gets_the_file_that_it_links() -> None:
    named = sample_reports.case(1), sample_reports.case(2, file=str(Path("evals/a.yaml").absolute()))
    files = [case.get("file") for case in suite(sample_reports.report(*named), GITLAB_CI="true").iter("testcase")]
    assert files == ["evals/scenarios/valid_warranty_001.yaml", "evals/a.yaml"]


def test_text_that_xml_cannot_hold_is_written_out() -> None:
    failed = sample_reports.Check("crash", "\x00\x1b \ud800 \uffff <&> 日本")
    case = sample_reports.case(passed=False, file="", response=None, checks=(failed,))
    failure = suite(sample_reports.report(case)).find(".//failure")
    assert failure.text == "crash: \\x00\\x1b \\ud800 \\uffff <&> 日本"


def test_what_a_judge_printed_is_output() -> None:
    printed = suite(sample_reports.report(sample_reports.case(judgement={"output": "a\nb\n"}))).find(".//system-out")
    assert printed.text == "a\nb\n"

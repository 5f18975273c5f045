"""One fault tried in a copy of the project: who notices it, and that the copy is whole again behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.fault import TESTS
from faults.trial import ROOT, Trial, mirrored_tests

from guarantee_email_agent.eval.mutation.instruction_faults import Fault, fault_in

FILE = "src/guarantee_email_agent/email/recipient.py"
REPLY = "src/guarantee_email_agent/email/reply.py"


def fault_of(file: str, before: str, after: str) -> Fault:
    text = (ROOT / file).read_text(encoding="utf-8")
    start = text.index(before)
    return fault_in(file, text, "as the test says", start, start + len(before), after)


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        (REPLY, "tests/email/test_reply.py"),
        ("src/guarantee_email_agent/email/processor.py", "tests/email/test_processor_obedient_model.py"),
        ("instructions/scenarios/valid-warranty.de.md", "tests/instructions"),
    ],
)
def test_the_tests_of_a_module_are_found_by_its_path(file: str, tests: str) -> None:
    assert tests in mirrored_tests(file)


def test_a_module_without_tests_of_its_own_has_those_of_its_room() -> None:
    assert mirrored_tests("src/guarantee_email_agent/email/model_requests.py") == ["tests/email"]


@pytest.mark.slow
def test_a_fault_is_noticed_by_the_suite_else_by_tests_else_by_nobody_and_taken_out_again(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    original = (tmp_path / FILE).read_bytes()
    wrong_recipient = fault_of(FILE, "return email.sender\n", 'return "somebody@example.com"\n')
    assert trial.try_fault(wrong_recipient).by_suite
    long_thread = fault_of(REPLY, "[thread[0], *thread[1 - MAX_REFERENCES :]]", "thread[1 - MAX_REFERENCES :]")
    assert trial.try_fault(long_thread).noticed_by is None
    assert trial.try_fault(long_thread, ["tests/email/test_reply.py"]).noticed_by == TESTS
    in_words_for_people = fault_of(REPLY, "The parts of a reply", "All parts of a reply")
    assert trial.try_fault(in_words_for_people, ["tests/email/test_reply.py"]).noticed_by is None
    assert (tmp_path / FILE).read_bytes() == original
    assert trial.first_failure() is None


@pytest.mark.slow
def test_tests_that_fail_without_any_fault_notice_nothing(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    failing = tmp_path / "tests" / "test_failing.py"
    failing.write_text("def test_it():\n    assert False\n", encoding="utf-8")
    fault = fault_of(REPLY, "The parts of a reply", "All parts of a reply")
    with pytest.raises(RuntimeError, match="fail without any fault"):
        trial.try_fault(fault, ["tests/test_failing.py"])

"""Faults that are planted: which are tried, of what kinds, in a copy of the project that is whole again afterwards."""

import ast
from pathlib import Path

import pytest
from faults.code_faults import python_faults
from faults.fault import TESTS, equivalent_faults
from faults.known_faults import known_faults
from faults.sampling import all_faults, sample
from faults.softened_phrases import softened_phrases
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


CODE = """
def route(count: int, known: bool) -> str:
    if count < 2 and known:
        return name(count, "one")
    logger.info("several %s", count)
    mark(count)
    return "several"
"""


def test_code_gets_each_kind_of_fault_and_stays_code() -> None:
    faults = list(python_faults("route.py", CODE))
    changed = {(fault.operator, fault.after) for fault in faults}
    assert {
        ("negate a condition", "if (not (count < 2 and known)):"),
        ("move a boundary", "if (count) <= (2) and known:"),
        ("and for or", "if ((count < 2) or (known)):"),
        ("change a constant", "if count < 3 and known:"),
        ("return early", "return None"),
        ("swap arguments", 'return name("one", count)'),
        ("drop a call", "pass"),
    } <= changed
    for fault in faults:
        ast.parse(fault.planted_in(CODE))


def test_what_is_written_for_people_is_left_alone() -> None:
    assert not [fault for fault in python_faults("route.py", CODE) if "logger" in fault.before]


def test_the_sample_is_the_same_every_time_and_no_fault_is_in_it_twice() -> None:
    first, second = (sample(all_faults(ROOT), 212) for _ in range(2))
    assert first == second
    assert len({fault.key for fault in first}) == len(first)
    assert sum(fault.file.endswith(".py") for fault in first) == 212


def test_translations_are_planted_in_like_their_originals() -> None:
    files = {fault.file for fault in all_faults(ROOT)}
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "instructions/scenarios").glob("*.??.md")} <= files


def test_the_places_of_the_known_faults_are_there() -> None:
    known = known_faults(ROOT)
    assert len({each.name for each in known}) == len(known)
    assert all((ROOT / path).exists() for each in known for path in each.tests)


def test_a_fault_that_nothing_can_show_has_a_reason() -> None:
    assert all(reason.strip() for reason in equivalent_faults().values())


@pytest.mark.parametrize(
    ("firm", "soft"),
    [
        ("Ihre Garantie\nist gültig.", "Ihre Garantie\nsollte gültig sein."),
        ("su garantía es\nválida.", "su garantía debería ser válida."),
        ("votre garantie est valable.", "votre garantie devrait être valable."),
        ("gwarancja jest\nważna.", "gwarancja powinna być ważna."),
        ("numeru seryjnego urządzenia.", "numeru urządzenia."),
    ],
)
def test_firm_phrases_of_translations_are_softened(firm: str, soft: str) -> None:
    text = f"<reply>\n{firm}\n</reply>\n"
    assert f"<reply>\n{soft}\n</reply>\n" in [each.planted_in(text) for each in softened_phrases("x.md", text)]

"""Repetitions, and counts by category and language."""

from __future__ import annotations

from dataclasses import replace

from guarantee_email_agent.eval.suite_statistics import SuiteStatistics
from scenario_folder import TEMPLATES

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult

CASE = EvalLoader().load_eval_test_case(str(TEMPLATES / "valid_warranty_001.yaml"))


def repeated(name: str, *passed: bool) -> EvalResult:
    case = replace(CASE, scenario_id=name)
    return EvalResult.of_repetitions([EvalResult(case, each, [] if each else ["a: b"]) for each in passed], len(passed))


def statistics(*results: EvalResult, deterministic: bool = False) -> SuiteStatistics:
    found = SuiteStatistics(deterministic=deterministic)
    for result in results:
        found.add(result)
    return found


def test_runs_scenarios_that_passed_every_time_and_flaky_ones_are_counted() -> None:
    found = statistics(repeated("a", True, True, True), repeated("b", True, False, True), repeated("c", *[False] * 3))
    assert list(found.repetition_lines(99)) == [
        "Runs passed: 5/9 (55.6%); scenarios that passed every time (pass^3): 1/3 (33.3%)",
        "Flaky: 1: b (2 of 3)",
        "Repeats are no independent scenarios: the pass rate counts each once.",
    ]
    assert found.as_dict()["repeat"]["flaky"] == [{"scenario_id": "b", "passed": 2, "runs": 3}]


def test_without_repetitions_nothing_is_said_of_them() -> None:
    assert list(statistics(repeated("a", True)).repetition_lines(99)) == []


def test_deterministic_repeats_claim_no_reliability() -> None:
    lines = list(statistics(repeated("a", True, True), deterministic=True).repetition_lines(99))
    assert lines[-1].endswith("these repeats say nothing of reliability.")


def test_a_failed_run_among_others_says_which_it_was() -> None:
    assert repeated("a", True, False, True).failures == ["run 2 of 3: a: b"]
    assert repeated("a", False, False).failures == ["a: b"]


def test_what_a_suite_shows_and_what_it_does_not() -> None:
    own, failed = EvalResult(CASE, True, reading={}), EvalResult(CASE, False, ["a: b"], reading={})
    assert statistics(own, own).conclusion() == (
        "2 of 2 scenarios pass. The agent was built on this suite, so this shows that nothing it guards has broken; "
        "it says nothing of how often new mail goes wrong."
    )
    assert statistics(own, failed).conclusion() == (
        "1 of 2 scenarios pass. "
        "The agent was built on this suite, so this says nothing of how often new mail goes wrong."
    )
    assert statistics(EvalResult(CASE, True)).conclusion() == (
        "1 of 1 scenario passes. "
        "If the agent was built on this suite, it says nothing of how often new mail goes wrong."
    )
    assert statistics().conclusion() == "No scenario ran."


def test_each_group_has_its_count_with_its_rate() -> None:
    other = replace(CASE, category="no-reply")
    found = statistics(
        EvalResult(CASE, True, reading={"language": "de"}),
        EvalResult(CASE, False, reading={"language": "en"}),
        EvalResult(other, True),
    )
    assert list(found.group_lines(99)) == [
        "By category:",
        "    no-reply        1/1 (100%)",
        "    valid-warranty  1/2 (50.0%)",
        "By language:",
        "    (not known)  1/1 (100%)",
        "    de           1/1 (100%)",
        "    en           0/1 (0.0%)",
    ]

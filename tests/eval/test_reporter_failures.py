from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenario_folder import TEMPLATES

from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalExpectedOutput, EvalResult
from guarantee_email_agent.eval.reporter import explain
from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.suite_statistics import SharedCauses

SCENARIO = EvalLoader().load_eval_test_case(TEMPLATES / "valid_warranty_001.yaml")
REPLY = """\
Hello,

Thank you for your message. Your warranty is really
valid until 2027-06-30. Its number is HX-1.
- on the label of the box
"""


def failed(reply: str | None = REPLY, **expected: Any) -> Case:
    always = {"email_sent": True, "ticket_created": True, "scenario_instruction_used": "valid-warranty"}
    scenario = replace(SCENARIO, expected_output=EvalExpectedOutput(**(always | expected)))
    actual = {"email_sent": True, "response_body": reply, "ticket_created": True, "ticket_fields": {}}
    checks = scenario.expected_output.checks({**actual, "scenario_used": "valid-warranty"})
    return as_case(EvalResult.of_checks(scenario, checks, {**actual, "processing_time_ms": 0}))


def named(case: Case, number: int) -> Case:
    return Case((case.shown._replace(name=f"s_{number}"),))


@pytest.mark.parametrize(
    ("phrase", "diff"),
    [
        ("warranty is valid until", "Your warranty is {+really+} valid until 2027-06-30."),
        ("your WARRANTY was valid", "Your warranty [-was-] {+is really+} valid until 2027-06-30."),
        ("on the label of its box", "- on the label of [-its-] {+the+} box"),
    ],
)
def test_the_nearest_sentence_is_compared_word_by_word_in_its_own_letters(phrase: str, diff: str) -> None:
    (nearest,) = failed(response_body_contains=(phrase,)).shown.nearest
    assert (nearest.phrase, nearest.diff) == (phrase, diff)


@pytest.mark.parametrize("phrase", ["nothing of the kind", "type label", "refund"])
def test_a_phrase_that_nothing_is_near_to_has_no_sentence(phrase: str) -> None:
    assert failed(response_body_contains=(phrase,)).shown.nearest == ()


def test_the_reply_stands_once_below_all_misses() -> None:
    lines = list(explain(failed(response_body_contains=("refund", "repair", "warranty was valid"))))
    assert lines[0].startswith("nearest to 'warranty was valid': ")
    assert lines[1:4] == ["reply:", "  Hello,", "  Thank you for your message. Your warranty is really"]
    assert lines.count("reply:") == 1


def test_a_phrase_that_must_not_be_there_is_marked_in_the_replys_own_letters() -> None:
    lines = list(explain(failed("Größe: STRASSE, Straße\nEXPIRED", response_body_excludes=("strasse,", "expired"))))
    assert lines == ["reply:", "  Größe: >>STRASSE,<< Straße", "  >>EXPIRED<<"]


def test_without_a_reply_or_a_phrase_that_failed_there_is_nothing_to_explain() -> None:
    assert list(explain(failed(None, response_body_contains=("refund",)))) == []
    assert list(explain(failed(email_sent=False))) == []


def test_a_long_reply_is_cut() -> None:
    lines = list(explain(failed("x" * 5_000, response_body_contains=("refund",))))
    assert lines[-1] == "  … and 1000 more characters"


def test_a_cause_that_two_others_had_needs_no_details() -> None:
    causes = SharedCauses()
    results = [failed(response_body_contains=("refund",)) for _ in range(3)]
    assert [causes.add(result) for result in results] == [False, False, True]
    assert causes.add(failed(response_body_contains=("refund", "repair"))) is False


def test_many_scenarios_with_one_cause_are_told_with_a_count() -> None:
    causes = SharedCauses()
    for number in range(12):
        causes.add(named(failed(response_body_contains=("refund",)), number))
    assert list(causes.lines()) == [
        "Same cause in 12 scenarios: response_body_contains: missing phrase 'refund'",
        "    s_0, s_1, s_2, s_3, s_4, s_5, s_6, s_7 and 4 more",
    ]


def test_a_summary_keeps_no_more_than_it_shows() -> None:
    whole, summary = SharedCauses(), SharedCauses(summary=True)
    for number in range(1_100):
        case = named(failed(response_body_contains=("refund", f"phrase {number}")), number)
        assert whole.add(case) == summary.add(case)
    assert list(summary.lines()) == list(whole.lines())
    assert len(whole.counts()) == 1_101
    assert len(summary.counts()) == 1_000
    assert max(len(ids) for _, ids in summary.counts()) == 8


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=3))
def test_any_reply_and_phrases_can_be_explained(reply: str, phrases: list[str]) -> None:
    assert all(isinstance(line, str) for line in explain(failed(reply, response_body_contains=tuple(phrases))))
    marked = "\n".join(explain(failed(reply, response_body_excludes=tuple(phrases))))
    assert marked.replace(">>", "").replace("<<", "").count("reply:") <= 1 + reply.count("reply:")

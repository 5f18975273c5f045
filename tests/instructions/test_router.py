from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.router import Condition, Situation, all_situations, is_triggered


@pytest.mark.parametrize(
    ("condition", "situation", "holds"),
    [
        (Condition(automatic=True), Situation(automatic=True), True),
        (Condition(automatic=True), Situation(False, "warranty", "none"), False),
        (Condition(), Situation(automatic=True), False),
        (Condition(), Situation(False, "other", "several"), True),
        (Condition(intent="warranty"), Situation(False, "warranty", "none"), True),
        (Condition(intent="warranty"), Situation(False, "other", "none"), False),
        (Condition(serial_numbers="one"), Situation(False, "warranty", "one", "valid"), True),
        (Condition(serial_numbers="one"), Situation(False, "warranty", "several"), False),
        (Condition(warranty_status=("expired", "not_found")), Situation(False, "warranty", "one", "not_found"), True),
        (Condition(warranty_status=("expired", "not_found")), Situation(False, "warranty", "one", "valid"), False),
        (Condition(warranty_status=("valid",)), Situation(False, "other", "one"), False),
    ],
)
def test_a_condition_holds_where_every_part_does(condition: Condition, situation: Situation, holds: bool) -> None:
    assert condition.holds(situation) is holds


def test_a_scenario_is_triggered_by_any_of_its_conditions() -> None:
    trigger = (Condition(intent="other"), Condition(intent="unclear"))
    assert is_triggered(trigger, Situation(False, "unclear", "none"))
    assert not is_triggered(trigger, Situation(False, "warranty", "none"))


def test_no_situation_comes_twice() -> None:
    situations = list(all_situations())
    assert len(situations) == len(set(situations))


def test_a_status_is_known_for_one_number_in_a_warranty_mail_only() -> None:
    for situation in all_situations():
        has_status = situation.warranty_status is not None
        assert has_status == (situation.intent == "warranty" and situation.serial_numbers == "one")


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (Situation(automatic=True), "automatic: true"),
        (Situation(False, "other", "none"), "intent: other, serial_numbers: none"),
        (
            Situation(False, "warranty", "one", "valid"),
            "intent: warranty, serial_numbers: one, warranty_status: valid",
        ),
    ],
)
def test_a_situation_reads_like_a_trigger(situation: Situation, words: str) -> None:
    assert str(situation) == words

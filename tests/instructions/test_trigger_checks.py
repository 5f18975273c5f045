from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.instructions.router import Condition
from guarantee_email_agent.instructions.trigger_checks import routing_problems, trigger_problems

TOPICS = {"warranty": "main.md:3", "other": "main.md:7"}


def scenario(name: str, *trigger: Condition) -> ScenarioInstruction:
    return ScenarioInstruction(name, trigger, None, "", ())


ALL = (
    scenario("machine", Condition(automatic=True)),
    scenario("person", Condition(hand_over=True)),
    scenario("device", Condition(topic="warranty")),
    scenario("elsewhere", Condition(topic="other"), Condition(topic="unclear")),
)


def test_a_set_that_fits_has_no_problem() -> None:
    assert list(routing_problems(ALL, TOPICS)) == []


def test_a_topic_that_nobody_answers_is_told_once_where_it_stands() -> None:
    left = [each for each in ALL if each.name != "device"]
    assert [place for place, _ in routing_problems(left, TOPICS)] == ["main.md:3"]


def test_a_situation_of_a_topic_that_nobody_answers_is_named() -> None:
    half = scenario("device", Condition(topic="warranty", serial_numbers="one"))
    problems = [problem for _, problem in routing_problems([half, *ALL[:2], ALL[3]], TOPICS)]
    assert [problem.partition(".")[0] for problem in problems] == [
        "no scenario is triggered by 'topic: warranty, serial_numbers: none'",
        "no scenario is triggered by 'topic: warranty, serial_numbers: several'",
    ]


def test_a_situation_that_two_answer_names_both() -> None:
    twice = [*ALL, scenario("again", Condition(topic="other"))]
    assert list(routing_problems(twice, TOPICS)) == [
        ("", "'topic: other' triggers elsewhere and again. Leave it to one of them")
    ]


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (Condition(topic="warrenty"), "no instruction file declares the topic 'warrenty' – did you mean 'warranty'?"),
        (Condition(topic="other", serial_numbers="none"), "applies in no situation"),
        (Condition(topic="warranty", serial_numbers="none", warranty_status=("valid",)), "applies in no situation"),
        (Condition(automatic=True, topic="warranty"), "applies in no situation"),
    ],
)
def test_a_condition_that_never_holds_is_a_problem(condition: Condition, problem: str) -> None:
    (found,) = trigger_problems([Condition(topic="unclear"), condition], TOPICS)
    assert found.message.startswith(problem)
    assert found.path[:2] == ("trigger", 1)

"""Whether topics and triggers of an instruction set fit together: every situation has exactly one scenario."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from guarantee_email_agent.files.problems import Problem, suggestion
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.instructions.router import (
    LOOK_UP_TOPIC,
    UNCLEAR,
    Condition,
    all_situations,
    is_triggered,
)

_NEVER_APPLIES = (
    f"applies in no situation: serial_numbers stand with the topic {LOOK_UP_TOPIC}, warranty_status with one serial "
    "number, automatic and hand_over alone. Remove what cannot hold"
)


def trigger_problems(trigger: Sequence[Condition], topics: Collection[str]) -> list[Problem]:
    """Topics that nobody declares, and conditions that never hold. topics: the declared ones."""
    problems = []
    known = sorted({*topics, UNCLEAR})
    for index, condition in enumerate(trigger):
        topic = condition.topic
        if topic is not None and topic not in known:
            remedy = suggestion(topic, known) or f'. Write <topic name="{topic}"> into one, or name a declared one'
            message = f"no instruction file declares the topic '{topic}'{remedy}"
            problems.append(Problem(("trigger", index, "topic"), "value", message))
        elif not any(condition.holds(situation) for situation in all_situations(topics)):
            problems.append(Problem(("trigger", index), "value", _NEVER_APPLIES))
    return problems


def routing_problems(scenarios: Sequence[ScenarioInstruction], topics: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(place, problem) pairs of situations that not exactly one scenario answers; "" is a place in no one file.

    topics: the declared ones, each with its place. One that nobody answers is told where it stands, and only once.
    """
    routes = {
        situation: [scenario.name for scenario in scenarios if is_triggered(scenario.trigger, situation)]
        for situation in all_situations(topics)
    }
    answered = {situation.topic for situation, names in routes.items() if names}
    for topic, place in topics.items():
        if topic not in answered:
            yield place, f"no scenario answers the topic '{topic}'. Write 'topic: {topic}' into the trigger of one"
    for situation, names in routes.items():
        if not names and (situation.topic in answered or situation.topic not in topics):
            remedy = "Add it to the trigger of the scenario that should answer"
            yield "", f"no scenario is triggered by '{situation}'. {remedy}"
        elif len(names) > 1:
            yield "", f"'{situation}' triggers {' and '.join(names)}. Leave it to one of them"

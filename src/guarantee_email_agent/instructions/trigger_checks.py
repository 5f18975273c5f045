"""Whether topics and triggers of an instruction set fit together: every situation has exactly one scenario."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from guarantee_email_agent.files.problems import Problem, suggestion
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.instructions.router import UNCLEAR, Condition, all_situations, is_triggered

_NEVER_APPLIES = (
    "applies in no situation: numbers stand with a topic that a look-up serves, a status with one number, automatic "
    "and hand_over alone. Remove what cannot hold"
)

_NAMES_NOTHING = "names no topic, so that every mail would have it. Write one, such as {topic: other}"


def trigger_problems(
    trigger: Sequence[Condition], topics: Collection[str], look_ups: Sequence[LookUp] = (WARRANTY,)
) -> list[Problem]:
    """Topics that nobody declares, and conditions that never hold. topics: the declared ones."""
    problems = []
    known = sorted({*topics, UNCLEAR})
    for index, condition in enumerate(trigger):
        topic = condition.topic
        if topic is not None and topic not in known:
            remedy = suggestion(topic, known) or f'. Write <topic name="{topic}"> into one, or name a declared one'
            message = f"no instruction file declares the topic '{topic}'{remedy}"
            problems.append(Problem(("trigger", index, "topic"), "value", message))
        elif condition == Condition():
            problems.append(Problem(("trigger", index), "value", _NAMES_NOTHING))
        elif wrong := _look_up_problem(condition, topics, look_ups):
            problems.append(Problem(("trigger", index, wrong[0]), "value", wrong[1]))
        elif not any(condition.holds(situation) for situation in all_situations(topics, look_ups)):
            problems.append(Problem(("trigger", index), "value", _NEVER_APPLIES))
    return problems


def _look_up_problem(
    condition: Condition, topics: Collection[str], look_ups: Sequence[LookUp]
) -> tuple[str, str] | None:
    """The key of a condition that does not fit the look-up of its topic, and what is wrong with it."""
    named = topics if condition.topic is None else (condition.topic,)
    found = [look_up for look_up in look_ups if any(topic in look_up.topics for topic in named)]
    for key, other in (("serial_numbers", "numbers"), ("warranty_status", "status")):
        if getattr(condition, key) and found and not any(each.is_of_warranties for each in found):
            return key, f"is the warranty's; for the topic {condition.topic} write '{other}'"
        if getattr(condition, key) and getattr(condition, other):
            return other, f"says the same as {key}. Keep one of them"
    if len(found) > 1 and any(
        (condition.numbers, condition.status, condition.serial_numbers, condition.warranty_status)
    ):
        return "topic", "is missing: several topics have numbers of their own. Name the one that is meant"
    known = tuple(status for look_up in found for status in look_up.situations)
    for status in condition.status if found else ():
        if status not in known:
            near = suggestion(status, known) or "."
            return "status", f"is '{status}', which is none{near} Known are: {', '.join(known)}"
    return None


def routing_problems(
    scenarios: Sequence[ScenarioInstruction], topics: Mapping[str, str], look_ups: Sequence[LookUp] = (WARRANTY,)
) -> Iterator[tuple[str, str]]:
    """(place, problem) pairs of situations that not exactly one scenario answers; "" is a place in no one file.

    topics: the declared ones, each with its place. One that nobody answers is told where it stands, and only once.
    """
    routes = {
        situation: [scenario.name for scenario in scenarios if is_triggered(scenario.trigger, situation)]
        for situation in all_situations(topics, look_ups)
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

import pytest
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.instructions.router import (
    Condition,
    Situation,
    Topic,
    all_situations,
    is_triggered,
    parse_topics,
)


@pytest.mark.parametrize(
    ("condition", "situation", "holds"),
    [
        (Condition(automatic=True), Situation(automatic=True), True),
        (Condition(automatic=True), Situation(False, "warranty", "none"), False),
        (Condition(), Situation(automatic=True), False),
        (Condition(), Situation(False, "other"), True),
        (Condition(topic="warranty"), Situation(False, "warranty", "none"), True),
        (Condition(topic="warranty"), Situation(False, "other"), False),
        (Condition(serial_numbers="one"), Situation(False, "warranty", "one", "valid"), True),
        (Condition(serial_numbers="one"), Situation(False, "warranty", "several"), False),
        (Condition(warranty_status=("expired", "not_found")), Situation(False, "warranty", "one", "not_found"), True),
        (Condition(warranty_status=("expired", "not_found")), Situation(False, "warranty", "one", "valid"), False),
        (Condition(warranty_status=("valid",)), Situation(False, "other"), False),
    ],
)
def test_a_condition_holds_where_every_part_does(condition: Condition, situation: Situation, holds: bool) -> None:
    assert condition.holds(situation) is holds


def test_a_status_is_known_for_one_number_in_a_warranty_mail_only() -> None:
    for situation in all_situations(["warranty", "spare-parts"]):
        has_status = situation.warranty_status is not None
        assert has_status == (situation.topic == "warranty" and situation.numbers == "one")


def test_a_configured_look_up_gives_its_topics_numbers_and_statuses_of_their_own() -> None:
    orders = LookUp("orders", ("order",), "order_number", "status", ("shipped",), ())
    situations = [each for each in all_situations(["order"], [orders]) if each.topic == "order"]
    assert [(each.numbers, each.status) for each in situations] == [
        ("none", None),
        *(("one", status) for status in ("shipped", "not_found", "other", "withheld")),
        ("several", None),
    ]
    assert str(situations[1]) == "topic: order, numbers: one, status: shipped"
    assert is_triggered([Condition(topic="order", numbers="one", status=("shipped",))], situations[1])
    assert not is_triggered([Condition(topic="order", status=("other",))], situations[1])


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (Situation(automatic=True), "automatic: true"),
        (Situation(False, "other"), "topic: other"),
        (Situation(False, "warranty", "one", "valid"), "topic: warranty, serial_numbers: one, warranty_status: valid"),
    ],
)
def test_a_situation_reads_like_a_trigger(situation: Situation, words: str) -> None:
    assert str(situation) == words


def test_a_topic_has_a_sentence_and_examples() -> None:
    body = """
<situation>x</situation>

<topic name="spare-parts">
The customer wants
a spare part.
<example>Where do I get
a door seal?</example>
<example>Do you sell lids?</example>
</topic>
"""
    examples = ("Where do I get a door seal?", "Do you sell lids?")
    (topic,) = parse_topics(body)
    assert topic == Topic("spare-parts", "The customer wants a spare part.", examples)
    assert topic.line == 4


@pytest.mark.parametrize(
    ("element", "line", "problem"),
    [
        ("<topic>x</topic>", 2, "<topic> has no usable name. Give it one of small letters"),
        ('<topic name="Spare Parts">x</topic>', 2, "<topic> has no usable name"),
        ('<topic name="unclear">x</topic>', 2, "the topic 'unclear' is built in"),
        ('<topic name="a" hint="b">x</topic>', 2, "<topic> has no attribute 'hint'"),
        ('<topic name="a"><example>x</example></topic>', 2, "the topic 'a' has no description"),
        ('<topic name="a">x\n<sample>y</sample></topic>', 3, "<sample> cannot stand inside <topic> like this"),
        ('<topic name="a">x\n<example lang="en">y</example></topic>', 3, "<example> cannot stand inside <topic> like"),
        ('<topic name="a">x\n<example> </example></topic>', 3, "<example> is empty. Write a customer's sentence"),
    ],
)
def test_a_topic_that_cannot_be_used_is_reported_with_its_line(element: str, line: int, problem: str) -> None:
    error = markup_error(parse_topics, f"\n{element}\n")
    assert error.message.startswith(problem)
    assert error.line == line

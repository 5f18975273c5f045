from __future__ import annotations

import pytest
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.topics import Topic, parse_topics


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


def test_a_body_may_declare_several_or_none() -> None:
    assert [topic.name for topic in parse_topics('<topic name="b">x</topic>\n<topic name="a">y</topic>')] == ["b", "a"]
    assert parse_topics("<reply>x</reply>") == ()


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

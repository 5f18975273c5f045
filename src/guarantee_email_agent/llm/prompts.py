"""The requests the agent makes of a model: triage a mail, and choose a reply's sentences.

A mail travels as JSON inside a `<mail>` element with every `<` escaped, so nothing that a customer writes can close
the element or pass for one of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from guarantee_email_agent.instructions.hand_over_lexicon import HandOverReason
from guarantee_email_agent.instructions.instruction import Instructions, ScenarioInstruction
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.instructions.markup import parse_elements
from guarantee_email_agent.instructions.router import TOPIC_ELEMENT, UNCLEAR_TOPIC, Topic
from guarantee_email_agent.instructions.template import OfferedSentence

TRIAGE_TOOL = "record_triage"
CHOICE_TOOL = "choose_sentences"
ASKED_FOR_ELEMENT = "our-last-reply-asked-for"
NUMBERS_ELEMENT = "numbers-to-look-for"
MAX_NUMBERS = 50

_CHOICE_TOOL_DESCRIPTION = (
    "Choose the sentences that fit the mail, by their ids. At most one of those with the same group; where none of a "
    "group is chosen, its first is taken. One without a group is left out unless it is chosen."
)
_MAIN_ELEMENTS_FOR_CHOICE = ("role", "rules", "choosing")
_SCENARIO_ELEMENTS_NOT_FOR_CHOICE = ("reply", TOPIC_ELEMENT)


@lru_cache(maxsize=8)
def _triage_tool(
    topics: tuple[Topic, ...],
    reasons: tuple[HandOverReason, ...],
    look_ups: tuple[LookUp, ...],
) -> Mapping[str, Any]:
    properties: dict[str, Any] = {
        "topic": {
            "type": "string",
            "enum": [topic.name for topic in (*topics, UNCLEAR_TOPIC)],
            "description": "\n".join(("What the mail is about.", *map(_topic_line, (*topics, UNCLEAR_TOPIC)))),
        },
        **{numbers_key(look_up.number): _numbers_schema(look_up) for look_up in look_ups},
    }
    if reasons:
        described = "; ".join(f"{reason.name}: {reason.description}" for reason in reasons)
        properties["hand_over"] = {
            "type": "array",
            "items": {"type": "string", "enum": [reason.name for reason in reasons]},
            "description": f"Every reason to leave the mail to a person, if there is any. {described}",
        }
    return {
        "name": TRIAGE_TOOL,
        "description": "Record what the mail is about and which numbers it gives.",
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
    }


def _topic_line(topic: Topic) -> str:
    examples = "; ".join(f'"{example}"' for example in topic.examples)
    return f"{topic.name}: {topic.description}" + (f" For example: {examples}" if examples else "")


def numbers_key(number: str) -> str:
    """What the triage tool calls the numbers of a look-up: `serial_numbers`."""
    return f"{number}s"


def _numbers_schema(look_up: LookUp) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NUMBERS}
    if look_up.format.description:
        schema["description"] = f"{look_up.format.description} Every different one, exactly as written."
    return schema


def is_triage(answer: object, topics: Sequence[Topic], look_ups: Sequence[LookUp]) -> bool:
    """Whether a model's input of the triage tool fits its schema; `hand_over` may be left out."""
    return (
        isinstance(answer, Mapping)
        and answer.get("topic") in [topic.name for topic in (*topics, UNCLEAR_TOPIC)]
        and all(_are_texts(answer.get(numbers_key(look_up.number))) for look_up in look_ups)
        and _are_texts(answer.get("hand_over", ()))
    )


def is_choice(answer: object) -> bool:
    """Whether a model's input of the choice tool fits its schema, but for which ids were offered."""
    return isinstance(answer, Mapping) and _are_texts(answer.get("ids"))


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def triage_request(mail: Mapping[str, Any], instructions: Instructions, asked_for: str | None = None) -> dict[str, Any]:
    """The parts of a request that are ours to say; the caller adds model, temperature and max_tokens.

    mail: what a model sees of it. asked_for: what the reply of ours asked for that the mail answers.
    """
    content = element("mail", mail)
    if formats := number_formats(instructions):
        content += "\n" + element(NUMBERS_ELEMENT, formats)
    if asked_for is not None:
        content += "\n" + element(ASKED_FOR_ELEMENT, asked_for)
    reasons = instructions.hand_over.reasons
    tool = _triage_tool(instructions.topics, reasons, instructions.look_ups)
    return _request([instructions.main_body], content, tool)


def number_formats(instructions: Instructions) -> list[dict[str, Any]]:
    """How the numbers of look-ups are known, where the configuration says it."""
    return [
        {
            "number": look_up.number,
            "topics": look_up.topics,
            "patterns": look_up.format.patterns,
            "labels": look_up.format.labels,
        }
        for look_up in instructions.look_ups
        if look_up.format.patterns or look_up.format.labels
    ]


def choice_request(
    mail: Mapping[str, Any],
    instructions: Instructions,
    scenario: ScenarioInstruction,
    facts: Mapping[str, str | None],
    offered: Sequence[OfferedSentence],
) -> dict[str, Any]:
    """Which of the sentences offered fit the mail. There is no free text in the answer.

    The words by which the interpreter reads a mail, most of the main file, stay out of it.
    """
    elements = [
        _elements_text(instructions.main_body, _MAIN_ELEMENTS_FOR_CHOICE, ()),
        _elements_text(scenario.body, (), _SCENARIO_ELEMENTS_NOT_FOR_CHOICE),
    ]
    sentences = [_sentence_data(each, facts) for each in offered]
    content = "\n".join(
        (element("facts", {"scenario": scenario.name, **facts}), element("sentences", sentences), element("mail", mail))
    )
    ids = {"type": "array", "items": {"type": "string", "enum": [each["id"] for each in sentences]}}
    tool = {
        "name": CHOICE_TOOL,
        "description": _CHOICE_TOOL_DESCRIPTION,
        "input_schema": {
            "type": "object",
            "properties": {"ids": ids},
            "required": ["ids"],
            "additionalProperties": False,
        },
    }
    return _request([text for text in elements if text], content, tool)


def choice_objection(ids: Sequence[str], offered: Sequence[OfferedSentence]) -> str | None:
    """What is wrong with a choice, for the model that made it."""
    groups = {each.sentence.id: each.group for each in offered}
    if not groups.keys() >= set(ids):
        return "It held an id that was not offered."
    chosen_groups = [group for sentence_id in set(ids) if (group := groups[sentence_id]) is not None]
    return "It held two sentences of one group." if len(chosen_groups) > len(set(chosen_groups)) else None


def with_objection(request: Mapping[str, Any], objection: str) -> dict[str, Any]:
    """The same request, with what was wrong with the answer to it."""
    *before, last = request["messages"]
    content = last["content"] + "\n" + element("objections-to-your-last-answer", [objection])
    return {**request, "messages": [*before, {**last, "content": content}]}


def element_in(content: str, name: str) -> Any:
    """The JSON value inside the first `<name>` element of a user message; None where there is none."""
    _, _, rest = content.partition(f"<{name}>\n")
    text, closing, _ = rest.partition(f"\n</{name}>")
    return json.loads(text) if closing else None


def _request(instructions: list[str], content: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """tool: the one that the model has to answer through."""
    return {
        "system": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} for text in instructions],
        "messages": [{"role": "user", "content": content}],
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": tool["name"]},
    }


def _sentence_data(offered: OfferedSentence, facts: Mapping[str, str | None]) -> dict[str, Any]:
    data, sentence = dict(offered.hint_data), offered.sentence
    hints = {"hints": data.pop("hints")} if sentence.hints else {}
    use = {"use": sentence.use} if sentence.use else {}
    return {**data, "text": sentence.render(facts), **use, **hints}


@lru_cache(maxsize=64)
def _elements_text(body: str, only: tuple[str, ...], without: tuple[str, ...]) -> str:
    """Top-level elements of an instruction text: those named `only`, where any are, and none of `without`."""
    return "\n\n".join(
        f"<{element.name}>\n{element.text.strip()}\n</{element.name}>"
        for element in parse_elements(body)
        if (element.name in only or not only) and element.name not in without
    )


def element(name: str, value: object) -> str:
    """A value as JSON in an element that nothing in it can close."""
    text = _ENCODER.encode(value).replace("<", "\\u003c")
    return f"<{name}>\n{text}\n</{name}>"


_ENCODER = json.JSONEncoder(ensure_ascii=False)

from __future__ import annotations

import copy
from typing import Any

import pytest
from model_requests import choice

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.llm.prompts import with_objection
from guarantee_email_agent.llm.recording_diff import recording_diff

BODY = "It leaks."


@pytest.fixture
def request_(instructions: Instructions) -> dict[str, Any]:
    return choice(instructions, BODY)


def test_the_same_requests_differ_in_nothing(instructions: Instructions, request_: dict[str, Any]) -> None:
    assert recording_diff(request_, choice(instructions, BODY)) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": "model-2"}, "llm.model (now 'model-2', recorded 'model-1')"),
        ({"max_tokens": 200}, "llm.max_tokens (now 200, recorded 100)"),
        ({"temperature": None}, "llm.temperature (now nothing, recorded 0.0)"),
        ({"tool_choice": {"type": "auto"}}, "llm.force_tool"),
        ({"tools": []}, "the tools"),
    ],
)
def test_a_setting_is_named_as_the_user_knows_it(request_: dict[str, Any], change: dict[str, Any], named: str) -> None:
    assert recording_diff({**request_, **change}, request_) == [named]


@pytest.mark.parametrize(("number", "name"), [(0, "the main instruction"), (1, "the scenario's instruction")])
def test_an_instruction_is_shown_where_it_differs(
    instructions: Instructions, request_: dict[str, Any], number: int, name: str
) -> None:
    recorded = choice(instructions, BODY)
    recorded["system"][number]["text"] += "\nBe brief."
    request_["system"][number]["text"] += "\nBe short."
    assert recording_diff(request_, recorded) == [f"{name} (now 'Be short.', recorded 'Be brief.')"]


def test_a_long_line_is_shown_around_the_place_where_it_differs(request_: dict[str, Any]) -> None:
    recorded = copy.deepcopy(request_)
    request_["system"][0]["text"] = "x" * 100 + " warm and kind"
    recorded["system"][0]["text"] = "x" * 100 + " cold and kind"

    (difference,) = recording_diff(request_, recorded)

    assert f"now '… {'x' * 19} warm and kind'" in difference
    assert f"recorded '… {'x' * 19} cold and kind'" in difference


def test_lines_that_were_added_or_taken_away_are_shown(request_: dict[str, Any]) -> None:
    longer = copy.deepcopy(request_)
    longer["system"][0]["text"] += "\nBe short."
    assert recording_diff(longer, request_) == ["the main instruction (now 'Be short.', recorded nothing)"]
    assert recording_diff(request_, longer) == ["the main instruction (now nothing, recorded 'Be short.')"]


def test_an_instruction_that_differs_in_white_space_alone_is_told(request_: dict[str, Any]) -> None:
    recorded = copy.deepcopy(request_)
    recorded["system"][0]["text"] += "\n"
    assert recording_diff(request_, recorded) == ["the main instruction (white space or empty lines)"]


def test_marks_for_the_cache_count(request_: dict[str, Any]) -> None:
    recorded = copy.deepcopy(request_)
    del recorded["system"][0]["cache_control"]
    assert recording_diff(request_, recorded) == ["how the instructions are marked for the prompt cache"]


def test_mail_facts_and_an_objection_are_told_apart(instructions: Instructions, request_: dict[str, Any]) -> None:
    assert recording_diff(request_, choice(instructions, "It burns.")) == ["the mail"]
    assert recording_diff(request_, choice(instructions, BODY, serial_number="SN2")) == ["the facts"]
    assert recording_diff(request_, with_objection(request_, "No.")) == ["the objection to the last answer"]
    assert recording_diff(request_, choice(instructions, "It burns.", coverage="full")) == ["the mail", "the facts"]


def test_another_sentence_to_choose_from_is_told() -> None:
    requests = [
        {"messages": [{"role": "user", "content": f'<sentences>\n[{{"id": "{sentence}"}}]\n</sentences>'}]}
        for sentence in ("thanks", "sorry")
    ]
    assert recording_diff(requests[0], requests[1]) == ["the sentences to choose from"]


def test_another_way_to_write_the_message_is_told(request_: dict[str, Any]) -> None:
    recorded = copy.deepcopy(request_)
    recorded["messages"][0]["content"] += "\nKind regards"
    assert recording_diff(request_, recorded) == ["how the mail is put into the message"]


@pytest.mark.parametrize(
    "recorded",
    [{}, {"system": "text", "messages": []}, {"system": [7], "messages": [7]}, {"messages": [{"content": [1]}]}],
    ids=str,
)
def test_a_recording_of_another_shape_is_compared_all_the_same(
    request_: dict[str, Any], recorded: dict[str, Any]
) -> None:
    assert recording_diff(request_, recorded)

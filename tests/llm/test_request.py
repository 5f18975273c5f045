from __future__ import annotations

import json
from typing import Any

import pytest

from guarantee_email_agent.llm.request import PARTS, as_sent, canonical, digest

REQUEST: dict[str, Any] = {
    "model": "model-1",
    "max_tokens": 100,
    "temperature": 0.0,
    "system": [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "note", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "note"},
    "messages": [{"role": "user", "content": "Grüße 🎉"}],
}
CHANGES: dict[str, Any] = {
    "model": "model-2",
    "max_tokens": 101,
    "temperature": 0.1,
    "system": [{"type": "text", "text": "Be short!", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "note", "input_schema": {"type": "object", "properties": {}}}],
    "tool_choice": {"type": "auto"},
    "messages": [{"role": "user", "content": "Grüße"}],
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_counts(part: str) -> None:
    assert canonical({**REQUEST, part: CHANGES[part]}) != canonical(REQUEST)


def test_no_part_is_forgotten() -> None:
    assert set(CHANGES) == set(PARTS) == set(REQUEST)


def test_the_order_of_keys_does_not_count() -> None:
    assert canonical(dict(reversed(REQUEST.items()))) == canonical(REQUEST)


def test_no_temperature_is_another_request_than_zero() -> None:
    without = {name: value for name, value in REQUEST.items() if name != "temperature"}

    assert canonical(without) != canonical(REQUEST)
    assert canonical(without) == canonical({**REQUEST, "temperature": None})


def test_it_is_json_that_gives_the_request_back() -> None:
    assert json.loads(canonical(REQUEST)) == REQUEST


def test_a_digest_takes_any_text() -> None:
    assert digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest("\ud800") != digest("?")


def test_a_tool_is_forced_as_asked() -> None:
    assert as_sent(REQUEST, force_tool=True) == REQUEST


def test_without_force_the_model_is_asked_and_nothing_else_changes() -> None:
    sent = as_sent(REQUEST, force_tool=False)

    assert sent == {**REQUEST, "tool_choice": {"type": "auto"}}


@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "none"}])
def test_a_choice_that_forces_nothing_stays(choice: dict[str, str]) -> None:
    assert as_sent({**REQUEST, "tool_choice": choice}, force_tool=False)["tool_choice"] == choice

from __future__ import annotations

import json
from typing import Any

import pytest

from guarantee_email_agent.llm.request import PARTS, canonical_json, digest, request_digest, wire_request

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
    assert request_digest({**REQUEST, part: CHANGES[part]}) != request_digest(REQUEST)


def test_no_part_is_forgotten() -> None:
    assert set(CHANGES) == set(PARTS) == set(REQUEST)


def test_the_digest_is_the_one_that_recordings_name_whatever_the_order_of_keys() -> None:
    expected = "84db62b6e74591ae68bc7b3d3be888fa489ad4fe1cbc647a65cceabaee83a914"
    assert request_digest(REQUEST) == request_digest(dict(reversed(REQUEST.items()))) == expected


def test_no_temperature_is_another_request_than_zero() -> None:
    without = {name: value for name, value in REQUEST.items() if name != "temperature"}
    assert request_digest(without) != request_digest(REQUEST)
    assert request_digest(without) == request_digest({**REQUEST, "temperature": None})


def test_canonical_json_gives_the_data_back() -> None:
    assert json.loads(canonical_json(REQUEST)) == REQUEST


def test_a_digest_takes_any_text() -> None:
    assert digest("\ud800") != digest("?")


def test_a_tool_is_forced_as_asked() -> None:
    assert wire_request(REQUEST, force_tool=True) == REQUEST


def test_without_force_the_model_is_asked_and_nothing_else_changes() -> None:
    sent = wire_request(REQUEST, force_tool=False)
    assert sent == {**REQUEST, "tool_choice": {"type": "auto"}}


def test_without_force_the_model_is_shown_the_one_tool_that_is_meant() -> None:
    request = {**REQUEST, "tools": [{"name": "triage"}, *REQUEST["tools"]]}
    assert wire_request(request, force_tool=True) == request
    assert wire_request(request, force_tool=False) == wire_request(REQUEST, force_tool=False)


@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "none"}])
def test_a_choice_that_forces_nothing_stays(choice: dict[str, str]) -> None:
    assert wire_request({**REQUEST, "tool_choice": choice}, force_tool=False)["tool_choice"] == choice

"""What is taken for an answer, and how each other kind is told apart."""

from types import SimpleNamespace
from typing import Any

import pytest

from guarantee_email_agent.llm.port import Message, TextBlock, ToolUseBlock, request_digest, tool_input
from guarantee_email_agent.utils.errors import LLMError


def answered(*content: Any, stop_reason: str = "tool_use", **more: Any) -> Any:
    if more:
        return SimpleNamespace(content=list(content), stop_reason=stop_reason, **more)
    return Message("msg", "model", content, stop_reason)


def call(name: str = "note", value: Any = None) -> ToolUseBlock:
    return ToolUseBlock("toolu_1", name, {"number": 1} if value is None else value)


def has_a_number(value: object) -> bool:
    return isinstance(value, dict) and "number" in value


def error_of(answer: Any) -> LLMError:
    with pytest.raises(LLMError) as caught:
        tool_input(answer, "note", has_a_number)
    return caught.value


def test_the_first_fitting_call_counts() -> None:
    answer = answered(TextBlock("Well,"), call("other"), call(value={}), call(value={"number": 2}), call())
    assert tool_input(answer, "note", has_a_number) == {"number": 2}


@pytest.mark.parametrize(
    ("content", "objection"),
    [
        ((), "It was text, and no call of the tool."),
        ((TextBlock("The number is 1."),), "It was text, and no call of the tool."),
        ((TextBlock("So:"), call("other")), "It was a call of another tool."),
        ((call(value={"name": 1}),), "The input of the call does not fit the tool's schema."),
        ((call(value="number"),), "The input of the call does not fit the tool's schema."),
    ],
)
def test_another_shape_comes_with_what_to_tell_the_model(content: tuple[Any, ...], objection: str) -> None:
    error = error_of(answered(*content))
    assert (error.code, error.objection) == ("llm_wrong_shape", objection)
    assert error.message == f"The model did not answer through note as asked. {objection}"


def test_a_call_that_was_cut_off_is_no_answer_even_where_it_looks_complete() -> None:
    error = error_of(answered(call(), stop_reason="max_tokens"))
    assert error.code == "llm_truncated"
    assert "Raise llm.max_tokens" in error.message


@pytest.mark.parametrize(
    ("category", "shown"), [("cyber", " (cyber)"), (None, ""), ("My secret: 4711", ""), (["cyber"], "")]
)
def test_a_refusal_is_told_with_its_category_and_none_of_its_words(category: Any, shown: str) -> None:
    details = SimpleNamespace(category=category, explanation="The customer writes: my secret is 4711.")
    error = error_of(answered(call(), stop_reason="refusal", stop_details=details))
    assert error.code == "llm_refused"
    assert error.message == f"The model refuses to deal with this mail{shown}. Answer it yourself"


REQUEST: dict[str, Any] = {
    "model": "model-1",
    "max_tokens": 100,
    "temperature": 0.0,
    "system": [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "note", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "note"},
    "messages": [{"role": "user", "content": "Grüße 🎉"}],
}


def test_the_digest_is_the_one_that_recordings_name_whatever_the_order_of_keys() -> None:
    expected = "84db62b6e74591ae68bc7b3d3be888fa489ad4fe1cbc647a65cceabaee83a914"
    assert request_digest(REQUEST) == request_digest(dict(reversed(REQUEST.items()))) == expected

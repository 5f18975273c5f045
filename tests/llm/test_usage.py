import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_model import ScriptedModel

from guarantee_email_agent.llm.port import Message, TokenUsage
from guarantee_email_agent.llm.usage import MeteredModel, cost_usd, model_of, price_of, usage_of
from guarantee_email_agent.utils.clock import count_wait
from guarantee_email_agent.utils.errors import LLMError

USAGE = TokenUsage(1000, 100, 5000, 2000)


def said_by(model: str, usage: TokenUsage = USAGE) -> Message:
    return Message("msg", model, (), "tool_use", usage)


def metered(*answers: Any, asked: str = "claude-sonnet-4-6") -> MeteredModel:
    """After all of them were asked for."""
    meter = MeteredModel(ScriptedModel(*answers))

    async def ask() -> None:
        for answer in answers:
            if isinstance(answer, LLMError):
                with pytest.raises(LLMError):
                    await meter.messages.create(model=asked)
            else:
                await meter.messages.create(model=asked)

    asyncio.run(ask())
    return meter


def test_cost_is_what_the_price_list_says() -> None:
    # Per million tokens: input 3, output 15, read from the cache 0.3, written to it 3.75 dollars.
    dollars = (1000 * 3 + 100 * 15 + 5000 * 0.3 + 2000 * 3.75) / 1_000_000
    assert metered(said_by("claude-sonnet-4-6")).cost_usd == pytest.approx(dollars)
    assert metered(*[said_by("claude-sonnet-4-6")] * 2).cost_usd == pytest.approx(2 * dollars)


def test_another_model_than_was_asked_for_does_not_cost_what_that_one_does() -> None:
    assert metered(said_by("somebody-elses-model")).cost_usd is None
    assert metered(said_by("claude-opus-4-6")).cost_usd == pytest.approx((5000 + 2500 + 2500 + 12_500) / 1_000_000)


@pytest.mark.parametrize("named", [{"speed": "fast"}, {"inference_geo": "us"}, {"service_tier": "priority"}])
def test_what_is_served_in_another_way_than_the_list_has_no_known_price(named: dict[str, str]) -> None:
    usage = SimpleNamespace(input_tokens=3, output_tokens=4, **named)
    assert metered(SimpleNamespace(model="claude-sonnet-4-6", usage=usage)).cost_usd is None


class LosingModel(ScriptedModel):
    """Answers at the second attempt, if at all."""

    async def create(self, **request: Any) -> Any:
        count_wait(0.0, lost=1)
        return await super().create(**request)


@pytest.mark.parametrize("answer", [said_by("claude-sonnet-4-6"), LLMError("No answer", "llm_timeout")])
def test_what_an_attempt_without_an_answer_took_is_not_known(answer: Message | LLMError) -> None:
    meter = MeteredModel(LosingModel(answer))
    with suppress(LLMError):
        asyncio.run(meter.create(model="claude-sonnet-4-6"))
    assert (meter.usage.uncounted, meter.cost_usd) == (1, None)


def test_a_call_that_was_refused_counts_nothing() -> None:
    meter = metered(LLMError("Overloaded", "llm_overloaded"), said_by("claude-sonnet-4-6"))
    assert meter.calls == 1
    assert meter.usage == TokenUsage(1000, 100, 5000, 2000)


@pytest.mark.parametrize("version", ["claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001", "claude-haiku-4-5"])
def test_version_does_not_change_the_price(version: str) -> None:
    assert price_of(version) == price_of("claude-haiku-4-5")


@pytest.mark.parametrize("name", ["", "claude-haiku-4", "claude-haiku-4-5-next", "qwen3", "claude-opus-6"])
def test_unknown_model_has_no_cost(name: str) -> None:
    assert cost_usd(name, TokenUsage(1, 1)) is None


def test_long_prompt_costs_more_for_every_token() -> None:
    short = cost_usd("claude-haiku-5-5", TokenUsage(90_000, 10_000, 10_000))
    longer = cost_usd("claude-haiku-5-5", TokenUsage(90_000, 10_000, 10_001))
    assert short is not None
    assert longer == pytest.approx(5 * short, rel=1e-3)


ODD_USAGES = (
    None,
    {},
    {"input_tokens": 3},
    {"output_tokens": 4},
    {"input_tokens": 0, "output_tokens": 0},
    {"input_tokens": -3, "output_tokens": 4},
    {"input_tokens": True, "output_tokens": 4},
    {"input_tokens": "3", "output_tokens": 4},
    {"input_tokens": 3.0, "output_tokens": 4},
    {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": "5"},
    {"prompt_tokens": 3, "completion_tokens": 4},
)


@pytest.mark.parametrize("usage", ODD_USAGES)
def test_what_an_answer_without_sound_counts_took_is_not_known(usage: dict[str, object] | None) -> None:
    odd = usage_of(SimpleNamespace(usage=None if usage is None else SimpleNamespace(**usage)))
    assert odd == TokenUsage(uncounted=1)
    meter = metered(said_by("claude-sonnet-4-6"), said_by("claude-sonnet-4-6", odd))
    assert (meter.cost_usd, meter.usage) == (None, USAGE + odd)


@pytest.mark.parametrize(
    ("named", "model"),
    [({"model": "qwen3"}, "qwen3"), ({}, "asked"), ({"model": None}, "asked"), ({"model": ""}, "asked")],
)
def test_the_model_is_the_one_that_the_answer_names_if_any(named: dict[str, str | None], model: str) -> None:
    assert model_of(SimpleNamespace(**named), "asked") == model

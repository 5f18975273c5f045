from __future__ import annotations

from types import SimpleNamespace

import pytest

from guarantee_email_agent.llm.prices import TokenUsage, cost_usd, model_of, price_of, usage_of


def test_every_kind_of_token_has_its_price() -> None:
    usage = TokenUsage(input=1_000_000, output=100_000, cache_read=2_000_000, cache_write=400_000)
    assert cost_usd("claude-sonnet-4-6", usage) == pytest.approx(3 + 1.5 + 0.6 + 1.5)


@pytest.mark.parametrize("version", ["claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001", "claude-haiku-4-5"])
def test_version_does_not_change_the_price(version: str) -> None:
    assert price_of(version) == price_of("claude-haiku-4-5")


@pytest.mark.parametrize("name", ["", "claude-haiku-4", "claude-haiku-4-5-next", "qwen3", "claude-opus-6"])
def test_unknown_model_has_no_cost(name: str) -> None:
    assert cost_usd(name, TokenUsage(1, 1)) is None


def test_long_prompt_costs_more_for_every_token() -> None:
    short = cost_usd("claude-haiku-5-5", TokenUsage(input=90_000, cache_read=10_000, output=10_000))
    longer = cost_usd("claude-haiku-5-5", TokenUsage(input=90_000, cache_read=10_001, output=10_000))
    assert short is not None
    assert longer == pytest.approx(5 * short, rel=1e-3)


def test_counts_come_from_an_answer_of_the_api() -> None:
    usage = SimpleNamespace(
        input_tokens=3, output_tokens=4, cache_read_input_tokens=None, cache_creation_input_tokens=5
    )
    assert usage_of(SimpleNamespace(usage=usage)) == TokenUsage(3, 4, 0, 5)


@pytest.mark.parametrize("answer", [SimpleNamespace(), SimpleNamespace(usage=None), "text"])
def test_answer_without_counts_costs_nothing(answer: object) -> None:
    assert usage_of(answer).total == 0


def test_usage_adds_up() -> None:
    assert TokenUsage(1, 2, 3, 4) + TokenUsage(10, 20, 30, 40) == TokenUsage(11, 22, 33, 44)


@pytest.mark.parametrize("answer", [SimpleNamespace(), SimpleNamespace(model=None), SimpleNamespace(model="")])
def test_an_answer_that_names_no_model_is_of_the_one_that_was_asked(answer: object) -> None:
    assert model_of(answer, "claude-haiku-4-5") == "claude-haiku-4-5"


def test_an_answer_that_names_a_model_is_of_that_one() -> None:
    assert model_of(SimpleNamespace(model="qwen3"), "claude-haiku-4-5") == "qwen3"

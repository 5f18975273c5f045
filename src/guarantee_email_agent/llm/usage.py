"""What the model's answers take: tokens, and US dollars by the price lists of Anthropic and OpenAI.

Prices of standard, not batched requests, as the data set `genai-prices` 0.2.3 of November 2026 had them from
https://platform.claude.com/docs/en/about-claude/pricing and https://platform.openai.com/docs/pricing. A model that is
not listed has no price: a wrong figure would be worse than none.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from guarantee_email_agent.llm.port import NO_TOKENS, OFFLINE_MODEL, LanguageModel, ModelClient, TokenUsage
from guarantee_email_agent.utils.clock import counted_waits
from guarantee_email_agent.utils.errors import AgentError

PLAIN_TIERS: Final = (None, "auto", "default", "standard", "global", "not_available")
"""Of a service, its speed and its place, that costs what the price list says."""

# A pinned version: claude-sonnet-5-5-20260928, …@20260928 as Google Cloud writes it, or gpt-5-2025-08-07.
_VERSION: Final = r"[-@]\d{4}(-?)\d{2}\1\d{2}$"


class Price(NamedTuple):
    """US dollars for a million tokens.

    long_prompt: from more tokens of input than this on, every token of the request costs `long_factor` times as much.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    long_prompt: int | None = None
    long_factor: float = 1.0


_PRICES: Final = {
    "claude-fable-5": Price(10, 50, 1, 12.5),
    "claude-fable-5-1": Price(10, 50, 0.25, 12.5),
    "claude-fable-5-2": Price(8, 40, 0.2, 10),
    "claude-haiku-4-5": Price(1, 5, 0.1, 1.25),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.01, 0.125, 100_000, 5),
    "claude-mythos-5-2": Price(8, 40, 0.2, 10),
    "claude-opus-4-5": Price(5, 25, 0.5, 6.25),
    "claude-opus-4-6": Price(5, 25, 0.5, 6.25),
    "claude-opus-4-7": Price(5, 25, 0.5, 6.25),
    "claude-opus-4-8": Price(5, 25, 0.5, 6.25),
    "claude-opus-5": Price(5, 25, 0.5, 6.25),
    "claude-opus-5-5": Price(4, 20, 0.2, 5),
    "claude-sonnet-4-5": Price(3, 15, 0.3, 3.75),
    "claude-sonnet-4-6": Price(3, 15, 0.3, 3.75),
    "claude-sonnet-5": Price(2, 10, 0.2, 2.5),
    "claude-sonnet-5-5": Price(2, 10, 0.1, 2.5),
    "gpt-4.1": Price(2, 8, 0.5, 2),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1, 0.4),
    "gpt-4.1-nano": Price(0.1, 0.4, 0.025, 0.1),
    "gpt-4o": Price(2.5, 10, 1.25, 2.5),
    "gpt-4o-2024-05-13": Price(5, 15, 5, 5),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075, 0.15),
    "gpt-5": Price(1.25, 10, 0.125, 1.25),
    "gpt-5-mini": Price(0.25, 2, 0.025, 0.25),
    "gpt-5-nano": Price(0.05, 0.4, 0.005, 0.05),
    "gpt-5.1": Price(1.25, 10, 0.125, 1.25),
    "gpt-5.2": Price(1.75, 14, 0.175, 1.75),
    "gpt-5.4-mini": Price(0.75, 4.5, 0.075, 0.75),
    "gpt-5.4-nano": Price(0.2, 1.25, 0.02, 0.2),
}


def price_of(model: str) -> Price | None:
    """The price of a model, whether named with its version or without; None for one that is not listed."""
    return _PRICES.get(model) or _PRICES.get(re.sub(_VERSION, "", model))


def cost_usd(model: str, usage: TokenUsage) -> float | None:
    """What one exchange cost in US dollars; None where its tokens or the model's price are not known."""
    price = price_of(model)
    if price is None or usage.uncounted:
        return None
    dollars = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_input_tokens * price.cache_read
        + usage.cache_creation_input_tokens * price.cache_write
    ) / 1_000_000
    is_long = price.long_prompt is not None and usage.total - usage.output_tokens > price.long_prompt
    return dollars * price.long_factor if is_long else dollars


def has_list_price(answer: Any) -> bool:
    """Whether an answer in the shape of the Messages API names nothing that is dearer than the price list: a tier, a
    speed, a place, a cache that is kept for an hour.
    """
    named = getattr(answer, "usage", None)
    tiers = [getattr(answer, "service_tier", None)]  # of OpenAI's
    tiers += (getattr(named, name, None) for name in ("service_tier", "speed", "inference_geo"))
    kept = getattr(getattr(named, "cache_creation", None), "ephemeral_1h_input_tokens", None)
    return all(tier in PLAIN_TIERS for tier in tiers) and not kept


def usage_of(answer: Any) -> TokenUsage:
    """The tokens that an answer in the shape of the Messages API counts; `uncounted` where it does not say so."""
    usage = getattr(answer, "usage", None)
    cached = (getattr(usage, f"cache_{name}_input_tokens", None) or 0 for name in ("read", "creation"))
    counts: list[Any] = [*(getattr(usage, name, None) for name in ("input_tokens", "output_tokens")), *cached]
    return TokenUsage.of(counts)


def model_of(answer: Any, requested: str) -> str:
    """The model that answered, which a server may have put in the place of the requested one."""
    name = getattr(answer, "model", None)
    return name if isinstance(name, str) and name else requested


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What a mail took of a model. cost_usd: None where a price is not known.

    latency_ms: waiting for answers, but not for a rate limit to let the request go.
    """

    calls: int
    tokens: TokenUsage
    cost_usd: float | None
    latency_ms: int

    def as_dict(self) -> dict[str, Any]:
        # What some answers did not say makes the sum of the others no figure: none is there then.
        counts = {} if self.tokens.uncounted else self.tokens.as_dict()
        tokens = {f"{name}_tokens": count for name, count in counts.items()}
        return {"calls": self.calls, **tokens, "cost_usd": self.cost_usd, "latency_ms": self.latency_ms}


class UsageMeter:
    """What answers took. whole: the meter of more than these, which counts them, too."""

    def __init__(self, whole: UsageMeter | None = None) -> None:
        self._whole = whole
        self.calls = 0
        self.usage: TokenUsage = NO_TOKENS
        self.cost_usd: float | None = 0.0
        """None once an answer did not say what it took, or came from a model without a known price."""
        self._waited_s = 0.0

    @property
    def total(self) -> ModelUsage:
        """What all answers took until now."""
        return ModelUsage(self.calls, self.usage, self.cost_usd, round(self._waited_s * 1000))

    def add(self, usage: ModelUsage) -> None:
        """Count what was paid for elsewhere, too."""
        self.calls += usage.calls
        self.usage += usage.tokens
        self.cost_usd = None if usage.cost_usd is None or self.cost_usd is None else self.cost_usd + usage.cost_usd
        if self._whole is not None:
            self._whole.add(usage)


class MeteredModel(UsageMeter, ModelClient):
    """A LanguageModel in front of another one. Give each mail one of its own; they may share the model behind.

    An attempt that the API refused counts nothing, since it charges for none; what one took that was sent and brought
    no answer, or failed there (HTTP 5xx), is not known.
    """

    def __init__(self, model: LanguageModel, whole: UsageMeter | None = None) -> None:
        super().__init__(whole)
        self._model = model
        self.offline_calls = 0
        """Answers by the instructions' own templates."""
        self.fallback_reason: AgentError | None = None
        """Why the templates answered last; None where the model did, or nobody says."""

    async def create(self, **request: Any) -> Any:
        """The model's answer, counted."""
        asked = time.perf_counter()
        with counted_waits() as held_back:
            try:
                answer = await self._model.messages.create(**request)
            finally:
                self._waited_s += max(0.0, time.perf_counter() - asked - held_back.seconds)
                if held_back.lost:
                    self.add(ModelUsage(0, TokenUsage(uncounted=held_back.lost), None, 0))
        if (name := model_of(answer, request["model"])) == OFFLINE_MODEL:  # the templates cost nothing
            self.calls += 1
            self.offline_calls += 1
            self.fallback_reason = getattr(answer, "fallback_reason", None)
        else:
            usage = usage_of(answer)
            self.add(ModelUsage(1, usage, cost_usd(name, usage) if has_list_price(answer) else None, 0))
        return answer

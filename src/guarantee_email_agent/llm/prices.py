"""What tokens cost, in US dollars.

Prices of the Anthropic API for standard, not batched requests, as the data set `genai-prices` 0.2.3 of November 2026
had them from https://platform.claude.com/docs/en/about-claude/pricing. A model that is not listed has no price: a wrong
figure would be worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

_MILLION: Final = 1_000_000
# A pinned version: claude-sonnet-5-5-20260928, or …@20260928 as Google Cloud writes it.
_VERSION: Final = re.compile(r"[-@]\d{8}$")


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one exchange or of many. `input`: without those that a cache gave or took."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """Every token that was sent or received, cached ones too."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


NO_TOKENS: Final = TokenUsage()


@dataclass(frozen=True, slots=True)
class Price:
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
}


def price_of(model: str) -> Price | None:
    """The price of a model, whether named with its version or without; None for one that is not listed."""
    return _PRICES.get(_VERSION.sub("", model))


def cost_usd(model: str, usage: TokenUsage) -> float | None:
    """What one exchange cost in US dollars; None where the model has no known price."""
    price = price_of(model)
    if price is None:
        return None
    dollars = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    ) / _MILLION
    is_long = price.long_prompt is not None and usage.total - usage.output > price.long_prompt
    return dollars * price.long_factor if is_long else dollars


def usage_of(answer: Any) -> TokenUsage:
    """The tokens that an answer in the shape of the Messages API counts; nothing where it counts none."""
    usage = getattr(answer, "usage", None)

    def count(name: str) -> int:
        tokens = getattr(usage, name, 0)
        return tokens if isinstance(tokens, int) and tokens > 0 else 0

    return TokenUsage(
        input=count("input_tokens"),
        output=count("output_tokens"),
        cache_read=count("cache_read_input_tokens"),
        cache_write=count("cache_creation_input_tokens"),
    )


def model_of(answer: Any, asked: str) -> str:
    """The model that answered, which a server may have put in the place of the one that was asked for."""
    name = getattr(answer, "model", None)
    return name if isinstance(name, str) and name else asked

"""Count what the model's answers cost, for one mail or for a whole run."""

from __future__ import annotations

from typing import Any

from guarantee_email_agent.llm.port import OFFLINE_MODEL, LanguageModel, Messages
from guarantee_email_agent.llm.prices import NO_TOKENS, TokenUsage, cost_usd, model_of, usage_of


class MeteredModel:
    """A LanguageModel in front of another one. Give each mail one of its own; they may share the model behind.

    An attempt that failed counts nothing: there is no answer that says what it took, and the API charges for none.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._cost_usd: float | None = 0.0
        self.calls = 0
        self.usage: TokenUsage = NO_TOKENS

    @property
    def messages(self) -> Messages:
        return self

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None once an answer came from a model without a known price. `llm.prices` has the prices."""
        return self._cost_usd

    async def create(self, **request: Any) -> Any:
        """The model's answer, counted."""
        answer = await self._model.messages.create(**request)
        self.calls += 1
        self.usage += usage_of(answer)
        if (name := model_of(answer, request["model"])) != OFFLINE_MODEL:  # the templates cost nothing
            cost = cost_usd(name, usage_of(answer))
            self._cost_usd = None if cost is None or self._cost_usd is None else self._cost_usd + cost
        return answer

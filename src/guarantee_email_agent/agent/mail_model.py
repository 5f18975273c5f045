"""What stands between one mail and the language model: what a day may cost, and answers that were paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from guarantee_email_agent.agent.memory import Memory
from guarantee_email_agent.config.settings import Llm
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.llm.port import (
    OFFLINE_MODEL,
    LanguageModel,
    ModelClient,
    TokenUsage,
    all_parts,
    canonical_json,
    request_digest,
)
from guarantee_email_agent.llm.usage import cost_usd, has_list_price, model_of, price_of, usage_of
from guarantee_email_agent.utils.clock import counted_waits
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError
from guarantee_email_agent.utils.text import amount

OVER_COST_LIMIT: Final = "llm_cost_limit"


class CostLimitedModel(ModelClient):
    """`llm.max_cost_per_day`, of all agents on one ledger: a LanguageModel in front of another one, for one mail.

    A day is one of UTC. Each answer is paid for in the ledger as it comes. A mail that was begun is finished, so the
    day may cost more by what the mails in progress take. `create` raises LLMError `llm_cost_limit` for a mail that
    comes once the limit is reached, and LedgerError where what was spent cannot be known: nothing was asked.
    """

    def __init__(self, model: LanguageModel, ledger: Ledger, max_usd: float, memory: Memory, lost: int = 0) -> None:
        """lost: requests of this mail that an agent which was killed may have had under way."""
        self._model, self._lost = model, lost
        self._ledger = ledger
        self._max_usd = max_usd
        self._memory = memory
        self._begun = False

    async def create(self, **request: Any) -> Any:
        most = _most_tokens(request)
        most_usd = cost_usd(request["model"], most) or 0.0
        if not self._begun:
            await self._pay(self._lost * most_usd)
            if self._memory.unsaved_usd:
                await self._save(0.0)
            spent = await asyncio.to_thread(self._ledger.costs.today)
            if spent >= self._max_usd:
                message = f"llm.max_cost_per_day is reached: {amount(spent)} USD since 0:00 UTC"
                raise LLMError(message, OVER_COST_LIMIT, outage=True)
            self._begun = True
        with counted_waits() as attempts:
            try:
                answer = await self._model.messages.create(**request)
            finally:
                if attempts.lost:
                    await self._pay(attempts.lost * most_usd)
        name = model_of(answer, request["model"])
        if name != OFFLINE_MODEL:
            # A server may put another model in its place, and what that costs nobody knows: it is not for nothing.
            priced = name if price_of(name) is not None else request["model"]
            usage = usage_of(answer)
            is_known = not usage.uncounted and has_list_price(answer)
            await self._pay(cost_usd(priced, usage if is_known else most) or 0.0)
        return answer

    async def _pay(self, cost: float) -> None:
        if cost:
            with suppress(LedgerError):  # or the answer would be paid for once more
                await self._save(cost)

    async def _save(self, cost: float) -> None:
        due, self._memory.unsaved_usd = self._memory.unsaved_usd + cost, 0.0
        try:
            await asyncio.to_thread(self._ledger.costs.add, due)
        except LedgerError:
            self._memory.unsaved_usd += due
            raise


def _most_tokens(request: Mapping[str, Any]) -> TokenUsage:
    """What an answer that does not come or say so can have taken: no token is shorter than a byte."""
    sent = len(canonical_json(all_parts(request)).encode(errors="surrogatepass"))
    return TokenUsage(output_tokens=request.get("max_tokens", 0), cache_creation_input_tokens=sent)


def check_price(llm: Llm) -> None:
    """Raises ConfigurationError for a limit on what a model without a known price may cost."""
    if llm.max_cost_per_day is not None and llm.provider != "offline" and price_of(llm.model) is None:
        raise ConfigurationError(
            f"llm.max_cost_per_day cannot be kept: the price of llm.model {llm.model} is not known. Name a model with "
            "a known price, or remove the limit",
            "config_invalid_value",
        )


class CachingModel(ModelClient):
    """A LanguageModel in front of another one, for a mail: what that has answered to the same request is given.

    Answers of the templates that stand in for a model are not kept: the model may be back.
    """

    def __init__(self, model: LanguageModel, cached: dict[str, Any]) -> None:
        self._model, self._cached = model, cached

    async def create(self, **request: Any) -> Any:
        digest = request_digest(request)
        if (answer := self._cached.get(digest)) is None:
            answer = await self._model.messages.create(**request)
            if getattr(answer, "fallback_reason", None) is None:
                self._cached[digest] = answer
        return answer

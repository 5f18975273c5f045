"""`--max-cost`: nothing is begun that could take the run over what it may cost."""

from __future__ import annotations

import asyncio

from guarantee_email_agent.llm.usage import ModelUsage, UsageMeter, price_of
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import amount, printable


class CostLimit:
    """What is paid, and at the price of the dearest run so far what is under way, must leave room for one more.

    Until a price is known, they go one at a time. They: scenarios, or the rubrics of tasks. Used in one event loop.
    """

    def __init__(self, meter: UsageMeter, max_usd: float | None, repeat: int, model: str | None) -> None:
        """meter: of all that is paid. max_usd: US dollars; None for no limit. repeat: the runs of one.
        model: None where only the answers say which.

        Raises ConfigurationError for a limit on a model whose price is not known.
        """
        if max_usd is not None and model is not None and price_of(model) is None:
            problem = f"--max-cost: the price of {printable(model)} is not known. Remove --max-cost, or name another"
            raise ConfigurationError(f"{problem} model", "cli_no_price")
        self._meter, self._max_usd, self._repeat = meter, max_usd, repeat
        self._dearest_usd = 0.0
        self._under_way = 0
        self._ended = asyncio.Event()
        self.stop_reason: str | None = None
        """Why none may begin any more, for people; None while one may."""

    async def may_begin(self) -> bool:
        """Whether one more may begin; waits where that rests on what is under way. Call `end` after it."""
        while self._max_usd is not None and self.stop_reason is None:
            paid_usd = self._meter.cost_usd
            if paid_usd is None:
                self.stop_reason = "what the model costs is no longer known, and --max-cost is set"
                break
            is_known = self._dearest_usd > 0
            after_usd = paid_usd + (self._under_way + 1) * self._repeat * self._dearest_usd
            if after_usd <= self._max_usd and (is_known or not self._under_way):
                break
            if not self._under_way:
                next_usd = self._repeat * self._dearest_usd
                self.stop_reason = (
                    f"${amount(paid_usd)} is paid, and the next one (up to ${amount(next_usd)}) could pass "
                    f"--max-cost {self._max_usd:g}"
                )
                break
            self._ended.clear()
            await self._ended.wait()
        if self.stop_reason is not None:
            return False
        self._under_way += 1
        return True

    def end(self) -> None:
        """One that had begun is over."""
        self._under_way -= 1
        self._ended.set()

    def learn(self, *usages: ModelUsage | None) -> None:
        """What runs have cost."""
        for usage in usages:
            if usage is not None and usage.cost_usd is not None:
                self._dearest_usd = max(self._dearest_usd, usage.cost_usd)

"""`--max-cost`, without a suite: what may begin, what waits, and what stops."""

import asyncio

import pytest

from guarantee_email_agent.llm.cost_limit import CostLimit
from guarantee_email_agent.llm.port import NO_TOKENS
from guarantee_email_agent.llm.usage import ModelUsage, UsageMeter

MODEL = "claude-sonnet-4-6"


def pay(limit: CostLimit, meter: UsageMeter, usd: float) -> None:
    """One that began is over, and has cost so much."""
    usage = ModelUsage(1, NO_TOKENS, usd, 1)
    meter.add(usage)
    limit.learn(usage)
    limit.end()


@pytest.mark.parametrize(("max_usd", "repeat", "begins"), [(0.2, 1, True), (0.19, 1, False), (0.39, 3, False)])
def test_the_dearest_run_decides_whether_one_more_begins(max_usd: float, repeat: int, begins: bool) -> None:
    limit = CostLimit(meter := UsageMeter(), max_usd, repeat, MODEL)

    async def begin_after_one() -> bool:
        assert await limit.may_begin()
        pay(limit, meter, 0.1)
        return await limit.may_begin()

    assert asyncio.run(begin_after_one()) is begins
    assert (limit.stop_reason is None) is begins


def test_what_is_under_way_counts_until_it_is_over() -> None:
    limit = CostLimit(meter := UsageMeter(), 0.35, 1, MODEL)

    async def begin_the_last() -> None:
        assert await limit.may_begin()
        pay(limit, meter, 0.1)
        assert await limit.may_begin()
        assert await limit.may_begin()
        fourth = asyncio.create_task(limit.may_begin())
        await asyncio.sleep(0)
        assert not fourth.done()
        pay(limit, meter, 0.1)
        pay(limit, meter, 0.1)
        assert not await fourth

    asyncio.run(begin_the_last())
    assert str(limit.stop_reason).startswith("$0.3000 is paid, and the next one (up to $0.1000) could pass")

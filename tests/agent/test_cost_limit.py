from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mailbox_in_memory import MailboxInMemory, Tickets, Warranties, mail, worker_on

from guarantee_email_agent.agent.cost_limit import OVER_COST_LIMIT, CostLimitedModel, UnsavedCost, check_price
from guarantee_email_agent.config.settings import Llm
from guarantee_email_agent.integrations.ports import InboxEntry
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerCount, LedgerReader
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.llm.port import OFFLINE_MODEL, ModelClient
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError

KEY = b"a key for tests"
MODEL = "claude-sonnet-4-6"
DAY = 86_400.0
NOON = 1_800_057_600.0
"""2027-01-16, 0:00 UTC, plus half a day."""


class Clock:
    now = NOON


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: clock.now)) as ledger:
        yield ledger


class PricedModel(ModelClient):
    """Each answer takes 100,000 tokens of output: 1.50 USD."""

    def __init__(self, name: str = MODEL) -> None:
        self.name, self.calls = name, 0

    async def create(self, **_: Any) -> Any:
        self.calls += 1
        return SimpleNamespace(model=self.name, usage=SimpleNamespace(output_tokens=100_000))


def ask(model: ModelClient, ledger: Ledger, max_usd: float = 3.0, times: int = 1) -> None:
    """As one mail does."""

    async def calls() -> None:
        limited = CostLimitedModel(model, ledger, max_usd, UnsavedCost())
        for _ in range(times):
            await limited.create(model=MODEL)

    asyncio.run(calls())


def test_mails_beyond_the_limit_ask_nothing_also_after_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    model = PricedModel()
    ask(model, ledger, times=2)
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: clock.now)) as other:
        assert other.costs.today() == pytest.approx(3.0)
        with pytest.raises(LLMError, match=r"llm\.max_cost_per_day is reached: 3\.00 USD") as caught:
            ask(model, other)
    assert (caught.value.code, model.calls) == (OVER_COST_LIMIT, 2)


def test_a_mail_beyond_the_limit_is_handed_over_and_one_that_needs_no_model_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    mailbox = MailboxInMemory("first", "automatic")
    mailbox.mails["automatic"] = mail("automatic").replace(b"\r\n\r\n", b"\r\nAuto-Submitted: auto-replied\r\n\r\n")
    worker = replace(worker_on(mailbox, ledger, Warranties(), Tickets()), max_cost_usd=1.0)
    ledger.costs.add(1.0)
    for name in mailbox.mails:
        asyncio.run(worker.work(InboxEntry(name, 1), NOON))
    assert mailbox.marks == {"first": "handed_over", "automatic": "not_answered"}
    assert mailbox.sent == []
    with LedgerReader(str(tmp_path / "ledger.db")) as reader:
        assert reader.counts_since(0)[0] == LedgerCount("handed_over", OVER_COST_LIMIT, 1)


def test_an_answer_whose_cost_cannot_be_written_is_used_and_counted_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the mail would be tried again, and the same answer paid for each time."""
    model, unsaved = PricedModel(), UnsavedCost()

    def away(_usd: float) -> None:
        raise LedgerError("gone", "ledger_locked", {"outage": True})

    async def one_mail() -> None:
        await CostLimitedModel(model, ledger, 3.0, unsaved).create(model=MODEL)

    with monkeypatch.context() as patch:
        patch.setattr(ledger.costs, "add", away)
        asyncio.run(one_mail())
        with pytest.raises(LedgerError):  # what was spent is not known
            asyncio.run(one_mail())
    asyncio.run(one_mail())
    assert (model.calls, unsaved.usd) == (2, 0.0)
    assert ledger.costs.today() == pytest.approx(3.0)


def test_a_mail_that_was_begun_is_finished(ledger: Ledger) -> None:
    model = PricedModel()
    ask(model, ledger, max_usd=1.0, times=3)
    assert model.calls == 3


def test_a_day_ends_at_midnight_utc_and_its_cost_is_forgotten_later(ledger: Ledger, clock: Clock) -> None:
    ask(PricedModel(), ledger, times=2)
    clock.now = NOON + DAY
    assert ledger.costs.today() == 0
    ask(PricedModel(), ledger)
    clock.now = NOON
    assert ledger.costs.today() == pytest.approx(3.0)
    clock.now = NOON + 100 * DAY
    ask(PricedModel(), ledger)
    clock.now = NOON
    assert ledger.costs.today() == 0


def test_an_answer_of_a_model_without_a_price_costs_what_the_requested_one_does(ledger: Ledger) -> None:
    model = PricedModel("claude-of-somebody-else")
    ask(model, ledger, times=2)
    with pytest.raises(LLMError):
        ask(model, ledger)
    assert model.calls == 2


def test_two_agents_on_one_ledger_pass_the_limit_by_what_is_in_progress_at_most(ledger_location: str) -> None:
    """Each works on one mail at a time, and each mail costs 1.50 USD of 12."""
    with (
        closing(open_ledger(ledger_location, key=KEY)) as one,
        closing(open_ledger(ledger_location, key=KEY)) as other,
    ):
        models = PricedModel(), PricedModel()

        def agent(ledger: Ledger, model: PricedModel) -> int:
            handed_over = 0
            for _ in range(10):
                try:
                    ask(model, ledger, max_usd=12.0)
                except LLMError:
                    handed_over += 1
            return handed_over

        with ThreadPoolExecutor(2) as agents:
            handed_over = sum(agents.map(agent, (one, other), models))
        calls = sum(model.calls for model in models)
        assert 8 <= calls <= 9
        assert handed_over == 20 - calls
        assert one.costs.today() == other.costs.today() == pytest.approx(1.5 * calls)


def test_at_midnight_all_agents_begin_anew(ledger_location: str, ledger_sql: Any) -> None:
    with (
        closing(open_ledger(ledger_location, key=KEY)) as one,
        closing(open_ledger(ledger_location, key=KEY)) as other,
    ):
        ask(PricedModel(), one)
        ask(PricedModel(), other)
        yesterday, today = "model_cost 2026-01-18", "model_cost %"
        ledger_sql.rows("UPDATE ledger_facts SET name = ? WHERE name LIKE ?", yesterday, today)
        assert one.costs.today() == other.costs.today() == 0
        ask(PricedModel(), other)
        assert one.costs.today() == other.costs.today() == pytest.approx(1.5)


def test_templates_cost_nothing(ledger: Ledger) -> None:
    ask(PricedModel(OFFLINE_MODEL), ledger, times=5)
    assert ledger.costs.today() == 0


def test_a_limit_on_a_model_without_a_price_is_refused() -> None:
    check_price(Llm(provider="anthropic", model=MODEL, max_cost_per_day=1.0))
    check_price(Llm(provider="offline", model="unheard-of", max_cost_per_day=1.0))
    with pytest.raises(ConfigurationError, match=r"the price of llm\.model unheard-of is not known"):
        check_price(Llm(provider="anthropic", model="unheard-of", max_cost_per_day=1.0))

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, integration_error, mail, worker_on

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT, CachingModel, CostLimitedModel, check_price
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.agent.memory import Memory
from guarantee_email_agent.config.settings import Llm
from guarantee_email_agent.email.identity import mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerCount, LedgerReader
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.llm.port import LanguageModel, ModelClient
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.clock import count_wait
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError

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

    def __init__(self, name: str = MODEL, output_tokens: int | None = 100_000) -> None:
        self.name, self.calls = name, 0
        self.usage = SimpleNamespace(input_tokens=0, output_tokens=output_tokens)

    async def create(self, **_: Any) -> Any:
        self.calls += 1
        return SimpleNamespace(model=self.name, usage=self.usage)


def ask(model: ModelClient, ledger: Ledger, max_usd: float = 3.0, times: int = 1) -> None:
    """As one mail does."""

    async def calls() -> None:
        limited = CostLimitedModel(model, ledger, max_usd, Memory())
        for _ in range(times):
            await limited.create(model=MODEL, max_tokens=100_000)

    asyncio.run(calls())


def test_mails_beyond_the_limit_ask_nothing_also_after_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    model = PricedModel()
    ask(model, ledger, times=2)
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: clock.now)) as other:
        assert other.costs.today() == pytest.approx(3.0)
        with pytest.raises(LLMError, match=r"llm\.max_cost_per_day is reached: 3\.0000 USD") as caught:
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
        assert reader.counts(0)[0] == LedgerCount("handed_over", OVER_COST_LIMIT, 1)


def test_an_answer_whose_cost_cannot_be_written_is_used_and_counted_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the mail would be tried again, and the same answer paid for each time."""
    model, memory = PricedModel(), Memory()

    def away(_usd: float) -> None:
        raise LedgerError("gone", "ledger_locked", outage=True)

    async def one_mail() -> None:
        await CostLimitedModel(model, ledger, 3.0, memory).create(model=MODEL)

    with monkeypatch.context() as patch:
        patch.setattr(ledger.costs, "add", away)
        asyncio.run(one_mail())
        with pytest.raises(LedgerError):  # what was spent is not known
            asyncio.run(one_mail())
    asyncio.run(one_mail())
    assert (model.calls, memory.unsaved_usd) == (2, 0.0)
    assert ledger.costs.today() == pytest.approx(3.0)


def test_a_mail_that_was_begun_is_finished(ledger: Ledger) -> None:
    model = PricedModel()
    ask(model, ledger, max_usd=1.0, times=3)
    assert model.calls == 3


def test_a_day_ends_at_midnight_utc(ledger: Ledger, clock: Clock) -> None:
    ask(PricedModel(), ledger, times=2)
    clock.now = NOON + DAY
    assert ledger.costs.today() == 0
    ask(PricedModel(), ledger)
    clock.now = NOON
    assert ledger.costs.today() == pytest.approx(3.0)


def test_an_answer_of_a_model_without_a_price_costs_what_the_requested_one_does(ledger: Ledger) -> None:
    model = PricedModel("claude-of-somebody-else")
    ask(model, ledger, times=2)
    with pytest.raises(LLMError):
        ask(model, ledger)
    assert model.calls == 2


@pytest.mark.parametrize("named", [{"output_tokens": None}, {"speed": "fast"}])
def test_an_answer_of_unknown_cost_costs_what_it_can_have_taken(ledger: Ledger, named: dict[str, Any]) -> None:
    model = PricedModel(output_tokens=1)
    vars(model.usage).update(named)
    ask(model, ledger)
    assert ledger.costs.today() == pytest.approx(1.5, rel=0.01)


def test_an_attempt_without_an_answer_costs_what_it_can_have_taken(ledger: Ledger) -> None:
    class LostModel(PricedModel):
        async def create(self, **_: Any) -> Any:
            count_wait(0.0, lost=2)
            raise LLMError("No answer", "llm_timeout")

    with pytest.raises(LLMError, match="No answer"):
        ask(LostModel(), ledger)
    assert ledger.costs.today() == pytest.approx(3.0, rel=0.01)


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


def test_a_limit_on_a_model_without_a_price_is_refused() -> None:
    check_price(Llm(provider="anthropic", model=MODEL, max_cost_per_day=1.0))
    check_price(Llm(provider="offline", model="unheard-of", max_cost_per_day=1.0))
    with pytest.raises(ConfigurationError, match=r"the price of llm\.model unheard-of is not known"):
        check_price(Llm(provider="anthropic", model="unheard-of", max_cost_per_day=1.0))


@dataclass
class CountingModel(ModelClient):
    """A live model in front of the shipped interpreter. fails: so many answers that are of no use."""

    model: LanguageModel
    calls: int = 0
    fails: int = 0

    async def create(self, **request: Any) -> Any:
        self.calls += 1
        if self.fails:
            self.fails -= 1
            raise LLMError("not what was asked for", "llm_bad_answer")
        return await self.model.messages.create(**request)


def live_worker(mailbox: MailboxInMemory, tmp_path: Path) -> tuple[MailWorker, CountingModel, closing[Any]]:
    ledger = open_ledger(str(tmp_path / "ledger.db"), key=KEY)
    worker = worker_on(mailbox, ledger, Warranties(), Tickets())
    model = CountingModel(worker.processor.llm)
    return replace(worker, processor=replace(worker.processor, llm=model), has_live_model=True), model, closing(ledger)


def work(worker: MailWorker, name: str = "first") -> WorkResult:
    return asyncio.run(worker.work(InboxEntry(name, 1), worker.ledger.time()))


def test_a_mail_that_waits_for_the_mail_server_is_paid_for_once(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("first")
    mailbox.errors["send"] = [integration_error("mail_unavailable", outage=True) for _ in range(5)]
    worker, model, ledger = live_worker(mailbox, tmp_path)
    with ledger:
        tries = [work(worker) for _ in range(5)]
        paid = model.calls
        answered = work(worker)
    assert [each.disposition for each in tries] == ["outage"] * 5
    assert (answered.disposition, len(mailbox.sent)) == ("answered", 1)
    assert model.calls == paid > 0
    assert [each.tokens == 0 for each in tries[1:]] == [True] * 4
    assert worker.memory.answers == {}


def test_an_answer_that_was_of_no_use_is_asked_for_again(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("first")
    worker, model, ledger = live_worker(mailbox, tmp_path)
    model.fails = 1
    with ledger:
        assert work(worker).disposition in ("failed", "outage")
        calls = model.calls
        mail_key = mail_identity(parse_email(mailbox.mails["first"]), KEY)
        worker.ledger.interventions.release(mail_key, lambda _: False)
        assert work(worker).disposition == "answered"
    assert model.calls > calls


def test_no_other_request_and_no_other_mail_gets_a_kept_answer() -> None:
    memory, model = Memory(), CountingModel(_Echo())
    first, second = (CachingModel(model, memory.answers_to(mail)) for mail in ("first", "second"))

    async def ask() -> list[Any]:
        return [
            await each.messages.create(model="m", messages=[text])
            for each, text in ((first, "a"), (first, "a"), (first, "b"), (second, "a"))
        ]

    assert [answer.said for answer in asyncio.run(ask())] == ["a", "a", "b", "a"]
    assert model.calls == 3


class _Echo(ModelClient):
    async def create(self, **request: Any) -> Any:
        return SimpleNamespace(said="".join(request["messages"]))

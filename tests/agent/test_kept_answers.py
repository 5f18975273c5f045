"""What a model was paid for is used until the mail is done, and nothing that was of no use."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, integration_error, worker_on

from guarantee_email_agent.agent.kept_answers import MAX_MAILS, KeptAnswers
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.email.identity import mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.integrations.ports import InboxEntry
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.llm.port import LanguageModel, ModelClient
from guarantee_email_agent.utils.errors import LLMError


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


class DownUntil(MailboxInMemory):
    """A mailbox that takes no reply for a while."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.is_down = True

    async def send(self, reply: Any) -> Any:
        if self.is_down:
            error = integration_error("mail_unavailable")
            error.details |= {"outage": True}
            raise error
        return await super().send(reply)


def live_worker(mailbox: MailboxInMemory, tmp_path: Path) -> tuple[MailWorker, CountingModel, closing[Any]]:
    ledger = open_ledger(str(tmp_path / "ledger.db"), key=KEY)
    worker = worker_on(mailbox, ledger, Warranties(), Tickets())
    model = CountingModel(worker.processor.llm)
    return replace(worker, processor=replace(worker.processor, llm=model), has_live_model=True), model, closing(ledger)


def work(worker: MailWorker, name: str = "first") -> WorkResult:
    return asyncio.run(worker.work(InboxEntry(name, 1), worker.ledger.time()))


def test_a_mail_that_waits_for_the_mail_server_is_paid_for_once(tmp_path: Path) -> None:
    mailbox = DownUntil("first")
    worker, model, ledger = live_worker(mailbox, tmp_path)
    with ledger:
        tries = [work(worker) for _ in range(5)]
        paid = model.calls
        mailbox.is_down = False
        answered = work(worker)
    assert [each.disposition for each in tries] == ["outage"] * 5
    assert (answered.disposition, len(mailbox.sent)) == ("answered", 1)
    assert model.calls == paid > 0
    assert [each.tokens == 0 for each in tries[1:]] == [True] * 4
    assert len(worker.kept_answers) == 0


def test_an_answer_that_was_of_no_use_is_asked_for_again(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("first")
    worker, model, ledger = live_worker(mailbox, tmp_path)
    model.fails = 1
    with ledger:
        assert work(worker).disposition in ("failed", "outage")
        calls = model.calls
        mail_key = mail_identity(parse_email(mailbox.mails["first"]), KEY)
        interventions = worker.ledger.interventions
        interventions.give_back(interventions.retry(mail_key, "person:1", 60.0, lambda _: False))
        assert work(worker).disposition == "answered"
    assert model.calls > calls


def test_no_other_request_and_no_other_mail_gets_a_kept_answer() -> None:
    answers, model = KeptAnswers(), CountingModel(_Echo())
    first, second = answers.before(model, "first"), answers.before(model, "second")

    async def ask() -> list[Any]:
        return [
            await each.messages.create(model="m", messages=[text])
            for each, text in ((first, "a"), (first, "a"), (first, "b"), (second, "a"))
        ]

    assert [answer.said for answer in asyncio.run(ask())] == ["a", "a", "b", "a"]
    assert model.calls == 3


def test_what_a_template_answered_is_not_kept() -> None:
    answers, model = KeptAnswers(), CountingModel(_Echo(LLMError("down", "llm_unreachable")))

    async def ask() -> None:
        for _ in range(2):
            await answers.before(model, "first").messages.create(model="m", messages=[])

    asyncio.run(ask())
    assert model.calls == 2


def test_of_many_mails_those_that_failed_last_are_kept() -> None:
    answers, model = KeptAnswers(), CountingModel(_Echo())

    async def ask(*numbers: int) -> int:
        before = model.calls
        for number in numbers:
            await answers.before(model, str(number)).messages.create(model="m", messages=["a"])
        return model.calls - before

    assert asyncio.run(ask(*range(MAX_MAILS + 5))) == MAX_MAILS + 5
    assert len(answers) == MAX_MAILS
    assert asyncio.run(ask(*range(5, MAX_MAILS + 5))) == 0
    assert asyncio.run(ask(0)) == 1


class _Echo(ModelClient):
    def __init__(self, fallback_reason: LLMError | None = None) -> None:
        self._fallback_reason = fallback_reason

    async def create(self, **request: Any) -> Any:
        return SimpleNamespace(said="".join(request["messages"]), fallback_reason=self._fallback_reason)

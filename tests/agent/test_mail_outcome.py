"""Each mail counts once, by whoever ended it, and what its model took counts however it ends."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from agent_in_memory import AgentInMemory
from daemon_in_memory import Inbox
from mailbox_in_memory import integration_error, mail

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import LeaseLostError, Ledger
from guarantee_email_agent.llm.port import LanguageModel, ModelClient, TokenUsage
from guarantee_email_agent.utils.errors import AgentError

TOKENS, DOLLARS = 1000, 0.015


class PaidModel(ModelClient):
    """Answers as another one does, and takes 1,000 tokens of output for the first answer."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._tokens = model, TOKENS

    async def create(self, **request: Any) -> Any:
        answer = await self._model.messages.create(**request)
        usage, self._tokens = TokenUsage(output_tokens=self._tokens), 0
        return replace(answer, model="claude-sonnet-4-5", usage=usage)


@pytest.fixture
def desk(agent: AgentInMemory) -> AgentInMemory:
    """Whose model is paid for."""
    model = PaidModel(agent.worker.processor.llm)
    processor = replace(agent.worker.processor, llm=model)
    agent.worker = replace(agent.worker, processor=processor, has_live_model=True)
    return agent


def outcome_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    fields = [getattr(record, "fields", {}) for record in caplog.records]
    return [each["outcome"] for each in fields if "outcome" in each]


class TestCount:
    def test_a_mail_at_its_end_where_its_mark_has_to_wait(
        self, desk: AgentInMemory, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk.mailbox.errors["mark"] = [integration_error("mail_unavailable", outage=True)]
        with caplog.at_level(logging.INFO):
            first, second = desk.work(), desk.work()
        assert (first.disposition, first.ended, first.scenario) == ("outage", "answered", "valid-warranty")
        assert first.error.code == "mail_unavailable"
        assert (second.disposition, second.ended) == ("answered", None)
        assert "was finished before: answered" in caplog.text
        assert outcome_lines(caplog) == ["answered"]

    def test_a_daemon_counts_no_copy(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first")
        inbox.mailbox.mails["copy"] = mail("first")
        assert inbox.drain()
        assert inbox.mailbox.marks == {"first": "answered", "copy": "answered"}
        assert inbox.daemon.standing.finished == {"answered": 1}


class TestCost:
    def test_of_a_mail_whose_time_ran_out(self, desk: AgentInMemory, caplog: pytest.LogCaptureFixture) -> None:
        desk.warranties.hangs = True
        desk.configure(mail_budget_s=0.5)
        with caplog.at_level(logging.INFO):
            result = desk.work()
        assert (result.disposition, result.retry_s, result.tokens) == ("failed", 300.0, TOKENS)  # one may be slow
        assert result.cost_usd == pytest.approx(DOLLARS)
        assert list(result.step_ms)[-1] == "check_warranty"
        assert caplog.text.count("Email first took 1000 tokens in 1 calls (0.0150 USD)") == 1

    @pytest.mark.parametrize(
        ("error", "disposition"),
        [(LedgerError("full", "ledger_unavailable"), "outage"), (LeaseLostError("lost", "ledger_lease_lost"), "busy")],
    )
    def test_of_a_mail_whose_end_cannot_be_written(
        self, desk: AgentInMemory, error: AgentError, disposition: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(desk.ledger, "finish", fail)
        result = desk.work()
        assert (result.disposition, result.ended, result.tokens) == (disposition, None, TOKENS)
        assert result.mail_key

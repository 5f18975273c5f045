"""What others may know of a daemon."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from daemon_in_memory import Inbox
from mailbox_in_memory import integration_error

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.utils.retry import Backoff


class TestObservers:
    def test_see_how_many_mails_wait_and_since_when(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second")
        inbox.mailbox.received = {"first": 1_700_000_002.0, "second": 1_700_000_001.0}
        assert inbox.drain()
        assert inbox.observer.lists[0] == (2, 1_700_000_001.0)
        assert inbox.observer.lists[-1] == (0, None)

    def test_see_all_that_wait_where_more_do_than_are_listed(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, *(f"mail{number:04d}" for number in range(700)))
        inbox.warranties.errors = [integration_error("warranty_api_unavailable", outage=True)] * 100
        asyncio.run(inbox.daemon.count_inbox())
        assert not inbox.drain()
        assert inbox.observer.lists[0][0] == 700

    def test_see_what_a_mail_came_to_and_what_it_took(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first")
        assert inbox.drain()
        (result,) = inbox.observer.results
        assert (result.disposition, result.scenario, result.ticket_id) == (
            "answered",
            "valid-warranty",
            "TICKET-000001",
        )
        assert list(result.step_ms) == [
            *("parse", "instructions", "may_reply", "triage", "check_warranty", "draft", "create_ticket", "send"),
        ]
        assert sum(result.step_ms.values()) <= result.duration_ms + 1
        assert result.error is None

    def test_see_that_the_day_has_cost_what_it_may(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger, "first", "second")
        inbox.daemon.worker = replace(inbox.daemon.worker, has_live_model=True, max_cost_usd=1.0)
        ledger.costs.add(1.5)
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"handed_over": 2}
        assert inbox.observer.down[-1] == ["llm_cost_limit"]

    def test_one_that_fails_keeps_no_mail_from_being_answered(
        self, ledger: Ledger, caplog: pytest.LogCaptureFixture
    ) -> None:
        inbox = Inbox(ledger, "first")

        def fail(*_: object) -> None:
            raise KeyError

        inbox.observer.listeners.append(fail)
        assert inbox.drain()
        assert inbox.daemon.standing.finished == {"answered": 1}
        assert "ERROR" in caplog.text
        assert "fail failed: unexpected KeyError" in caplog.text

    def test_see_an_inbox_that_cannot_be_listed(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("guarantee_email_agent.agent.daemon.OUTAGE_BACKOFF", Backoff(0.05))
        inbox = Inbox(ledger, "first")
        inbox.mailbox.errors["list_unprocessed"] = [integration_error("mail_unavailable", outage=True)]
        inbox.run_until(inbox.answered())
        assert inbox.observer.down == [["mail_unavailable"], []]

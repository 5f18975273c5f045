"""What an agent writes of outages, and what the next one makes of it: over restarts, and a ledger that is down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.outage_history import OutageHistory
from guarantee_email_agent.agent.outages import INBOX, MAILS, MODEL, STARTING, CurrentOutages, Outage
from guarantee_email_agent.ledger.agents import AgentReport
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.ledger.outages import RecordedOutage

ADDRESSES = {MAILS: "eve:secret@imap.example.com:993?token=1", "orders": "orders.csv", MODEL: "api.example.com"}
HOUR_S = 3600.0


@dataclass
class Agent:
    """What one process knows of outages; `now` is a clock of its own, which tests set."""

    ledger: Ledger
    owner: str
    addresses: dict[str, str] = field(default_factory=lambda: dict(ADDRESSES))
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.told: list[Outage] = []
        self.outages = CurrentOutages(self.addresses, lambda: self.now)
        self.history = OutageHistory(
            self.ledger.outages, self.owner, b"key", self.outages, self.told.append, lambda: self.now
        )
        self.ledger.agents.beat(self.owner, AgentReport("1.0", "answer"))

    def fail(self, code: str = "mail_unavailable", mail_id: str | None = None, **details: str) -> None:
        error = integration_error(code)
        error.details |= {"step": "list", **details}
        self.outages.failed(error, mail_id)
        self.changed()

    def answer(self, *names: str) -> None:
        self.outages.answered(names or (INBOX,))
        self.changed()

    def changed(self) -> None:
        self.history.outages_changed(self.outages.current)

    def beat(self) -> None:
        asyncio.run(self.history.exchange())

    def end(self) -> None:
        self.beat()
        self.ledger.agents.leave(self.owner)

    @property
    def down_s(self) -> list[float]:
        """For how long each service has been down."""
        return [pytest.approx(self.now - outage.since, abs=60) for outage in self.outages.current]


def recorded(location: str) -> list[RecordedOutage]:
    with LedgerReader(location) as reader:
        return reader.outages()


def lasted_s(outage: RecordedOutage) -> float:
    assert outage.ended_at is not None
    return outage.ended_at - outage.began_at


def test_what_two_agents_left_down_is_back_once_and_lasted_as_long_as_the_longer_one(
    ledger: Ledger, location: str
) -> None:
    first, second = Agent(ledger, "one:1"), Agent(ledger, "two:2")
    first.fail()
    first.now += HOUR_S
    first.end()
    second.fail()
    second.end()
    third = Agent(ledger, "three:3", now=5.0)
    third.beat()
    third.answer()
    for _ in range(3):
        third.beat()
    assert [third.now - outage.since for outage in third.told] == [pytest.approx(HOUR_S, abs=60)]
    assert [outage.ended_at is None for outage in recorded(location)] == [False]


def test_an_outage_goes_on_over_a_restart_and_is_one(ledger: Ledger, location: str) -> None:
    first = Agent(ledger, "one:1")
    first.history.inbox_listed(9, None)
    first.fail()
    first.now += HOUR_S
    first.end()
    second = Agent(ledger, "two:2", now=5.0)
    second.beat()
    second.fail()
    assert second.down_s == [HOUR_S]
    second.history.inbox_listed(4, None)
    second.now += HOUR_S
    second.answer()
    second.beat()
    (outage,) = recorded(location)
    assert lasted_s(outage) == pytest.approx(2 * HOUR_S, abs=60)
    assert (outage.service, outage.waiting) == ("mail", 9)


def test_the_next_agent_tells_that_it_is_back(ledger: Ledger, location: str) -> None:
    first = Agent(ledger, "one:1")
    first.fail()
    first.now += HOUR_S
    first.end()
    second = Agent(ledger, "two:2", now=5.0)
    second.beat()
    second.answer()
    (told,) = second.told
    assert second.now - told.since == pytest.approx(HOUR_S, abs=60)
    second.beat()
    (outage,) = recorded(location)
    assert lasted_s(outage) == pytest.approx(HOUR_S, abs=60)
    third = Agent(ledger, "three:3")
    third.beat()
    third.answer()
    assert third.told == []


def test_two_starts_that_fail_and_one_that_does_not(ledger: Ledger, location: str) -> None:
    """A service that went away while no agent ran: no agent starts without it."""
    for owner in ("one:1", "two:2"):
        start = Agent(ledger, owner)
        start.beat()
        start.fail(step=STARTING, service="mail")
        start.now += HOUR_S
        start.end()
    third = Agent(ledger, "three:3")
    third.beat()
    third.answer(f"{MAILS} {STARTING}")
    third.beat()
    assert [third.now - outage.since for outage in third.told] == [pytest.approx(2 * HOUR_S, abs=60)]
    assert [lasted_s(outage) for outage in recorded(location)] == [pytest.approx(2 * HOUR_S, abs=60)]


def test_of_two_agents_one_reaches_what_the_other_does_not(ledger: Ledger, location: str) -> None:
    first, second = Agent(ledger, "one:1"), Agent(ledger, "two:2")
    second.answer()
    first.fail()
    first.now += HOUR_S
    second.now += HOUR_S
    first.beat()
    second.answer()
    second.beat()
    assert second.told == []
    assert recorded(location)[0].ended_at is None
    second.fail()
    assert second.down_s == [0.0]
    second.beat()
    first.answer()
    first.beat()
    assert recorded(location)[0].ended_at is None
    second.answer()
    second.beat()
    assert recorded(location)[0].ended_at is not None


def test_one_that_went_on_is_the_same_and_one_that_came_later_is_another(ledger: Ledger, location: str) -> None:
    agent = Agent(ledger, "one:1")
    agent.fail()
    agent.answer()
    agent.beat()
    agent.fail()  # so soon after, it was down all the time
    agent.beat()
    assert [outage.ended_at for outage in recorded(location)] == [None]
    agent.now += 60
    agent.answer()
    agent.now += HOUR_S
    agent.fail()
    agent.beat()
    assert len(recorded(location)) == 2


def test_a_ledger_that_was_down_itself_hears_of_it_afterwards(
    ledger: Ledger, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(ledger, "one:1")
    agent.fail("ledger_locked")
    with monkeypatch.context() as patched:

        def locked(*_: object) -> None:
            raise LedgerError("locked", "ledger_locked", {"outage": True})

        patched.setattr(type(ledger.outages), "save", locked)
        with pytest.raises(LedgerError):
            agent.beat()
        agent.now += HOUR_S
        agent.answer("ledger list")
    agent.beat()
    (outage,) = recorded(location)
    assert (outage.service, lasted_s(outage)) == ("ledger", pytest.approx(HOUR_S, abs=60))


def test_a_service_that_the_configuration_names_no_more_is_left_alone(ledger: Ledger, location: str) -> None:
    first = Agent(ledger, "one:1")
    first.fail("orders_timeout", "first", step="look_up")
    first.end()
    without = {name: address for name, address in ADDRESSES.items() if name != "orders"}
    second = Agent(ledger, "two:2", addresses=without)
    second.beat()
    second.answer("orders")
    second.beat()
    assert (second.told, recorded(location)[0].ended_at) == ([], None)


def test_the_cost_limit_of_yesterday_is_over(ledger: Ledger, location: str) -> None:
    first = Agent(ledger, "one:1")
    first.fail(OVER_COST_LIMIT, step="triage")
    first.now += 86_000.0 + 500.0
    first.end()
    second = Agent(ledger, "two:2")
    second.beat()
    second.fail(OVER_COST_LIMIT, step="triage")
    assert second.down_s == [0.0]
    second.beat()
    assert [outage.ended_at is None for outage in recorded(location)] == [False, True]


def test_nothing_of_an_address_stands_in_the_ledger(ledger: Ledger, location: str) -> None:
    agent = Agent(ledger, "one:1")
    agent.fail()
    agent.beat()
    stored = b"".join(file.read_bytes() for file in Path(location).parent.glob("ledger.db*"))
    assert b"mail_unavailable" in stored
    assert b"example.com" not in stored
    assert b"secret" not in stored

"""What Prometheus reads, as prometheus_client's own parser understands it."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from mailbox_in_memory import integration_error
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from guarantee_email_agent.agent.mail_outcome import Disposition, WorkResult
from guarantee_email_agent.agent.metrics import MAX_SCENARIOS, Metrics
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.config.settings import Config, Llm
from guarantee_email_agent.services.ports import InboxEntry, Outcome
from guarantee_email_agent.utils.errors import IntegrationError

NOW = 1_800_000_000.0


class Observed:
    """Metrics, and what they tell."""

    def __init__(self, config: Config) -> None:
        self.standing = Standing(templates=config.llm.when_down == "template")
        self.metrics = Metrics(config, self.standing)

    def work(self, *results: WorkResult) -> None:
        for number, result in enumerate(results):
            self.standing.mail_worked(InboxEntry(f"1768729425.M{number}.anna", 1000, NOW), result)

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """Values by those of the labels."""
        return {
            tuple(sample.labels.values()): sample.value
            for sample in self.samples()
            if sample.name == f"guarantee_email_agent_{name}"
        }

    def value(self, name: str) -> float | None:
        return self.series(name).get(())

    def samples(self) -> Iterator[object]:
        for family in text_string_to_metric_families(generate_latest(self.metrics.registry).decode()):
            yield from family.samples


def ended(outcome: Outcome, **rest: Any) -> WorkResult:
    """Of a mail that this agent ended."""
    return WorkResult(outcome, ended=outcome, **rest)


@pytest.fixture
def observed() -> Observed:
    return Observed(Config())


class TestMails:
    def test_replies_are_counted_by_scenario(self, observed: Observed) -> None:
        answered = ended("answered", scenario="valid-warranty")
        observed.work(answered, answered, ended("drafted", scenario="missing-info"))
        mails = observed.series("mails_total")
        assert mails["answered", "valid-warranty"] == 2
        assert mails["drafted", "missing-info"] == 1

    def test_the_first_mail_for_a_person_is_an_increase(self, observed: Observed) -> None:
        """A series that begins with 1 shows no increase, so that no alert would be raised."""
        assert observed.series("mails_total")["quarantined", ""] == 0
        observed.work(ended("quarantined", scenario="valid-warranty"))
        assert observed.series("mails_total")["quarantined", ""] == 1

    @pytest.mark.parametrize("why", ["failed", "outage", "busy", "waiting", "gone", "answered"])  # by another
    def test_a_try_without_an_outcome_is_no_mail(self, observed: Observed, why: Disposition) -> None:
        before = sum(observed.series("mails_total").values())
        observed.work(WorkResult(why))
        assert sum(observed.series("mails_total").values()) == before
        assert sum(observed.series("unfinished_tries_total").values()) == (why != "answered")
        assert observed.value("mail_duration_seconds_count") == 0

    def test_a_mail_counts_when_it_ends_although_its_mark_cannot_be_set(self, observed: Observed) -> None:
        observed.work(WorkResult("outage", ended="answered", scenario="valid-warranty"))
        assert observed.series("mails_total")["answered", "valid-warranty"] == 1
        assert observed.series("unfinished_tries_total")["outage",] == 1

    def test_names_of_scenarios_without_end_take_no_memory_without_end(self, observed: Observed) -> None:
        observed.work(*(ended("answered", scenario=f"scenario-{number}") for number in range(2 * MAX_SCENARIOS)))
        mails = observed.series("mails_total")
        assert len(mails) < MAX_SCENARIOS + 10
        assert mails["answered", "other"] == MAX_SCENARIOS

    def test_the_time_of_a_mail_and_of_its_steps(self, observed: Observed) -> None:
        observed.work(ended("answered", duration_ms=1500, step_ms={"triage": 1200.0, "send": 90.0}))
        assert observed.value("mail_duration_seconds_sum") == 1.5
        assert observed.series("step_duration_seconds_sum") == {("triage",): 1.2, ("send",): 0.09}

    def test_nothing_tells_of_single_mails(self, observed: Observed) -> None:
        error = IntegrationError("anna@example.com wrote", "mail_failed")
        observed.work(
            WorkResult("failed", reason="anna", mail_key="a1b2c3d4", ticket_id="TICKET-000042", error=error),
            ended("handed_over", reason="injury", mail_key="a1b2c3d4"),
        )
        told = generate_latest(observed.metrics.registry).decode()
        assert [word for word in ("anna", "a1b2c3d4", "TICKET", "injury", "1768729425") if word in told] == []


class TestModel:
    def test_a_price_that_nobody_knows_is_no_zero(self, observed: Observed) -> None:
        observed.work(ended("answered", tokens=900, cost_usd=None))
        assert observed.value("llm_unpriced_mails_total") == 1
        assert observed.value("llm_cost_dollars_total") == 0

    def test_the_limit_where_there_is_one(self, observed: Observed) -> None:
        assert observed.value("llm_max_cost_per_day_dollars") is None
        observed = Observed(Config(llm=Llm(max_cost_per_day=5.0)))
        assert observed.value("llm_max_cost_per_day_dollars") == 5


class TestInbox:
    def test_how_many_wait_and_since_when(self, observed: Observed) -> None:
        observed.standing.inbox_listed(3, NOW - 600)
        assert observed.value("inbox_waiting_mails") == 3
        assert observed.value("inbox_oldest_mail_timestamp_seconds") == NOW - 600
        assert observed.value("inbox_listed_timestamp_seconds") == pytest.approx(time.time(), abs=60)


class TestServices:
    def test_one_that_is_down_and_comes_back(self, observed: Observed) -> None:
        services = {("ledger",): 0, ("llm",): 0, ("mail",): 0, ("ticketing",): 0, ("warranty_api",): 0}
        assert observed.series("service_down") == services
        observed.standing.failed(integration_error("mail_auth"))
        assert observed.series("service_down") == services | {("mail",): 1}
        since = observed.series("service_down_since_timestamp_seconds")
        assert since == {("mail",): pytest.approx(time.time(), abs=60)}
        observed.standing.answered(("mail",))
        assert observed.series("service_down") == services
        assert observed.series("service_down_since_timestamp_seconds") == {}


def test_readiness_is_a_figure_too(observed: Observed) -> None:
    assert (observed.value("alive"), observed.value("ready")) == (1, 0)
    observed.standing.inbox_listed(0, None)
    assert observed.value("ready") == 1

"""The figures of a running agent, as Prometheus reads them.

Labels are closed sets: outcomes, steps, the services of the configuration, the scenarios of the instruction files. No
id, address or word of a mail is ever one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.standing import LEDGER, MAILS, MODEL, TICKETING, Standing, wall_time
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services.ports import OUTCOMES, InboxEntry
from guarantee_email_agent.utils.distribution import __version__

PREFIX: Final = "guarantee_email_agent"
MAX_SCENARIOS: Final = 100
"""Names of scenarios that are told apart; instruction files may be edited, and renamed, while the agent runs."""

REPLIES: Final = ("answered", "drafted", "observed")
"""The outcomes that are told apart by scenario. The others have one series each, so that the first mail shows as an
increase: a series that begins with 1 shows none.
"""

OTHER: Final = "other"
_MAIL_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_STEP_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics(Collector):
    """Counts what happens, and reads how the agent stands when somebody asks. registry: what `/metrics` tells.

    A figure that nobody knows yet is left out.
    """

    def __init__(self, config: Config, standing: Standing) -> None:
        # When each counter began: a second series for every one, which Prometheus ignores.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._config, self._standing = config, standing
        self._known = {LEDGER, MAILS, MODEL, TICKETING, WARRANTY.name, *config.look_ups}
        self._scenarios: set[str] = set()
        self._mails = Counter(
            "mails", "Mails by what became of them.", ("outcome", "scenario"), PREFIX, registry=registry
        )
        self._unfinished = Counter(
            "unfinished_tries", "Tries of a mail that came to no outcome.", ("reason",), PREFIX, registry=registry
        )
        self._duration = Histogram(
            "mail_duration_seconds",
            "Time from taking a mail up to its mark, of mails that came to an outcome.",
            namespace=PREFIX,
            registry=registry,
            buckets=_MAIL_BUCKETS,
        )
        self._steps = Histogram(
            "step_duration_seconds",
            "Time that each step of a mail took, retries included.",
            ("step",),
            PREFIX,
            registry=registry,
            buckets=_STEP_BUCKETS,
        )
        self._tokens = Counter("llm_tokens", "Tokens of the language model.", namespace=PREFIX, registry=registry)
        self._cost = Counter(
            "llm_cost_dollars", "US dollars for the language model.", namespace=PREFIX, registry=registry
        )
        self._unpriced = Counter(
            "llm_unpriced_mails",
            "Mails for which a model was asked without its cost being known.",
            namespace=PREFIX,
            registry=registry,
        )
        for outcome in sorted(OUTCOMES):  # so that the first quarantined mail is an increase
            self._mails.labels(outcome, "")
        for reason in ("failed", "outage"):
            self._unfinished.labels(reason)
        registry.register(self)
        standing.listeners.append(self.mail_worked)
        ProcessCollector(registry=registry)

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:  # noqa: ARG002 - a MailListener
        if (outcome := result.ended) is not None:
            scenario = self._scenario(result.scenario) if outcome in REPLIES else ""
            self._mails.labels(outcome, scenario).inc()
            self._duration.observe(result.duration_ms / 1000)
        if result.disposition not in OUTCOMES:
            self._unfinished.labels(result.disposition).inc()
        for step, milliseconds in result.step_ms.items():
            self._steps.labels(step).observe(milliseconds / 1000)
        if result.tokens or result.cost_usd is None:
            self._tokens.inc(result.tokens)
            if result.cost_usd is None:
                self._unpriced.inc()
            else:
                self._cost.inc(result.cost_usd)

    def _scenario(self, name: str) -> str:
        if name not in self._scenarios:
            if len(self._scenarios) >= MAX_SCENARIOS:
                return OTHER
            self._scenarios.add(name)
        return name

    def collect(self) -> Iterator[Metric]:
        config = self._config
        info = GaugeMetricFamily(f"{PREFIX}_info", "Always 1.", labels=("version", "mode", "llm"))
        info.add_metric((__version__, config.agent.mode, config.llm.provider), 1)
        yield info
        yield _gauge("alive", "Whether the main loop gets round, as /healthz says.", self._standing.stuck is None)
        yield _gauge("ready", "Whether mail can be answered, as /readyz says.", not self._standing.problems)
        yield _gauge("mails_in_progress", "Mails that are worked on.", self._standing.in_progress)
        yield _gauge("concurrency", "Mails that may be worked on at a time.", config.agent.concurrency)
        if (limit := config.llm.max_cost_per_day) is not None:
            yield _gauge("llm_max_cost_per_day_dollars", "The limit of all agents on one ledger.", limit)
        yield from self._inbox()
        yield from self._services()

    def _inbox(self) -> Iterator[Metric]:
        standing = self._standing
        if standing.waiting is not None and standing.listed_at is not None:
            yield _gauge("inbox_waiting_mails", "Mails without an outcome when the inbox was listed.", standing.waiting)
            at, listed_at = "inbox_listed_timestamp_seconds", round(wall_time(standing.listed_at), 1)
            yield _gauge(at, "When the inbox was last listed, in seconds since 1970.", listed_at)
        if standing.oldest_received is not None:
            at = "inbox_oldest_mail_timestamp_seconds"
            yield _gauge(at, "When the oldest mail that waits came; nothing where none does.", standing.oldest_received)

    def _services(self) -> Iterator[Metric]:
        since_of = {each.service: each.since for each in self._standing.outages}
        self._known |= since_of.keys()
        down = GaugeMetricFamily(f"{PREFIX}_service_down", "Whether mail waits for a service.", labels=("service",))
        for service in sorted(self._known):
            down.add_metric((service,), service in since_of)
        yield down
        since = GaugeMetricFamily(
            f"{PREFIX}_service_down_since_timestamp_seconds",
            "Since when; nothing of one that is up.",
            labels=("service",),
        )
        for service, moment in sorted(since_of.items()):
            since.add_metric((service,), round(wall_time(moment), 1))
        yield since


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}_{name}", meaning, value=value)

"""Outages as people read them in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby
from math import inf
from typing import Final, TypeAlias

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.observer import DaemonObserver
from guarantee_email_agent.agent.outages import INBOX, MODEL, Outage, wall_time

logger = logging.getLogger(__name__)

ERROR_AFTER_S: Final = 300.0
"""Seconds that a service may be down before somebody has to know."""

REMINDER_S: Final = 3600.0

_Service: TypeAlias = tuple[str, str]
"""Its name and its address: inbox and sending may be two."""


class OutageLog(DaemonObserver):
    """Tells of outages. now: as `time.monotonic`.

    templates: whether the instructions' own templates answer while the model is down. is_proved_back: whether a
    service that is no longer down has answered.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.templates: Callable[[], bool] = bool
        self.is_proved_back: Callable[[Outage], bool] = lambda _: True
        self._now = now
        self._waiting: int | None = None
        self._down: dict[_Service, Outage] = {}
        self._told_at: dict[_Service, float] = {}

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:  # noqa: ARG002 - a DaemonObserver
        self._waiting = waiting

    def outages_changed(self, outages: Sequence[Outage]) -> None:
        before, self._down = self._down, _by_service(outages)
        for service, outage in self._down.items():
            if self._is_due(service, outage):
                self._tell(logging.ERROR, outage, "is down")
                self._told_at[service] = self._now()
        for service, outage in before.items():
            if service not in self._down:
                is_back = self.is_proved_back(outage)
                what = "is back again" if is_back else "was down, and nothing shows that it still is"
                lasted = _span(self._now() - outage.since)
                logger.info("%s %s, after %s", _name(outage), what, lasted, extra=_fields(outage))

    def stopped(self, *, once: bool) -> None:
        """The agent ends. once: it was to answer what is there, so that an outage nobody was told of is an error."""
        for service, outage in self._down.items():
            is_news = once and outage.since > self._told_at.get(service, -inf)
            is_error = is_news and not (outage.service == MODEL and self.templates())
            self._tell(logging.ERROR if is_error else logging.WARNING, outage, "is still down as the agent stops")

    def _is_due(self, service: _Service, outage: Outage) -> bool:
        told_at = self._told_at.get(service, -inf)
        if outage.since <= told_at:  # the same, or another part of the service that failed meanwhile
            return self._now() - told_at >= REMINDER_S
        return outage.code == OVER_COST_LIMIT or self._now() - outage.since >= ERROR_AFTER_S

    def _tell(self, level: int, outage: Outage, state: str) -> None:
        since = datetime.fromtimestamp(wall_time(outage.since)).astimezone()
        tool = f", {outage.tool}" if outage.tool else ""
        logger.log(
            level,
            "%s %s since %s (%s): it %s (%s%s). %s",
            _name(outage),
            state,
            since.strftime("%Y-%m-%d %H:%M:%S %z"),
            _span(self._now() - outage.since),
            outage.reason,
            outage.code,
            tool,
            self._consequence(outage),
            extra=_fields(outage) | {"fields": _fields(outage)["fields"] | {"waiting": self._waiting}},
        )

    def _consequence(self, outage: Outage) -> str:
        if outage.code == OVER_COST_LIMIT:
            return "Mails are handed over until 0:00 UTC, or until llm.max_cost_per_day is raised"
        if outage.service == MODEL and self.templates():
            return "The instructions' own templates answer meanwhile"
        if self._waiting is None:
            return "How many mails wait is not known"
        if outage.name == INBOX:
            waited = (
                f"{self._waiting} {'mail' if self._waiting == 1 else 'mails'} waited when the inbox was last listed"
            )
            return f"{waited}; what came since is not known"
        return f"{self._waiting} {'mail waits' if self._waiting == 1 else 'mails wait'}"


def _by_service(outages: Sequence[Outage]) -> dict[_Service, Outage]:
    """Of the parts of a service at one address, that which is down longest."""
    ordered = sorted(outages, key=lambda outage: (outage.service, outage.address, outage.since))
    groups = groupby(ordered, key=lambda outage: (outage.service, outage.address))
    return {service: next(parts) for service, parts in groups}


def _name(outage: Outage) -> str:
    return f"{outage.service} ({outage.address})" if outage.address else outage.service


def _span(seconds: float) -> str:
    minutes = max(0.0, seconds) / 60
    if minutes < 1:
        return f"{max(0.0, seconds):.0f} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h"


def _fields(outage: Outage) -> dict[str, dict[str, object]]:
    fields = {"service": outage.service, "address": outage.address, "tool": outage.tool, "code": outage.code}
    return {"fields": {**fields, "since": round(wall_time(outage.since), 1)}}

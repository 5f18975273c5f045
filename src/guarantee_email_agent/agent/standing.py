"""How an agent stands: its inbox, what mails came to, which services are up or down, and whether it lives at all."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from typing import Final, TypeAlias

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.services.look_up_answer import WITHHELD
from guarantee_email_agent.services.ports import OUTCOMES, InboxEntry, Outcome
from guarantee_email_agent.utils.errors import AgentError, ServiceError
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import duration

logger = logging.getLogger(__name__)

MAILS: Final = "mail"
INBOX: Final = "mail list"
"""A part of the mail service: the list of the inbox. It may work where single mails cannot be read or marked."""

SENDING: Final = "mail send"
LEDGER: Final = "ledger"
LEDGER_LIST: Final = "ledger list"
MODEL: Final = "llm"
TICKETING: Final = "ticketing"
_LISTS: Final = {MAILS: INBOX, LEDGER: LEDGER_LIST}

SAME_OUTAGE_S: Final = 600.0
"""A service that fails again so soon after it answered has been down all the time: it flaps. One that has not failed
for so long, while what waits is tried every minute, is asked by nobody any more: whether it is down, nobody knows.
"""

ERROR_AFTER_S: Final = 300.0
"""Seconds that a service may be down before somebody has to know."""

REMINDER_S: Final = 3600.0
DAY_S: Final = 86_400.0

MailListener: TypeAlias = Callable[[InboxEntry, WorkResult], None]
"""Told of each mail that was worked on; it may come again. It must not wait."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A service that is down.

    service: as its error codes begin, such as `mail`, `llm` or the name of a look-up. since: when it was first noticed,
    in seconds of `time.monotonic`, whose differences no change of the clock touches; `wall_time` has it as a moment.
    """

    service: str
    code: str
    since: float


def wall_time(moment: float) -> float:
    """Seconds since 1970, as the clock is set now, of a moment in seconds of `time.monotonic`."""
    return time.time() - (time.monotonic() - moment)


@dataclass(slots=True)
class _Service:
    """failing: its parts that fail, and when each did so last. ended_at: None while it is down."""

    outage: Outage
    failing: dict[str, float] = field(default_factory=dict)
    ended_at: float | None = None
    answered: bool = False
    told_at: float = -inf


class Standing:
    """What the daemon writes and everybody reads.

    look_ups: by name. templates: whether the instructions' own templates answer while the model is down. now: as
    `time.monotonic`. A service that one mail found down is up again once it has done its part for any mail; where it
    has not failed for SAME_OUTAGE_S nobody knows, and it counts as up. stuck_s: seconds that the main loop may be
    overdue. silent_s: seconds without a sign of the inbox. is_stopping: whether no mail is started any more.

    waiting: mails without an outcome when the inbox was last listed, those in progress among them; None before.
    oldest_received: when the one that waits longest came, in seconds since 1970; None where none waits, or nobody
    knows. listed_at: by `now`. seen_at: when the list or a mark last showed the mailbox. in_progress: mails
    that are worked on. finished: mails by how this process ended them.
    """

    def __init__(
        self,
        look_ups: Iterable[str] = (),
        *,
        templates: bool = False,
        now: Callable[[], float] = time.monotonic,
        stuck_s: float = inf,
        silent_s: float = inf,
        is_stopping: Callable[[], bool] = bool,
    ) -> None:
        self.waiting: int | None = None
        self.oldest_received: float | None = None
        self.listed_at: float | None = None
        self.seen_at: float | None = None
        self.in_progress = 0
        self.finished: Counter[Outcome] = Counter()
        self.listeners: list[MailListener] = []
        self._names = sorted({*look_ups, WARRANTY.name}, key=len, reverse=True)
        self._templates, self._now = templates, now
        self._stuck_s, self._silent_s, self._is_stopping = stuck_s, silent_s, is_stopping
        self._due_at = now()
        self._services: dict[str, _Service] = {}

    def beat(self, wait_s: float = 0.0) -> None:
        """The main loop gets round. wait_s: seconds until the next beat, where it knows that nothing happens before."""
        self._due_at = self._now() + wait_s

    @property
    def stuck(self) -> str | None:
        """Why the agent should be started anew; None while its main loop gets round."""
        overdue_s = self._now() - self._due_at
        return None if overdue_s <= self._stuck_s else f"the main loop has not got round for {overdue_s:.0f} s"

    @property
    def silence_s(self) -> float | None:
        """Seconds since the inbox was last listed, where that is too long ago."""
        silent_s = 0.0 if self.seen_at is None else self._now() - self.seen_at
        return silent_s if silent_s > self._silent_s else None

    @property
    def problems(self) -> list[str]:
        """What keeps mail from being answered, without a word of one; empty where nothing does."""
        problems = [self.stuck] if self.stuck else []
        if self._is_stopping():
            problems.append("the agent is being stopped")
        if self.seen_at is None:
            problems.append("the inbox has not been listed yet")
        elif (silent_s := self.silence_s) is not None:
            problems.append(f"the inbox was last listed {silent_s:.0f} s ago")
        needed = (each.service for each in self.outages if each.service != MODEL or not self._templates)
        return problems + [f"{service} is down" for service in needed]

    @property
    def outages(self) -> tuple[Outage, ...]:
        """The longest first."""
        return tuple(sorted((each.outage for each in self._down), key=lambda outage: outage.since))

    @property
    def _down(self) -> list[_Service]:  # at once, for another thread that reads it
        return [each for each in tuple(self._services.values()) if each.ended_at is None]

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:
        self.waiting, self.oldest_received = waiting, oldest_received
        self.listed_at = self.seen_at = self._now()

    def inbox_answered(self, now: float) -> None:
        """now: seconds since 1970 on the ledger's clock."""
        self.answered((INBOX, LEDGER_LIST))
        for service in self._down:
            if service.outage.code != OVER_COST_LIMIT:
                oldest = self._now() - SAME_OUTAGE_S
                self._end(service, [part for part, failed_at in service.failing.items() if failed_at <= oldest])
            elif (now - (self._now() - service.outage.since)) // DAY_S < now // DAY_S:  # it may cost as much again
                self._end(service, list(service.failing))
                del self._services[MODEL]  # one that begins soon after midnight is another one

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:
        for listener in self.listeners:
            try:
                listener(entry, result)
            except Exception as failure:
                # Whoever looks on must not keep a mail from being answered.
                logger.error("%s failed: unexpected %s", listener.__qualname__, type(failure).__name__)
                logger.debug("Unexpected failure", exc_info=True)
        if result.ended is not None:
            self.finished[result.ended] += 1
        self.answered(result.answered_by)
        if result.disposition in OUTCOMES:
            self.seen_at = self._now()
            self.answered((MAILS, LEDGER))
        if result.error is not None and result.outage:
            self.failed(result.error)

    def failed(self, error: AgentError, *, listing: bool = False) -> None:
        """error: an outage. listing: the inbox, or what the ledger says of it."""
        code = (isinstance(error, ServiceError) and error.cause) or error.code  # what opened a circuit says more
        name = next((each for each in self._names if code.startswith(f"{each}_")), code.partition("_")[0])
        part, now, service = self._part_of(name, error, listing), self._now(), self._services.get(name)
        if service is None or (service.ended_at is not None and now - service.ended_at > SAME_OUTAGE_S):
            service = self._services[name] = _Service(Outage(name, code, now))
        elif not error.code.endswith("_circuit_open"):
            service.outage = replace(service.outage, code=code)
        service.ended_at, service.answered = None, False
        service.failing[part] = now
        self._tell_of_those_due()

    def answered(self, parts: Iterable[str]) -> None:
        """These services, or parts of one, have just done their part."""
        for part in parts:
            service = self._services.get(part.partition(" ")[0])
            if service is not None and part in service.failing:
                service.answered = True
                self._end(service, [part])

    def _end(self, service: _Service, parts: Iterable[str]) -> None:
        for part in parts:
            del service.failing[part]
        if service.failing or service.ended_at is not None:
            return
        service.ended_at, outage = self._now(), service.outage
        what = "is back again" if service.answered else "was down, and nothing shows that it still is"
        lasted = duration(service.ended_at - outage.since)
        logger.info("%s %s, after %s", outage.service, what, lasted, extra={"fields": _fields(outage)})

    def _tell_of_those_due(self) -> None:
        for service in self._down:
            outage, now = service.outage, self._now()
            if outage.since <= service.told_at:
                is_due = now - service.told_at >= REMINDER_S
            else:
                is_due = outage.code == OVER_COST_LIMIT or now - outage.since >= ERROR_AFTER_S
            if is_due:
                self._tell(service)
                service.told_at = now

    def _tell(self, service: _Service) -> None:
        outage = service.outage
        since = datetime.fromtimestamp(wall_time(outage.since)).astimezone()
        logger.error(
            "%s is down since %s (%s): %s. %s",
            outage.service,
            since.strftime("%Y-%m-%d %H:%M:%S %z"),
            duration(self._now() - outage.since),
            outage.code,
            self._consequence(service),
            extra={"fields": _fields(outage) | {"waiting": self.waiting}},
        )

    def _consequence(self, service: _Service) -> str:
        if service.outage.code == OVER_COST_LIMIT:
            return "Mails are handed over until 0:00 UTC, or until llm.max_cost_per_day is raised"
        if service.outage.service == MODEL and self._templates:
            return "The instructions' own templates answer meanwhile"
        if self.waiting is None:
            return "How many mails wait is not known"
        if INBOX in service.failing:
            waited = pluralize(self.waiting, "mail")
            return f"{waited} waited when the inbox was last listed; what came since is not known"
        return f"{self.waiting} {'mail waits' if self.waiting == 1 else 'mails wait'}"

    @staticmethod
    def _part_of(name: str, error: AgentError, listing: bool) -> str:
        if listing:
            return _LISTS.get(name, name)
        return SENDING if name == MAILS and getattr(error, "sending", False) else name


def answered_by(result: ProcessingResult, live_model: MeteredModel | None) -> frozenset[str]:
    """The services that did their part for a mail, whatever came of it. live_model: None where none is asked."""
    is_told = result.status is not None and result.status != WITHHELD.status
    services = {
        MODEL: live_model is not None and live_model.calls > live_model.offline_calls == 0,
        str(result.look_up): is_told,
        TICKETING: result.ticket_created,
        SENDING: result.email_sent,
    }
    return frozenset(name for name, answered in services.items() if answered)


def _fields(outage: Outage) -> dict[str, object]:
    return {"service": outage.service, "code": outage.code, "since": round(wall_time(outage.since), 1)}

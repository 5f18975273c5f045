"""Which services are up or down, as far as the mails that need them have shown, and what the log says of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.services.look_up_answer import WITHHELD
from guarantee_email_agent.services.ports import OUTCOMES
from guarantee_email_agent.utils.errors import AgentError, ServiceError
from guarantee_email_agent.utils.terminal import pluralize

logger = logging.getLogger(__name__)

INBOX: Final = "mail list"
"""A part of the mail service: the list of the inbox."""

SENDING: Final = "mail send"
MAILS: Final = "mail"
"""The rest of it: single mails are read and marked."""

LEDGER_LIST: Final = "ledger list"
LEDGER: Final = "ledger"
MODEL: Final = "llm"
WARRANTY_SYSTEM: Final = "warranty_api"
TICKETING: Final = "ticketing"

SAME_OUTAGE_S: Final = 600.0
"""A service that fails again so soon after it answered has been down all the time: it flaps."""

ERROR_AFTER_S: Final = 300.0
"""Seconds that a service may be down before somebody has to know."""

REMINDER_S: Final = 3600.0
DAY_S: Final = 86_400.0

_LISTS: Final = {MAILS: INBOX, LEDGER: LEDGER_LIST}
_REASONS: Final[Mapping[str, str]] = {
    "auth": "refuses our credentials",
    "bad_answer": "gives answers that cannot be read",
    "cannot_open": "cannot be opened",
    "circuit_open": "failed too often and is left alone for a minute",
    "cost_limit": "has cost what it may cost in a day",
    "authentication": "refuses our credentials",
    "database_missing": "does not exist",
    "disk_full": "has no room left",
    "folder_missing": "lacks a folder",
    "forced_tool_refused": "refuses to be made to use a tool",
    "locked": "is locked by another program",
    "malformed": "gives answers that cannot be read",
    "model_not_found": "does not know the model",
    "no_credit": "has no credit left",
    "overloaded": "is overloaded",
    "permission": "denies us what we need",
    "rate_limited": "is asked too often",
    "read_only": "is read-only",
    "temperature_refused": "refuses a temperature",
    "timeout": "gives no answer in time",
    "tls": "has no certificate that we trust",
    "tools_changed": "has other tools than its mapping says, or lacks one that we need",
    "tools_missing": "lacks a tool that we need",
    "unavailable": "cannot be reached, or refuses to work",
    "unmapped": "is to be passed what its mapping has no place for",
    "unreachable": "cannot be reached",
    "unsupported": "cannot do what we need",
}
"""By the end of a code. A service's own words may quote a customer, or name a user."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A service that is down.

    service: as its error codes begin, such as `mail`, `llm`, `ledger` or the name of a look-up. address: where it is,
    without user and password; empty where it has none. tool: the MCP tool that failed; empty where it is none.
    since: when it was first noticed, in seconds of `time.monotonic`, whose differences no change of the clock touches;
    `wall_time` has it as a moment.
    """

    service: str
    address: str
    tool: str
    code: str
    since: float

    @property
    def reason(self) -> str:
        """Of `code`, as a verb phrase."""
        return _REASONS.get(self.code.removeprefix(f"{self.service}_"), "fails")

    @property
    def name(self) -> str:
        return f"{self.service} ({self.address})" if self.address else self.service

    @property
    def fields(self) -> dict[str, object]:
        """Of a line of the log."""
        known = {"service": self.service, "address": self.address, "tool": self.tool, "code": self.code}
        return {**known, "since": round(wall_time(self.since), 1)}


def wall_time(moment: float) -> float:
    """Seconds since 1970, as the clock is set now, of a moment in seconds of `time.monotonic`."""
    return time.time() - (time.monotonic() - moment)


@dataclass(slots=True)
class _Service:
    """failing: its parts that fail, and whether mails wait for each. ended_at: None while it is down."""

    outage: Outage
    failing: dict[str, bool] = field(default_factory=dict)
    ended_at: float | None = None
    answered: bool = False
    told_at: float = -inf


class CurrentOutages:
    """Services by name: up or down, and since when, by the errors of mails and by what answered. The log tells of them.

    addresses: of services and of their parts (`INBOX` …). templates: whether the instructions' own templates answer
    while the model is down. now: as `time.monotonic`. A service that one mail found down is up again once it has done
    its part for any mail, or once all was done for that mail; where no mail waits for it any more, nobody knows, and it
    counts as up. waiting: mails in the inbox; None before it was listed.
    """

    def __init__(
        self,
        addresses: Mapping[str, str] = MappingProxyType({}),
        *,
        templates: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.waiting: int | None = None
        self._addresses, self._templates, self._now = addresses, templates, now
        self._services: dict[tuple[str, str], _Service] = {}

    @property
    def current(self) -> tuple[Outage, ...]:
        """The longest first."""
        return tuple(sorted((each.outage for each in self._down), key=lambda outage: outage.since))

    @property
    def _down(self) -> list[_Service]:
        return [each for each in self._services.values() if each.ended_at is None]

    def failed(self, error: AgentError, *, listing: bool = False, waits: bool = False) -> str:
        """error: an outage; its `details` may name a `tool`. The part that failed, by name.

        listing: the inbox, or what the ledger says of it. waits: a mail does; else all is done without it that can be.
        """
        part, now = self._part_of(error, listing), self._now()
        place, tool = self._place(part), str(error.details.get("tool", ""))
        code = (isinstance(error, ServiceError) and error.cause) or error.code  # what opened a circuit says more
        service = self._services.get(place)
        if service is None or (service.ended_at is not None and now - service.ended_at > SAME_OUTAGE_S):
            service = self._services[place] = _Service(Outage(*place, tool, code, now))
        elif not error.code.endswith("_circuit_open"):
            service.outage = replace(service.outage, tool=tool or service.outage.tool, code=code)
        service.ended_at, service.answered = None, False
        service.failing[part] = waits
        self._tell_of_those_due()
        return part

    def inbox_answered(self, waited_for: Collection[str], now: float) -> None:
        """waited_for: by mails. now: seconds since 1970 on the ledger's clock."""
        self.answered((INBOX, LEDGER_LIST))
        self.keep(waited_for)
        model = self._services.get(self._place(MODEL))
        if model is None or model.outage.code != OVER_COST_LIMIT:
            return
        if (now - (self._now() - model.outage.since)) // DAY_S < now // DAY_S:  # a new day may cost as much again
            self._end(model, list(model.failing))
            del self._services[self._place(MODEL)]  # one that begins soon after midnight is another one

    def mail_worked(self, result: WorkResult, waited_for: frozenset[str]) -> frozenset[str]:
        """Learn from what a mail came to; what it waits for now. waited_for: what it waited for before."""
        self.answered(result.answered_by)
        error, waits = result.error, result.disposition in ("outage", "waiting")
        if result.disposition in OUTCOMES:
            if result.succeeded:  # so whatever it waited for is back
                is_model = error is not None and error.code.startswith(f"{MODEL}_")
                self.answered(waited_for - {MODEL} if is_model else waited_for)
            self.answered((MAILS, LEDGER))
        if result.disposition in OUTCOMES or result.disposition == "failed":  # by itself
            waited_for = frozenset()
        if error is not None and result.outage:
            part = self.failed(error, waits=waits)
            return waited_for | {part} if waits else waited_for
        return waited_for

    def answered(self, parts: Iterable[str]) -> None:
        """These services, or parts of one, have just done their part."""
        for part in parts:
            service = self._services.get(self._place(part))
            if service is not None and part in service.failing:
                service.answered = True
                self._end(service, [part])

    def keep(self, waited_for: Collection[str]) -> None:
        """Where no mail waits any more that found a service down, the outage is over as far as is known."""
        for service in self._down:
            self._end(service, [part for part, waits in service.failing.items() if waits and part not in waited_for])

    def stopped(self, *, once: bool) -> None:
        """The agent ends. once: it was to answer what is there, so that an outage nobody was told of is an error."""
        for service in self._down:
            is_news = once and service.outage.since > service.told_at
            is_error = is_news and not (service.outage.service == MODEL and self._templates)
            self._tell(logging.ERROR if is_error else logging.WARNING, service, "is still down as the agent stops")

    def _end(self, service: _Service, parts: Iterable[str]) -> None:
        for part in parts:
            del service.failing[part]
        if service.failing or service.ended_at is not None:
            return
        service.ended_at, outage = self._now(), service.outage
        what = "is back again" if service.answered else "was down, and nothing shows that it still is"
        lasted = _span(service.ended_at - outage.since)
        logger.info("%s %s, after %s", outage.name, what, lasted, extra={"fields": outage.fields})

    def _tell_of_those_due(self) -> None:
        for service in self._down:
            outage, now = service.outage, self._now()
            if outage.since <= service.told_at:
                is_due = now - service.told_at >= REMINDER_S
            else:
                is_due = outage.code == OVER_COST_LIMIT or now - outage.since >= ERROR_AFTER_S
            if is_due:
                self._tell(logging.ERROR, service, "is down")
                service.told_at = now

    def _tell(self, level: int, service: _Service, state: str) -> None:
        outage = service.outage
        since = datetime.fromtimestamp(wall_time(outage.since)).astimezone()
        tool = f", {outage.tool}" if outage.tool else ""
        logger.log(
            level,
            "%s %s since %s (%s): it %s (%s%s). %s",
            outage.name,
            state,
            since.strftime("%Y-%m-%d %H:%M:%S %z"),
            _span(self._now() - outage.since),
            outage.reason,
            outage.code,
            tool,
            self._consequence(service),
            extra={"fields": outage.fields | {"waiting": self.waiting}},
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

    def _place(self, part: str) -> tuple[str, str]:
        """The service, and where it is, or this part of it; empty where it has no address."""
        service = part.partition(" ")[0]
        return service, self._addresses.get(part, self._addresses.get(service, ""))

    def _part_of(self, error: AgentError, listing: bool) -> str:
        known = sorted({*self._addresses, WARRANTY_SYSTEM}, key=len, reverse=True)
        service = next((name for name in known if error.code.startswith(f"{name}_")), error.code.partition("_")[0])
        if listing:
            return _LISTS.get(service, service)
        return SENDING if service == MAILS and getattr(error, "sending", False) else service


def _span(seconds: float) -> str:
    minutes = max(0.0, seconds) / 60
    if minutes < 1:
        return f"{max(0.0, seconds):.0f} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h"


def answered_by(result: ProcessingResult, live_model: MeteredModel | None) -> frozenset[str]:
    """The services that did their part for a mail, whatever came of it. live_model: None where none is asked."""
    is_told = result.status is not None and result.status != WITHHELD.status
    services = {
        MODEL: live_model is not None and live_model.calls > live_model.offline_calls == 0,
        WARRANTY_SYSTEM if result.look_up == WARRANTY.name else str(result.look_up): is_told,
        TICKETING: result.ticket_created,
        SENDING: result.email_sent,
    }
    return frozenset(name for name, answered in services.items() if answered)


_PUBLIC_MODEL_API: Final = "api.anthropic.com"


def service_addresses(config: Config) -> dict[str, str]:
    """As they may stand in a log: without users, passwords and query strings. By the names of services and parts."""
    mailbox, imap, smtp = config.mailbox, config.mailbox.imap, config.mailbox.smtp
    inbox = str(mailbox.maildir) if imap.host is None else f"{imap.host}:{imap.port}"
    addresses = {
        MAILS: _address(config.mcp.gmail, inbox),
        WARRANTY_SYSTEM: _address(config.mcp.warranty_api, config.warranties.file),
        TICKETING: _address(config.mcp.ticketing_system, config.tickets.database),
        LEDGER: _location(config.ledger_location),
    }
    if config.mcp.gmail.built_in and imap.host is not None:
        addresses[SENDING] = f"{smtp.host or imap.host}:{smtp.port}"
    if config.llm.provider != "offline":
        addresses[MODEL] = _location(config.secrets.anthropic_base_url or "") or _PUBLIC_MODEL_API
    return addresses | {name: _address(each.server, each.table) for name, each in config.look_ups.items()}


def _address(server: McpServer, built_in: Path | str | None) -> str:
    """The program alone where it is one: its arguments may hold what is nobody's business."""
    if built_in is not None and server.built_in:
        return str(built_in)
    return _location(server.url) if server.url else str(server.command)


def _location(place: str) -> str:
    """A path as it is; of a URL host, port and path."""
    if "://" not in place:
        return place
    host = ""
    with suppress(ValueError):  # no URL that anybody could reach
        parts = urlsplit(place)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{parts.port}{parts.path}" if parts.port else f"{host}{parts.path}"
    return host

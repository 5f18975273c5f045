"""Which services are down now, as far as the mails that need them have shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.services.look_up_answer import WITHHELD
from guarantee_email_agent.utils.circuit_breaker import CircuitOpenError
from guarantee_email_agent.utils.errors import AgentError

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
    reason: of `code`, as a verb phrase. since: when it was first noticed, in seconds of `time.monotonic`, whose
    differences no change of the clock touches; `wall_time` has it as a moment. part: of the service that fails by
    itself, such as `send`; empty where it is all of it.
    """

    service: str
    address: str
    tool: str
    code: str
    reason: str
    since: float
    part: str = ""

    @property
    def name(self) -> str:
        """Of the service and its part, such as `MAILS` or `SENDING`."""
        return f"{self.service} {self.part}".rstrip()


def wall_time(moment: float) -> float:
    """Seconds since 1970, as the clock is set now, of a moment in seconds of `time.monotonic`."""
    return time.time() - (time.monotonic() - moment)


@dataclass(slots=True)
class _Part:
    """A part of a service that works or fails by itself. ended_at: None while it is down. answered: which ended it."""

    outage: Outage
    waiting: set[str] = field(default_factory=set)
    ended_at: float | None = None
    answered: bool = False


class CurrentOutages:
    """Keeps what is down now, from the errors of mails and from what answered.

    addresses: of services and of their parts (`INBOX` …). now: as `time.monotonic`. A service that one mail found down
    is up again once it has done its part for any mail, or once all was done for that mail; where no mail waits for it
    any more, nobody knows, and it counts as up.
    """

    def __init__(
        self, addresses: Mapping[str, str] = MappingProxyType({}), now: Callable[[], float] = time.monotonic
    ) -> None:
        self._addresses = addresses
        self._now = now
        self._parts: dict[str, _Part] = {}

    @property
    def current(self) -> tuple[Outage, ...]:
        """One for each part of a service that is down, the longest first."""
        down = (part.outage for part in self._parts.values() if part.ended_at is None)
        return tuple(sorted(down, key=lambda outage: outage.since))

    def is_proved_back(self, outage: Outage) -> bool:
        """Whether the service has answered; else only nobody waits for it any more."""
        place = outage.service, outage.address
        parts = (part for part in self._parts.values() if (part.outage.service, part.outage.address) == place)
        return any(part.answered for part in parts)

    def failed(self, error: AgentError, mail_id: str | None = None, *, listing: bool = False) -> None:
        """error: an outage; its `details` may name a `tool`. listing: the inbox, or what the ledger says of it.

        mail_id: the mail that waits for the service; None where all is done without it that can be.
        """
        name = self._part_of(error, listing)
        now, part = self._now(), self._parts.get(name)
        service, _, part_name = name.partition(" ")
        code = error.cause if isinstance(error, CircuitOpenError) else error.code  # what opened a circuit says more
        outage = Outage(
            service,
            self.address_of(name),
            str(error.details.get("tool", "")),
            code,
            _reason(code, service),
            now,
            part_name,
        )
        if part is None or (part.ended_at is not None and now - part.ended_at > SAME_OUTAGE_S):
            part = self._parts[name] = _Part(outage)
        elif error.code.endswith("_circuit_open"):
            part.ended_at = None
        else:
            tool = outage.tool or part.outage.tool
            part.outage, part.ended_at = replace(outage, tool=tool, since=part.outage.since), None
        part.answered = False
        if mail_id is None:
            part.waiting.clear()
        else:
            part.waiting.add(mail_id)

    def answered(self, parts: Iterable[str]) -> None:
        """These services, or parts of one, have just done their part."""
        for name in parts:
            if (part := self._parts.get(name)) is not None:
                part.answered = True
                self._end(part)

    def finished(self, mail_id: str, *, without: Collection[str] = ()) -> None:
        """All was done for a mail, so whatever it waited for is back; `without` names what it did without."""
        self.answered([name for name, part in self._parts.items() if mail_id in part.waiting and name not in without])

    def given_up(self, mail_id: str) -> None:
        """A mail came to an end, and what it waited for was not asked for it."""
        for part in self._parts.values():
            self._keep_waiting(part, part.waiting - {mail_id})

    def keep_waiting(self, mail_ids: Collection[str]) -> None:
        """No other mails wait. Where none is left that found a service down, the outage is over as far as is known."""
        for part in self._parts.values():
            self._keep_waiting(part, part.waiting.intersection(mail_ids))

    def address_of(self, name: str) -> str:
        """Where a service, or a part of one, is; empty where it has no address."""
        return self._addresses.get(name, self._addresses.get(name.partition(" ")[0], ""))

    def forget_cost_limit(self, now: float) -> None:
        """End what the cost limit began on an earlier day (UTC): a new day may cost as much again.

        now: seconds since 1970.
        """
        part = self._parts.get(MODEL)
        if part is None or part.outage.code != OVER_COST_LIMIT:
            return
        if (now - (self._now() - part.outage.since)) // DAY_S < now // DAY_S:
            del self._parts[MODEL]  # one that begins soon after midnight is another one

    def _keep_waiting(self, part: _Part, mail_ids: set[str]) -> None:
        if part.waiting and not mail_ids:
            self._end(part)
        part.waiting = mail_ids

    def _end(self, part: _Part) -> None:
        part.waiting.clear()
        part.ended_at = self._now() if part.ended_at is None else part.ended_at

    def _part_of(self, error: AgentError, listing: bool) -> str:
        known = sorted({*self._addresses, WARRANTY_SYSTEM}, key=len, reverse=True)
        service = next((name for name in known if error.code.startswith(f"{name}_")), error.code.partition("_")[0])
        if listing:
            return _LISTS.get(service, service)
        return SENDING if service == MAILS and getattr(error, "sending", False) else service


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


def _reason(code: str, service: str) -> str:
    end = code.removeprefix(f"{service}_")
    return _REASONS.get(end, "fails")


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

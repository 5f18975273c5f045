"""Which services are down now, as far as the mails that need them have shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from guarantee_email_agent.agent.cost_limit import OVER_COST_LIMIT
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.integrations.look_up_answer import WITHHELD
from guarantee_email_agent.llm.usage import MeteredModel
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
    reason: of `code`, as a verb phrase. since: seconds since 1970, when this process first noticed.
    """

    service: str
    address: str
    tool: str
    code: str
    reason: str
    since: float


@dataclass(slots=True)
class _Part:
    """A part of a service that works or fails by itself. ended_at: 0 while it is down. answered: which ended it."""

    outage: Outage
    waiting: set[str] = field(default_factory=set)
    ended_at: float = 0.0
    answered: bool = False


class CurrentOutages:
    """Keeps what is down now, from the errors of mails and from what answered.

    addresses: of services and of their parts (`INBOX` …). now: seconds since 1970. A service that one mail found down
    is up again once it has done its part for any mail, or once all was done for that mail; where no mail waits for it
    any more, nobody knows, and it counts as up.
    """

    def __init__(
        self, addresses: Mapping[str, str] = MappingProxyType({}), now: Callable[[], float] = time.time
    ) -> None:
        self._addresses = addresses
        self._now = now
        self._parts: dict[str, _Part] = {}

    @property
    def current(self) -> tuple[Outage, ...]:
        """One for each part of a service that is down, the longest first."""
        down = (part.outage for part in self._parts.values() if not part.ended_at)
        return tuple(sorted(down, key=lambda outage: outage.since))

    def is_proved_back(self, outage: Outage) -> bool:
        """Whether the service has answered; else only nobody waits for it any more."""
        place = outage.service, outage.address
        parts = (part for part in self._parts.values() if (part.outage.service, part.outage.address) == place)
        return any(part.answered for part in parts)

    def failed(self, error: AgentError, mail_id: str | None = None) -> None:
        """error: an outage; its `details` may name a `step` (`list`: of the inbox), a `tool`, and `sending`.

        mail_id: the mail that waits for the service; None where all is done without it that can be.
        """
        name = self._part_of(error)
        now, part = self._now(), self._parts.get(name)
        service = name.partition(" ")[0]
        outage = Outage(
            service,
            self._addresses.get(name, self._addresses.get(service, "")),
            str(error.details.get("tool", "")),
            error.code,
            _reason(error.code, service),
            now,
        )
        if part is None or (part.ended_at and now - part.ended_at > SAME_OUTAGE_S):
            part = self._parts[name] = _Part(outage)
        elif error.code.endswith("_circuit_open"):  # what opened it says more
            part.ended_at = 0.0
        else:
            tool = outage.tool or part.outage.tool
            part.outage, part.ended_at = replace(outage, tool=tool, since=part.outage.since), 0.0
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

    def forget_model(self) -> None:
        """Another model is asked from now on, or under another limit, and nothing is known of that one."""
        self._parts.pop(MODEL, None)

    def forget_cost_limit(self, now: float) -> None:
        """End what the cost limit began on an earlier day (UTC): a new day may cost as much again."""
        part = self._parts.get(MODEL)
        if part is not None and part.outage.code == OVER_COST_LIMIT and part.outage.since // DAY_S < now // DAY_S:
            self.forget_model()  # one that begins soon after midnight is another one

    def _keep_waiting(self, part: _Part, mail_ids: set[str]) -> None:
        if part.waiting and not mail_ids:
            self._end(part)
        part.waiting = mail_ids

    def _end(self, part: _Part) -> None:
        part.waiting.clear()
        part.ended_at = part.ended_at or self._now()

    def _part_of(self, error: AgentError) -> str:
        known = sorted({*self._addresses, WARRANTY_SYSTEM}, key=len, reverse=True)
        service = next((name for name in known if error.code.startswith(f"{name}_")), error.code.partition("_")[0])
        if error.details.get("step") == "list":
            return _LISTS.get(service, service)
        return SENDING if service == MAILS and error.details.get("sending") else service


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

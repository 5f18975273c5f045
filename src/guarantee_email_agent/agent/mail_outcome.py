"""How the work on a mail ends: what the ledger and the mailbox are told of it, and what the daemon."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.tables import BY_TEMPLATE
from guarantee_email_agent.services.ports import InboxEntry, Mailbox, MailMark, Outcome
from guarantee_email_agent.utils.errors import AgentError, IntegrationError
from guarantee_email_agent.utils.retry import Backoff

logger = logging.getLogger(__name__)

Disposition = Outcome | Literal["failed", "outage", "waiting", "busy", "gone"]
"""An outcome, or why there is none: it failed, a service is down, not due yet, claimed by another agent, or gone, which
is deleted or dealt with by a person."""

RETRY_BACKOFF = Backoff(30.0, longest_s=3600.0)
AMBIGUOUS_RETRY_BACKOFF = Backoff(300.0, growth=12.0, longest_s=3600.0)
"""For a failure that may be a service's: if it is, that is known by the second retry."""

SUSPECT_RETRY_S: Final = 60.0
"""Until a mail is tried again that failed at the same step as another one."""

PROBED_AFTER_WAITS: Final = 30
"""After which a mail server that answers is not at fault, although no mail shows it."""

_SUSPECTS_KEPT: Final = 10_000

MAIL_NOT_FOUND: Final = "mail_not_found"
OVER_BUDGET: Final = "processing_budget"
_AMBIGUOUS = (
    "_timeout",
    "_unavailable",
    "_unreadable",
    "_failed",
    "_malformed",
    "_bad_answer",
    "_deferred",
    OVER_BUDGET,
)
"""Suffixes of error codes that leave it open whether the mail or a service is to blame."""


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What came of one mail, and what it took.

    retry_s: seconds until a mail without an outcome may be tried again. reason: a code or a scenario. mail_key: that of
    the ledger; empty where it was not claimed. scenario: empty where it came to none. duration_ms: from its id to its
    mark. tokens, cost_usd: of the language model; None where a price is not known. step_ms: milliseconds by step of the
    processor, those that were needed. error: what kept it from an outcome; of an answer by template, why the model gave
    none. answered_by: the services that did their part for it, as `agent.outages` names them. succeeded: whether every
    step of the processor was done. ended: the outcome, where this try wrote it to the ledger, even if its mark could
    not be set; None where another one did. Whoever counts mails counts these, so that each counts once.
    """

    disposition: Disposition
    retry_s: float = 0.0
    reason: str = ""
    mail_key: str = ""
    scenario: str = ""
    duration_ms: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    ticket_id: str | None = None
    step_ms: Mapping[str, float] = field(default_factory=dict)
    error: AgentError | None = None
    answered_by: frozenset[str] = frozenset()
    succeeded: bool = False
    ended: Outcome | None = None


class Suspects:
    """The mails that failed at one step, where either they or the service may be at fault.

    A service is at fault where two mails fail and none succeeds between; a mail where others succeeded since its last
    failure, or where none but it has failed since then. waits: how often in a row a mail was found not to be.
    """

    def __init__(self) -> None:
        self._successes = 0
        self.waits: Counter[str] = Counter()
        self._failed: dict[str, int] = {}  # how many mails had succeeded when a mail failed

    def succeeded(self) -> None:
        self._successes += 1

    def is_at_fault(self, mail_key: str, *, outage: bool = False) -> bool:
        """Whether the failure that this mail just had is its own. outage: a single one tells nothing."""
        mails = list(self._failed)  # in the order in which they failed last
        since = mails[mails.index(mail_key) + 1 :] if mail_key in self._failed else mails
        is_alone = not outage and all(self._failed[each] < self._successes for each in since)
        before = self._failed.pop(mail_key, self._successes)
        if len(self._failed) >= _SUSPECTS_KEPT:
            self._failed.clear()
            self.waits.clear()
        self._failed[mail_key] = self._successes
        if is_own := is_alone or before < self._successes:
            self.waits.pop(mail_key, None)
        else:
            self.waits[mail_key] += 1
        return is_own


@dataclass(frozen=True, slots=True)
class OutcomeWriter:
    """Writes down how the work on single mails ended. Methods raise LedgerError, LeaseLostError, IntegrationError.

    unmarked: the mails whose mark could not be set.
    """

    mailbox: Mailbox
    ledger: Ledger
    settings: AgentSettings
    unmarked: Suspects = field(default_factory=Suspects)

    async def retry_later(
        self, entry: InboxEntry, claim: Claim, where: str, error: AgentError, *, counts: bool
    ) -> WorkResult:
        """Leave the mail for another try, or for a person after the last one. counts: whether the mail is to blame."""
        code = error.code
        if counts and claim.attempts >= self.settings.max_attempts:
            return await self.quarantine(entry, claim, code, error)
        attempts = f"try {claim.attempts} of {self.settings.max_attempts}" if counts else "no fault of the mail"
        fields = outcome_fields("failed" if counts else "outage", code)
        logger.warning("Email %s is left unprocessed %s: %s (%s)", entry.id, where, code, attempts, extra=fields)
        retry_s = _retry_s(claim.attempts, code) if counts else 0.0
        return replace(await self.release(claim, code, retry_s, counts=counts), error=error)

    async def wait_for_others(self, entry: InboxEntry, claim: Claim, where: str, error: AgentError) -> WorkResult:
        """Leave the mail until others show whether it is to blame, or a service is; meanwhile they are worked on."""
        error.details["outage"] = True
        logger.warning(
            "Email %s is left unprocessed %s: %s (others failed, too)",
            *(entry.id, where, error.code),
            extra=outcome_fields("outage", error.code),
        )
        released = await self.release(claim, error.code, SUSPECT_RETRY_S, counts=False, waits=True)
        return replace(released, error=error)

    async def release(
        self, claim: Claim, code: str, retry_s: float, *, counts: bool, waits: bool = False
    ) -> WorkResult:
        """Give the mail back, for another try in `retry_s` seconds. counts: this one does. waits: it did not fail."""
        await asyncio.to_thread(
            self.ledger.release, claim, count_attempt=counts, retry_after_s=retry_s, reason=_reason(code)
        )
        if waits:
            return WorkResult("waiting", retry_s)
        return WorkResult("failed", retry_s) if counts else WorkResult("outage")

    async def quarantine(
        self, entry: InboxEntry, claim: Claim, code: str, error: AgentError | None = None
    ) -> WorkResult:
        """Leave the mail for a person, unless its reply may have been sent. error: why, for the result."""
        if self._observes:
            return await self._finish_observed(claim, code, error)
        try:
            await asyncio.to_thread(self.ledger.finish, claim, "quarantined", _reason(code))
        except LedgerError as refusal:
            if refusal.code != "ledger_wrong_stage":
                raise
            # Its reply may have been sent: the next try looks for proof first.
            released = await self.release(claim, code, _retry_s(claim.attempts, code), counts=True)
            return replace(released, error=error)
        told = "Email %s failed %d times (%s); it is left for a person"
        failed = max(claim.attempts - (error is None), claim.crashes)
        logger.error(told, entry.id, failed, code, extra=outcome_fields("quarantined", code))
        return await self._mark_ended(entry, claim, WorkResult("quarantined", reason=code, error=error))

    async def finish(
        self, entry: InboxEntry, claim: Claim, outcome: MailMark, code: str, error: AgentError | None = None
    ) -> WorkResult:
        """The mail has ended. The mark comes last: a mail that bears it is never looked at again.

        error: what was in the way of a better outcome, for the result.
        """
        if self._observes:
            return await self._finish_observed(claim, code, error)
        await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code))
        return await self._mark_ended(entry, claim, WorkResult(outcome, reason=code, error=error))

    async def _finish_observed(self, claim: Claim, code: str, error: AgentError | None) -> WorkResult:
        """Nothing is written but the ledger, so that the mail is not observed again."""
        await asyncio.to_thread(self.ledger.finish, claim, "observed", _reason(code))
        return WorkResult("observed", reason=code, error=error, ended="observed")

    async def _mark_ended(self, entry: InboxEntry, claim: Claim, result: WorkResult) -> WorkResult:
        """The result of a mail that this try has ended; an outage where its mark could not be set."""
        outcome = cast("MailMark", result.disposition)
        try:
            await self.mark(entry, claim.location_key, outcome)
        except AgentError as error:
            logger.warning("Email %s has ended, and bears no mark yet: %s", entry.id, error.code)
            logger.debug("%s", error.message)
            left = not_marked(error)
            return replace(left, reason=result.reason, ended=outcome)
        return replace(result, ended=outcome)

    async def mark(self, entry: InboxEntry, location_key: str, outcome: MailMark) -> None:
        """Mark a mail that has ended in the ledger.

        Should the agent crash in here, the next one finds the mail finished in the ledger and sets the mark.
        """
        try:
            await self.mailbox.mark(entry.id, outcome)
        except IntegrationError as error:
            if error.code != MAIL_NOT_FOUND:
                error.details["mark_waits"] = self.unmarked.is_at_fault(location_key, outage=True)
                raise
            logger.info("Email %s is no longer in the inbox; its outcome stands in the ledger", entry.id)
            return
        self.unmarked.succeeded()
        await asyncio.to_thread(self.ledger.marked, location_key)

    @property
    def _observes(self) -> bool:
        return self.settings.mode == "observe"


def not_marked(error: AgentError) -> WorkResult:
    """The result of a mail that has ended and bears no mark: an outage, unless others get theirs."""
    if not error.details.get("mark_waits"):
        return WorkResult("outage", error=error)
    error.details["outage"] = False
    return WorkResult("waiting", RETRY_BACKOFF.longest_s, error=error)


def _retry_s(attempts: int, code: str) -> float:
    return (AMBIGUOUS_RETRY_BACKOFF if code.endswith(_AMBIGUOUS) else RETRY_BACKOFF).delay_s(attempts)


def _reason(code: str) -> str:
    """`code` in the ledger's alphabet: a foreign server may have chosen it."""
    return re.sub(r"[^a-z0-9_-]", "_", code.lower())[:64]


def outcome_fields(outcome: str, code: str = "") -> dict[str, Any]:
    """As `extra` of a line. outcome: of the mail, or why it has none. code: why."""
    return {"fields": {"outcome": outcome, **({"code": code} if code else {})}}


def log_processed(mail_id: str, result: ProcessingResult, *, observes: bool, by_template: bool) -> tuple[MailMark, str]:
    """Log a mail that was processed; its outcome, and the code that the ledger keeps of it."""
    took_ms, would_be = result.processing_time_ms, "would be " if observes else ""
    scenario = str(result.scenario_used)
    outcome: MailMark
    if result.hand_over_reasons:
        outcome, code, line = "handed_over", result.hand_over_reasons[0], f"Email {would_be}handed over"
        told = ", ".join(result.hand_over_reasons)
    elif result.skip_reason:
        outcome, code, line, told = "not_answered", "no_reply", f"Email {would_be}not answered", result.skip_reason
    else:
        code, told = (f"{scenario}{BY_TEMPLATE}", f"{scenario}, by template") if by_template else (scenario, scenario)
        if result.drafted:
            outcome, line = "drafted", "Reply drafted"
        else:
            outcome, line = "answered", f"Email {would_be}answered"
            told += f", ticket {result.ticket_id}" if result.ticket_id else ", a ticket" if result.ticket_fields else ""
    fields = outcome_fields("observed" if observes else outcome, code)
    logger.info("%s: %s (%s) in %d ms", line, mail_id, told, took_ms, extra=fields)
    return outcome, code

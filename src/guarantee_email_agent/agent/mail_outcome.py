"""How the work on a mail ends: what the ledger and the mailbox are told of it, and what the daemon."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.memory import Memory
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, LeaseLostError, Ledger
from guarantee_email_agent.ledger.tables import BY_TEMPLATE
from guarantee_email_agent.services.ports import InboxEntry, Mailbox, MailMark, Outcome, WrittenReply
from guarantee_email_agent.utils.errors import AgentError, IntegrationError, ServiceError
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

MAIL_NOT_FOUND: Final = "mail_not_found"
OVER_BUDGET: Final = "processing_budget"
TOO_LARGE: Final = "mail_too_large"
_NO_FAULT_OF_A_MAIL: Final = ("instructions", "proof")
"""Steps. Instructions that cannot be read are read anew for the next mail."""

_MAY_BE_ITS_OWN: Final = ("_unavailable", "_deferred", "_malformed")
"""Suffixes of codes that a service has for one request, and for all while it is down: other mails tell which."""

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
    none. outage: whether that is a service's fault, which counts as down. answered_by: the services that did their part
    for it, as `agent.standing` names them. ended: the outcome,
    where this try wrote it to the ledger, even if its mark could not be set; None where another one did. Whoever counts
    mails counts these, so that each counts once.
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
    outage: bool = False
    answered_by: frozenset[str] = frozenset()
    ended: Outcome | None = None


@dataclass(frozen=True, slots=True)
class OutcomeWriter:
    """Writes down how the work on single mails ended. Methods raise LedgerError and LeaseLostError.

    lease_s: of a claim.
    """

    mailbox: Mailbox
    ledger: Ledger
    settings: AgentSettings
    memory: Memory
    lease_s: float

    async def after_error(
        self,
        entry: InboxEntry,
        claim: Claim | None,
        step: str | None,
        error: AgentError,
        ticket_id: str | None = None,
    ) -> WorkResult:
        """What an error of one mail does, which is decided here and nowhere else.

        step: of the work on the mail. None where ledger or mailbox failed, so that the mail stays as it is; so it does
        without a claim. ticket_id: of the ticket that is open for it.
        """
        code, outage = error.code, _is_outage(error)
        logger.debug("%s", error.message)
        if isinstance(error, LeaseLostError):
            logger.warning("Email %s was taken over by another agent; nothing more is done here", entry.id)
            return WorkResult("busy", self.lease_s)
        if claim is None and code == MAIL_NOT_FOUND:
            logger.info("Email %s is no longer in the inbox", entry.id)
            return WorkResult("gone")
        if claim is None or step is None:
            if claim is not None and isinstance(error, LedgerError) and outage:
                self.memory.unreleased[claim.mail_key] = claim
            logger.warning("Email %s is left unprocessed: %s", entry.id, code, extra=outcome_fields("outage", code))
            return WorkResult("outage", error=error, outage=True)
        if code == NOT_WAITING:
            ticket = f"; its ticket {ticket_id} is open" if ticket_id else ""
            logger.info("Email %s was dealt with by somebody else meanwhile%s", entry.id, ticket)
            await self.release(claim, code, 0.0, counts=False)
            return WorkResult("gone")
        if code == OVER_COST_LIMIT:
            fields = outcome_fields("handed_over", code)
            logger.warning("Email %s handed over: llm.max_cost_per_day is reached", entry.id, extra=fields)
            return await self.finish(entry, claim, "handed_over", code, error)
        if code == TOO_LARGE:
            told = "Email %s has %d bytes, too many to be read; it is left for a person"
            logger.error(told, entry.id, entry.size, extra=outcome_fields("quarantined", code))
            return await self.finish(entry, claim, "quarantined", code)
        outage = outage or step in _NO_FAULT_OF_A_MAIL
        counts, waits = not outage, False
        if step == "read" or code.endswith(_MAY_BE_ITS_OWN):
            counts = await self._is_at_fault(step, claim, outage=outage)
            waits = not counts and not outage
        if counts and claim.attempts >= self.settings.max_attempts:
            return await self.quarantine(entry, claim, code, error)
        tries = f"try {claim.attempts} of {self.settings.max_attempts}" if counts else "no fault of the mail"
        logger.warning(
            "Email %s is left unprocessed in step %s: %s (%s)",
            *(entry.id, step, code, "others failed, too" if waits else tries),
            extra=outcome_fields("failed" if counts else "outage", code),
        )
        retry_s = SUSPECT_RETRY_S if waits else _retry_s(claim.attempts, code) if counts else 0.0
        released = await self.release(claim, code, retry_s, counts=counts, waits=waits)
        return replace(released, error=error, outage=not counts)

    async def _is_at_fault(self, step: str, claim: Claim, *, outage: bool) -> bool:
        """Whether a failure is this mail's own: as others show, or, where they fail alike, the mail server itself."""
        suspects = self.memory.suspects[step]
        if suspects.is_at_fault(claim.mail_key, outage=outage):
            return True
        if outage or step not in ("read", "send") or suspects.waits[claim.mail_key] < PROBED_AFTER_WAITS:
            return False
        try:
            return await self.mailbox.test_connection(drafts=self.settings.mode == "drafts")
        except AgentError:
            return False

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
        result = WorkResult("quarantined", reason=code, error=error, ended="quarantined")
        if self._observes:
            return await self._finish_observed(claim, result)
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
        return await self.mark(entry, claim.location_key, result)

    async def finish(
        self,
        entry: InboxEntry,
        claim: Claim,
        outcome: MailMark,
        code: str,
        error: AgentError | None = None,
        written: WrittenReply | None = None,
    ) -> WorkResult:
        """The mail has ended. The mark comes last: a mail that bears it is never looked at again.

        error: what was in the way of a better outcome, for the result. written: to be compared with a person's.
        """
        result = WorkResult(outcome, reason=code, error=error, outage=_is_outage(error), ended=outcome)
        if self._observes:
            return await self._finish_observed(claim, result, written)
        await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code), written)
        return await self.mark(entry, claim.location_key, result)

    async def _finish_observed(
        self, claim: Claim, result: WorkResult, written: WrittenReply | None = None
    ) -> WorkResult:
        """Nothing is written but the ledger, so that the mail is not observed again."""
        await asyncio.to_thread(self.ledger.finish, claim, "observed", _reason(result.reason), written)
        return replace(result, disposition="observed", ended="observed")

    async def mark(self, entry: InboxEntry, location_key: str, result: WorkResult) -> WorkResult:
        """Mark a mail that has ended in the ledger with its outcome: the result, or why the mark has to wait.

        Should the agent crash in here, the next one finds the mail finished in the ledger and sets the mark.
        """
        try:
            await self.mailbox.mark(entry.id, cast("MailMark", result.disposition))
            self.memory.suspects["mark"].succeeded()
            await asyncio.to_thread(self.ledger.marked, location_key)
        except (IntegrationError, LedgerError) as error:
            if error.code == MAIL_NOT_FOUND:
                logger.info("Email %s is no longer in the inbox; its outcome stands in the ledger", entry.id)
                return result
            logger.warning("Email %s has ended, and bears no mark yet: %s", entry.id, error.code)
            logger.debug("%s", error.message)
            left = WorkResult("outage", error=error, outage=True)
            fails = self.memory.suspects["mark"]
            if isinstance(error, IntegrationError) and fails.is_at_fault(location_key, outage=True):
                left = WorkResult("waiting", RETRY_BACKOFF.longest_s, error=error)  # others get theirs
            return replace(left, reason=result.reason, ended=result.ended)
        return result

    @property
    def _observes(self) -> bool:
        return self.settings.mode == "observe"


def _is_outage(error: AgentError | None) -> bool:
    return isinstance(error, ServiceError) and error.outage


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

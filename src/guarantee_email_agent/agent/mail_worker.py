"""One mail of the inbox, from its id to its mark: fetch, identify, claim, look for proof, process, finish, mark."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from guarantee_email_agent.agent.outbox import OutboxMailbox, OutboxTicketing
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.integrations.ports import InboxEntry, Mailbox, Outcome
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Busy, Claim, Done, Free, LeaseLostError, Ledger, MailState, Waiting
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.utils.errors import AgentError, IntegrationError, ProcessingError
from guarantee_email_agent.utils.retry import Backoff

logger = logging.getLogger(__name__)

Disposition = Literal[
    "answered", "not_answered", "quarantined", "unknown", "failed", "outage", "waiting", "busy", "gone"
]
"""What became of a mail. Without an outcome: its own fault, a service's, not due yet, in others' hands, gone."""

RETRY = Backoff(30.0, longest_s=3600.0)
DOUBTFUL_RETRY = Backoff(300.0, growth=12.0, longest_s=3600.0)
"""For a failure that may be a service's: if it is, the service will have shown it by the time after the next."""

LARGE_BYTES = 2_000_000
"""A mail takes fifteen times its size while it is read: such ones are taken up one at a time."""

_GONE = "mail_not_found"
_TOO_LARGE = "mail_too_large"
_LEASE_LOST = "ledger_lease_lost"
_WRONG_STAGE = "ledger_wrong_stage"
_OVER_BUDGET = "processing_budget"
_DOUBTFUL = ("_timeout", "_unavailable", "_failed", "_malformed", "_bad_answer", "_deferred", _OVER_BUDGET)
"""Ends of error codes that leave it open whether the mail or a service is to blame."""


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """budget_s: seconds one mail may take. copy_wait_s: seconds after which a reply not found was not sent.

    lease_s: seconds a mail stays ours without a sign of life; more than the other two together.
    """

    budget_s: float
    lease_s: float
    copy_wait_s: float
    max_attempts: int
    max_mail_bytes: int


@dataclass(frozen=True, slots=True)
class WorkResult:
    """retry_s: seconds until a mail without an outcome may be taken up again. reason: a code or a scenario."""

    disposition: Disposition
    retry_s: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MailWorker:
    """Deals with one mail at a time, and with any number at once.

    mailbox: its name, since ids are a mailbox's own and agents on several may share a ledger. owner: names this process
    in the ledger. alone: held by mails that could take others with them, large ones and those that failed before.
    """

    inbox: Mailbox
    ledger: Ledger
    processor: EmailProcessor
    limits: WorkLimits
    mailbox: str
    owner: str
    alone: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def work(self, entry: InboxEntry, listed_at: float) -> WorkResult:
        """A mail without an outcome stays in the inbox as it was. Raises nothing that is an AgentError.

        listed_at: the ledger's time just before the list was asked for in which the mail stood.
        """
        try:
            return await self._work(entry, listed_at)
        except LeaseLostError:
            logger.warning("Email %s was taken over by another agent; nothing more is done here", entry.id)
            return WorkResult("busy", self.limits.lease_s)
        except AgentError as error:
            if error.code == _GONE:
                logger.info("Email %s is no longer in the inbox", entry.id)
                return WorkResult("gone")
            logger.warning("Email %s is left unprocessed: %s", entry.id, error.code)
            logger.debug("%s", error.message)
            return WorkResult("outage")

    async def _work(self, entry: InboxEntry, listed_at: float) -> WorkResult:
        location_key = content_identity(f"place {self.mailbox} {entry.id}".encode(), self.processor.identity_key)
        state = await asyncio.to_thread(self.ledger.state, location_key)
        if state is not None and (known := await self._known(entry, location_key, state, listed_at)) is not None:
            return known
        if entry.size > LARGE_BYTES or (isinstance(state, Free) and state.attempts):
            async with self.alone:
                return await self._take_up(entry, location_key, state, listed_at)
        return await self._take_up(entry, location_key, state, listed_at)

    async def _take_up(
        self, entry: InboxEntry, location_key: str, state: MailState | None, listed_at: float
    ) -> WorkResult:
        logger.info("Email received: %s (%d bytes)", entry.id, entry.size)
        raw = await self._read(entry)
        if state is not None and state.mail_key != location_key:
            key = state.mail_key  # what it is known by, though it cannot be read today, or is read otherwise
        else:
            key = self._key(raw) if isinstance(raw, bytes) else location_key
        claim = await asyncio.to_thread(
            self.ledger.claim, key, location_key=location_key, owner=self.owner, lease_s=self.limits.lease_s
        )
        if not isinstance(claim, Claim):  # the same mail came twice, or another agent was faster
            return await self._known(entry, location_key, claim, listed_at) or WorkResult("busy")
        try:
            return await self._claimed(entry, claim, raw)
        except asyncio.CancelledError:
            # Stopped by whoever runs the agent, which is no fault of the mail. Not at once: a reply may be on its way.
            with suppress(AgentError):
                await asyncio.to_thread(
                    self.ledger.release, claim, count_attempt=False, retry_after_s=RETRY.first_s, reason="stopped"
                )
            raise

    async def _claimed(self, entry: InboxEntry, claim: Claim, raw: bytes | AgentError) -> WorkResult:
        if (result := await self._proved(entry, claim)) is not None:
            return result
        if isinstance(raw, AgentError):
            return await self._unreadable(entry, claim, raw)
        if claim.attempts > self.limits.max_attempts:
            return await self._quarantine(entry, claim, claim.reason or "crash")
        return await self._process(entry, claim, raw)

    async def _known(
        self, entry: InboxEntry, location_key: str, state: MailState, listed_at: float
    ) -> WorkResult | None:
        """What the ledger's word on a mail comes to; None if the mail may be taken up."""
        match state:
            case Busy():
                return WorkResult("busy", state.retry_in_s)
            case Waiting():
                return WorkResult("waiting", state.retry_in_s)
            case Done():
                return await self._done_before(entry, location_key, state, listed_at)
        return None

    async def _read(self, entry: InboxEntry) -> bytes | AgentError:
        """The mail, or why this one cannot be read while others can."""
        if entry.size > self.limits.max_mail_bytes:
            return ProcessingError(f"The mail has {entry.size} bytes, too many to be read", _TOO_LARGE)
        try:
            return await self.inbox.read_raw(entry.id, self.limits.max_mail_bytes)
        except IntegrationError as error:
            if error.code == _GONE or error.details.get("outage"):
                raise
            return error

    async def _unreadable(self, entry: InboxEntry, claim: Claim, error: AgentError) -> WorkResult:
        if error.code == _TOO_LARGE:
            logger.error("Email %s has %d bytes, too many to be read; it is left for a person", entry.id, entry.size)
            return await self._finish(entry, claim, "quarantined", _TOO_LARGE)
        return await self._try_again(entry, claim, "in step read", error.code, counts=True)

    def _key(self, raw: bytes) -> str:
        key = self.processor.identity_key
        try:
            return mail_identity(parse_email(raw), key)
        except Exception as error:
            if not isinstance(error, ProcessingError):  # a bug of ours: the mail's tries are counted all the same
                logger.debug("Unexpected failure", exc_info=True)
            return content_identity(raw, key)

    async def _done_before(self, entry: InboxEntry, location_key: str, done: Done, listed_at: float) -> WorkResult:
        """The agent died before it could set the mark, or the mail came twice, or staff took the mark away."""
        if done.marked and done.outcome in ("quarantined", "unknown"):
            if not await asyncio.to_thread(self.ledger.reopen, location_key, listed_at=listed_at):
                return WorkResult("waiting", RETRY.first_s)  # the list may be older than the mark
            logger.info("Email %s is taken up anew: somebody took its mark away", entry.id)
            return WorkResult("busy")
        logger.info("Email %s was dealt with before: %s", entry.id, done.outcome)
        await self._mark(entry, location_key, done.outcome)
        return WorkResult(done.outcome)

    async def _proved(self, entry: InboxEntry, claim: Claim) -> WorkResult | None:
        """The end of a mail whose reply an earlier try sent, or may have sent; None where none went out."""
        if claim.previous == "sending":
            try:
                proof = await self.inbox.find_sent(str(claim.reply_message_id), self.limits.copy_wait_s)
            except IntegrationError as error:
                return await self._try_again(entry, claim, "in step proof", error.code, counts=False)
            if proof == "unknown":
                return await self._unknown(entry, claim)
            if proof == "not_sent":
                await asyncio.to_thread(self.ledger.not_sent, claim)
                return None
        elif claim.previous != "sent":
            return None
        logger.info("Email %s was answered before the agent stopped", entry.id)
        return await self._finish(entry, claim, "answered", "proved")

    async def _process(self, entry: InboxEntry, claim: Claim, raw: bytes) -> WorkResult:
        model = MeteredModel(self.processor.llm)
        processor = replace(
            self.processor,
            llm=model,
            mail=OutboxMailbox(self.inbox, self.ledger, claim),
            ticketing=OutboxTicketing(self.processor.ticketing, self.ledger, claim),
        )
        try:
            async with asyncio.timeout(self.limits.budget_s):
                result = await processor.process_email(raw)
        except TimeoutError:
            return await self._try_again(entry, claim, f"after {self.limits.budget_s:g} s", _OVER_BUDGET, counts=True)
        if model.usage.total:
            cost = "unknown cost" if model.cost_usd is None else f"{model.cost_usd:.4f} USD"
            logger.info("Email %s took %d tokens in %d calls (%s)", entry.id, model.usage.total, model.calls, cost)
        if result.success:
            return await self._success(entry, claim, result)
        return await self._failure(entry, claim, result)

    async def _success(self, entry: InboxEntry, claim: Claim, result: ProcessingResult) -> WorkResult:
        took_ms = result.processing_time_ms
        if not result.email_sent:
            logger.info("Email not answered: %s (%s) in %d ms", entry.id, result.skip_reason, took_ms)
            return await self._finish(entry, claim, "not_answered", "no_reply")
        ticket = f", ticket {result.ticket_id}" if result.ticket_id else ""
        logger.info("Email answered: %s (%s%s) in %d ms", entry.id, result.scenario_used, ticket, took_ms)
        return await self._finish(entry, claim, "answered", str(result.scenario_used))

    async def _failure(self, entry: InboxEntry, claim: Claim, result: ProcessingResult) -> WorkResult:
        code, step = str(result.error_code), str(result.failed_step)
        logger.debug("%s", result.error_message)
        if code == _LEASE_LOST:
            raise LeaseLostError(str(result.error_message), code)
        return await self._try_again(
            entry, claim, f"in step {step}", code, counts=not _is_outage(step, result.error_details)
        )

    async def _try_again(self, entry: InboxEntry, claim: Claim, where: str, code: str, *, counts: bool) -> WorkResult:
        """Later; or leave the mail for a person where it was its own fault once too often."""
        if counts and claim.attempts >= self.limits.max_attempts:
            return await self._quarantine(entry, claim, code)
        attempts = f"try {claim.attempts} of {self.limits.max_attempts}" if counts else "no fault of the mail"
        logger.warning("Email %s is left unprocessed %s: %s (%s)", entry.id, where, code, attempts)
        return await self._release(claim, code, counts=counts)

    async def _release(self, claim: Claim, code: str, *, counts: bool) -> WorkResult:
        """Leave the mail for another try."""
        retry_s = _retry_s(claim.attempts, code) if counts else 0.0
        await asyncio.to_thread(
            self.ledger.release, claim, count_attempt=counts, retry_after_s=retry_s, reason=_reason(code)
        )
        return WorkResult("failed", retry_s) if counts else WorkResult("outage")

    async def _quarantine(self, entry: InboxEntry, claim: Claim, code: str) -> WorkResult:
        try:
            await asyncio.to_thread(self.ledger.finish, claim, "quarantined", _reason(code))
        except LedgerError as error:
            if error.code != _WRONG_STAGE:
                raise
            return await self._release(claim, code, counts=True)  # its reply may be out: first the proof, next time
        logger.error("Email %s failed %d times (%s); it is left for a person", entry.id, claim.attempts, code)
        await self._mark(entry, claim.location_key, "quarantined")
        return WorkResult("quarantined", reason=code)

    async def _unknown(self, entry: InboxEntry, claim: Claim) -> WorkResult:
        logger.error(
            "Email %s may or may not have been answered, and nobody can tell. Look for its reply, then answer it by "
            "hand or take its mark away",
            entry.id,
        )
        return await self._finish(entry, claim, "unknown", "no_proof")

    async def _finish(self, entry: InboxEntry, claim: Claim, outcome: Outcome, code: str) -> WorkResult:
        await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code))
        await self._mark(entry, claim.location_key, outcome)
        return WorkResult(outcome, reason=code)

    async def _mark(self, entry: InboxEntry, location_key: str, outcome: Outcome) -> None:
        """Should the agent stop in here, the next one finds the mail finished in the ledger and sets the mark again."""
        try:
            await self.inbox.mark(entry.id, outcome)
        except IntegrationError as error:
            if error.code != _GONE:
                raise
            logger.info("Email %s is no longer in the inbox; its outcome stands in the ledger", entry.id)
            return
        await asyncio.to_thread(self.ledger.marked, location_key)


def _retry_s(attempts: int, code: str) -> float:
    """Seconds until a mail whose own fault it was has its next try."""
    return (DOUBTFUL_RETRY if code.endswith(_DOUBTFUL) else RETRY).delay_s(attempts)


def _reason(code: str) -> str:
    """`code` as the ledger takes it: not from a customer, but perhaps from somebody else's server."""
    return re.sub(r"[^a-z0-9_]", "_", code.lower())[:64]


def _is_outage(step: str, details: Mapping[str, object]) -> bool:
    """Whether the mail is not to blame. Instructions that cannot be read are read anew for the next mail."""
    return step == "instructions" or bool(details.get("outage"))

"""One mail of the inbox, from its id to its mark: read, identify, claim, look for proof, process, finish, mark."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guarantee_email_agent.agent.identity_key import key_of_location, key_of_mailbox
from guarantee_email_agent.agent.mail_model import CachingModel, CostLimitedModel
from guarantee_email_agent.agent.mail_outcome import (
    MAIL_NOT_FOUND,
    OVER_BUDGET,
    RETRY_BACKOFF,
    TOO_LARGE,
    OutcomeWriter,
    WorkResult,
    log_processed,
    outcome_fields,
)
from guarantee_email_agent.agent.memory import Memory
from guarantee_email_agent.agent.outbox import NOT_WAITING, Outbox
from guarantee_email_agent.agent.process_identity import has_ended, is_on_this_machine
from guarantee_email_agent.agent.standing import MODEL, answered_by
from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.email.identity import content_identity, mail_identity
from guarantee_email_agent.email.parsing.email import MAX_MAIL_BYTES, Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.people_answers import written_reply
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.ledger.interventions import SHORT_KEY
from guarantee_email_agent.ledger.ledger import Claim, LeaseLostError, Ledger, OpenMails
from guarantee_email_agent.ledger.mail_state import Busy, Done, Free, InboxState, Waiting
from guarantee_email_agent.ledger.tables import CRASH, RELEASED, STOPPED
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.services.ports import PARKED, DraftState, InboxEntry, Mailbox, MailMark, SentState
from guarantee_email_agent.utils.clock import counted_waits
from guarantee_email_agent.utils.errors import AgentError, IntegrationError, LLMError, ProcessingError
from guarantee_email_agent.utils.logging import add_log_fields, log_fields
from guarantee_email_agent.utils.text import amount

logger = logging.getLogger(__name__)

NEIGHBOUR_CHECK_S = 5.0
"""How often an agent on the same machine is looked after while it works on a mail that we were to process."""

SETTLE_S: Final = 30.0
"""Seconds after which a call that was cut short has had its effect, or never will."""

LARGE_BYTES = 2_000_000
"""Parsing takes fifteen times the size of a mail, so larger ones are processed one at a time."""

_DRAFT_PROOFS: Final[Mapping[DraftState, SentState]] = {"saved": "sent", "not_saved": "not_sent", "unknown": "unknown"}
_PROVED = "proved"  # its reply was found where it lies
OTHER_MODE: Final = "other_mode"


def lease_s(mail_budget_s: float, copy_wait_s: float) -> float:
    """Seconds after which a mail claimed by a crashed agent is free again: longer than one at work can take."""
    return 1.5 * (mail_budget_s + copy_wait_s)


@dataclass(frozen=True, slots=True)
class MailWorker:
    """Works on single mails, any number of them concurrently.

    copy_wait_s: seconds after which a reply not found counts as not sent. mailbox_name: ids are unique in one mailbox
    only, and agents on several may share a ledger. owner: names this process in the ledger. exclusive: held for mails
    that could crash the process, large ones and those that failed. has_live_model: then an answer without it is marked
    as one by template.
    max_cost_usd: of the language model in a day.
    """

    mailbox: Mailbox
    ledger: Ledger
    processor: EmailProcessor
    settings: AgentSettings
    copy_wait_s: float
    mailbox_name: str
    owner: str
    exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)
    has_live_model: bool = False
    max_cost_usd: float | None = None
    memory: Memory = field(default_factory=Memory)

    @property
    def lease_s(self) -> float:
        """As the function of this name."""
        return lease_s(self.settings.mail_budget_s, self.copy_wait_s)

    async def work(self, entry: InboxEntry, listed_at: float, *, is_new: bool = False) -> WorkResult:
        """Process one mail; without an outcome it stays in the inbox as it was. Raises nothing that is an AgentError.

        listed_at: the ledger's time just before the list was asked for in which the mail stood. is_new: the ledger had
        not seen it then, so that it need not be asked again: its claim decides.
        """
        return await self._result_of(self._work(entry, listed_at, is_new=is_new), entry)

    async def inbox(self, location_keys: Sequence[str], listed_at: float, *, is_complete: bool) -> InboxState:
        """What the ledger knows of an inbox that was listed, and of what is not in the list."""
        key = key_of_mailbox(self.mailbox_name, self.processor.identity_key)
        settled = (NOT_WAITING, OTHER_MODE) if self._observes else (NOT_WAITING,)
        left = OpenMails(key, settled, listed_at, is_complete)
        return await asyncio.to_thread(self.ledger.inbox, location_keys, left)

    async def settle(self, location_key: str, mail_id: str | None) -> WorkResult:
        """End what was left open of a mail that is no longer listed: a person deals with it, or took it away.

        A reply that may have left is looked for; else the mail is with people, unless it comes back. A result of
        `busy`, `waiting` or `outage` asks for another call. mail_id: None where nobody remembers it. Of one that a
        person gave back only the mark is taken off, so that it is listed.
        """
        entry = InboxEntry(mail_id or location_key[:12], 0)
        return await self._result_of(self._settle(entry, location_key, is_known=mail_id is not None), entry)

    async def _result_of(self, work: Coroutine[Any, Any, WorkResult], entry: InboxEntry) -> WorkResult:
        clock = self.processor.clock
        began = clock.monotonic()
        with log_fields():
            add_log_fields(mail=entry.id)
            try:
                result = await work
            except AgentError as error:
                result = await self._outcomes.after_error(entry, None, None, error)
        return replace(result, duration_ms=round((clock.monotonic() - began) * 1000))

    async def _work(self, entry: InboxEntry, listed_at: float, *, is_new: bool) -> WorkResult:
        location_key = key_of_location(self.mailbox_name, entry.id, self.processor.identity_key)
        state = None if is_new else await asyncio.to_thread(self.ledger.state, location_key)
        if isinstance(state, Busy | Free) and state.mail_key in self.memory.unreleased:
            await self._release_late(self.memory.unreleased[state.mail_key])
            state = await asyncio.to_thread(self.ledger.state, location_key)
        if isinstance(state, Busy) and await self._free_if_ended(entry, state):
            state = await asyncio.to_thread(self.ledger.state, location_key)
        if isinstance(state, Free | Done) and await self._is_another(entry, state, location_key):
            logger.warning("Email %s is another mail than the one that had this id before", entry.id)
            state = None
        if state is not None and not isinstance(state, Free):
            return replace(await self._resume(entry, location_key, state, listed_at), mail_key=state.mail_key)
        risky = entry.size > LARGE_BYTES or (state is not None and state.attempts > 0)
        async with self.exclusive if risky else nullcontext():
            logger.info("Email received: %s (%d bytes)", entry.id, entry.size)
            raw = await self._read(entry)
            mail: Email | bytes | AgentError
            if state is not None and state.mail_key != location_key:
                mail, key = raw, state.mail_key  # stays its key, whether or not it can be read or parsed today
            else:
                mail, key = self._identify(raw, location_key)
            claim = await self._claim(key, location_key)
            if not isinstance(claim, Claim):  # the same mail came twice, or another agent was faster
                return replace(await self._resume(entry, location_key, claim, listed_at), mail_key=key)
            return await self._holding(entry, claim, self._work_on_claim(entry, claim, mail))

    async def _claim(
        self, mail_key: str, location_key: str, *, to_unmark: bool = False
    ) -> Claim | Busy | Waiting | Done:
        mailbox_key = key_of_mailbox(self.mailbox_name, self.processor.identity_key)
        return await asyncio.to_thread(
            self.ledger.claim,
            mail_key,
            location_key=location_key,
            owner=self.owner,
            lease_s=self.lease_s,
            mailbox_key=mailbox_key,
            to_unmark=to_unmark,
        )

    async def _settle(self, entry: InboxEntry, location_key: str, *, is_known: bool) -> WorkResult:
        state = await asyncio.to_thread(self.ledger.state, location_key)
        if isinstance(state, Busy | Waiting):
            return WorkResult("busy" if isinstance(state, Busy) else "waiting", state.retry_in_s)
        if not isinstance(state, Free) or (state.to_unmark and self._observes):
            return WorkResult("gone")  # it has ended, or who only looks is to set it free
        if state.to_unmark:
            return await self._take_mark_off(location_key, state.mail_key)
        if is_known and await self.mailbox.is_waiting(entry.id, self.settings.skip_seen):
            return WorkResult("gone")  # the list was out of date
        claim = await self._claim(state.mail_key, location_key)
        if not isinstance(claim, Claim):  # another agent was faster
            return WorkResult("busy", NEIGHBOUR_CHECK_S)
        return await self._holding(entry, claim, self._settle_claim(entry, claim))

    async def _take_mark_off(self, location_key: str, mail_key: str) -> WorkResult:
        places, name = await asyncio.to_thread(self.ledger.places, mail_key), mail_key[:SHORT_KEY]
        try:
            listed = await self.mailbox.list_mails()
        except IntegrationError as error:
            if error.code != "mail_unsupported":
                raise
            logger.warning("Email %s was given back. Take its mark off in the mailbox: its server cannot", name)
            listed = []
        key = self.processor.identity_key
        found = [mail.id for mail in listed if key_of_location(self.mailbox_name, mail.id, key) in places]
        claim: Claim | Busy | Waiting | Done | None = None
        try:
            async with asyncio.timeout(self.settings.mail_budget_s):  # after which it may be another agent's
                claim = await self._claim(mail_key, location_key, to_unmark=True)
                if not isinstance(claim, Claim):  # another agent was faster
                    return WorkResult("busy", NEIGHBOUR_CHECK_S)
                for mail_id in found:
                    await self._unmark(mail_id)
        except BaseException as error:
            if isinstance(claim, Claim):  # what was begun may take its effect yet
                with suppress(AgentError):
                    await self._outcomes.release(claim, RELEASED, SETTLE_S, counts=False)
            if isinstance(error, TimeoutError):
                return WorkResult("busy", SETTLE_S)
            raise
        await asyncio.to_thread(self.ledger.unmarked, claim)
        logger.info("Email %s was given back: its mark is off", name)
        return WorkResult("gone")

    async def _unmark(self, mail_id: str) -> None:
        try:
            await self.mailbox.unmark(mail_id)
        except IntegrationError as error:
            if error.code != MAIL_NOT_FOUND:  # somebody took it away meanwhile
                raise

    async def _settle_claim(self, entry: InboxEntry, claim: Claim) -> WorkResult:
        if (result := await self._end_of_earlier_reply(entry, claim)) is not None:
            return WorkResult("gone") if result.disposition == "waiting" else result  # an observer waits for nobody
        logger.info("Email %s was dealt with by somebody else before its next try", entry.id)
        await self._outcomes.release(claim, NOT_WAITING, 0.0, counts=False)
        return WorkResult("gone")

    async def _holding(self, entry: InboxEntry, claim: Claim, work: Coroutine[Any, Any, WorkResult]) -> WorkResult:
        """The result of work on a claim, which is given back whatever interrupts it."""
        add_log_fields(mail_key=claim.mail_key)
        try:
            result = await work
        except AgentError as error:
            result = await self._outcomes.after_error(entry, claim, None, error)
        except asyncio.CancelledError:
            # Not counted, since the agent was stopped; not retried at once, since a reply may be on its way.
            with suppress(AgentError):
                await self._outcomes.release(claim, STOPPED, RETRY_BACKOFF.first_s, counts=False)
            raise
        if self.has_live_model and claim.reason in (CRASH, STOPPED):  # what that try took of it nobody knows
            result = replace(result, cost_usd=None)
        return replace(result, mail_key=claim.mail_key)

    async def _release_late(self, claim: Claim) -> None:
        """End a claim that an outage of the ledger cut short, which is no try of the mail."""
        with suppress(LeaseLostError):
            await self._outcomes.release(claim, "ledger_outage", 0.0, counts=False)
        self.memory.unreleased.pop(claim.mail_key, None)  # a copy of the mail may be worked on at the same time

    async def _is_another(self, entry: InboxEntry, state: Free | Done, location_key: str) -> bool:
        """Whether the ledger knows another mail by this id than the one that has it now.

        A mailbox that was restored gives UIDs anew, and files of a Maildir may be named alike. Only what came since can
        be another mail: of one that came before, an earlier version may have seen another identity.
        """
        if entry.received <= state.first_seen or state.mail_key == location_key:
            return False
        raw = await self._read(entry)
        return isinstance(raw, bytes) and self._identify(raw, location_key)[1] != state.mail_key

    async def _free_if_ended(self, entry: InboxEntry, state: Busy) -> bool:
        """Whether the mail was freed since the agent that claimed it, on this machine, was killed.

        A reply that its mail server may still be sending is waited for: its proof may come late.
        """
        if not has_ended(state.owner):
            return False
        sending = self.copy_wait_s == 0
        if not await asyncio.to_thread(self.ledger.free, state.mail_key, state.owner, sending=sending):
            return False
        logger.warning("Email %s is free again: the agent that claimed it, %s, runs no more", entry.id, state.owner)
        return True

    async def _resume(
        self, entry: InboxEntry, location_key: str, state: Busy | Waiting | Done, listed_at: float
    ) -> WorkResult:
        """The result of a mail that the ledger does not let us claim."""
        if isinstance(state, Busy):
            # Whether an agent on this machine still runs can be seen before its lease is over.
            retry_s = min(state.retry_in_s, NEIGHBOUR_CHECK_S) if is_on_this_machine(state.owner) else state.retry_in_s
            return WorkResult("busy", retry_s)
        if isinstance(state, Waiting):
            return WorkResult("waiting", state.retry_in_s)
        # The agent died before it could set the mark, or the mail came twice, or staff removed the mark.
        if state.marked and state.outcome in PARKED:
            # Times alone do not tell: an agent may stand still for long after it listed the mail, and clocks go back.
            if not await self.mailbox.is_waiting(entry.id, self.settings.skip_seen):
                return WorkResult(state.outcome)
            reopen = self.ledger.reopen
            if not await asyncio.to_thread(reopen, location_key, fence=state.fence, listed_at=listed_at):
                return WorkResult("waiting", RETRY_BACKOFF.first_s)  # the list may be older than the mark
            logger.info("Email %s is processed again: its mark was removed", entry.id)
            return WorkResult("busy")
        if state.outcome == "observed" or self._observes:
            return WorkResult("observed", reason=state.reason)
        add_log_fields(mail_key=state.mail_key)
        logger.info("Email %s was finished before: %s", entry.id, state.outcome)
        return await self._outcomes.mark(entry, location_key, WorkResult(state.outcome))

    async def _read(self, entry: InboxEntry) -> bytes | AgentError:
        """The mail, or why it cannot be read although others can."""
        if entry.size > MAX_MAIL_BYTES:
            return ProcessingError(f"The mail has {entry.size} bytes, too many to be read", TOO_LARGE)
        try:
            raw = await self.mailbox.read_raw(entry.id, MAX_MAIL_BYTES)
        except IntegrationError as error:
            if error.code == MAIL_NOT_FOUND or error.outage:
                raise
            return error
        self.memory.suspects["read"].succeeded()
        return raw

    def _identify(self, raw: bytes | AgentError, location_key: str) -> tuple[Email | bytes | AgentError, str]:
        """The mail, parsed if it can be, and its key in the ledger."""
        if isinstance(raw, AgentError):
            return raw, location_key
        try:
            email = parse_email(raw)
            return email, mail_identity(email, self.processor.identity_key)
        except Exception as error:  # parsed once more when it is processed, where the failure counts as a try
            if not isinstance(error, ProcessingError):
                logger.debug("Unexpected failure", exc_info=True)
            return raw, content_identity(raw, self.processor.identity_key)

    async def _work_on_claim(self, entry: InboxEntry, claim: Claim, mail: Email | bytes | AgentError) -> WorkResult:
        if (result := await self._end_of_earlier_reply(entry, claim)) is not None:
            return result
        if isinstance(mail, AgentError):
            return await self._outcomes.after_error(entry, claim, "read", mail)
        if max(claim.attempts - 1, claim.crashes) >= self.settings.max_attempts:
            return await self._outcomes.quarantine(entry, claim, claim.reason)
        return await self._process(entry, claim, mail)

    async def _end_of_earlier_reply(self, entry: InboxEntry, claim: Claim) -> WorkResult | None:
        """The result of a mail whose reply an earlier try sent, or may have sent; None if none was sent."""
        if self._observes and claim.previous not in ("new", "claimed"):
            logger.warning("Email %s was begun in another mode; it is left for that", entry.id)
            return await self._outcomes.release(claim, OTHER_MODE, self.lease_s, counts=False, waits=True)
        if claim.previous != "sending":
            return None
        is_draft = claim.delivery == "draft"
        message_id = str(claim.reply_message_id)
        try:
            if is_draft:
                proof = _DRAFT_PROOFS[await self.mailbox.find_draft(message_id)]
            else:
                proof = await self.mailbox.find_sent(message_id, self.copy_wait_s)
        except IntegrationError as error:
            return await self._outcomes.after_error(entry, claim, "proof", error)
        if proof == "unknown":
            logger.error(
                "Email %s may or may not have been answered, and nobody can tell. Look for its reply, then answer it "
                "by hand or take its mark away",
                entry.id,
                extra=outcome_fields("unknown", "no_proof"),
            )
            return await self._outcomes.finish(entry, claim, "unknown", "no_proof")
        if proof == "not_sent":
            await asyncio.to_thread(self.ledger.not_sent, claim)
            return None
        outcome: MailMark = "drafted" if is_draft else "answered"
        logger.info("Email %s was %s before the agent stopped", entry.id, outcome, extra=outcome_fields(outcome))
        return await self._outcomes.finish(entry, claim, outcome, _PROVED)

    async def _process(self, entry: InboxEntry, claim: Claim, mail: Email | bytes) -> WorkResult:
        limited = self.processor.llm
        if self.max_cost_usd is not None:
            lost = int(self.has_live_model and claim.reason == CRASH)
            limited = CostLimitedModel(limited, self.ledger, self.max_cost_usd, self.memory, lost)
        model = MeteredModel(limited)
        asked = CachingModel(model, self.memory.answers_to(claim.mail_key)) if self.has_live_model else model
        outbox = Outbox(self.mailbox, self.processor.ticketing, self.ledger, claim, entry.id, self.settings)
        processor = replace(
            self.processor,
            llm=asked,
            mail=outbox,
            ticketing=outbox,
            history=outbox,
            opened_ticket_id=claim.ticket_id,
        )
        budget_s, step_ms = self.settings.mail_budget_s, dict[str, float]()
        processed: ProcessingResult | None
        with counted_waits() as held_back:
            try:
                async with asyncio.timeout(budget_s):
                    processed = await processor.process_email(mail, entry.received or None, step_ms)
            except TimeoutError:
                processed = None
        if processed is not None:
            add_log_fields(scenario=processed.scenario_used, duration_ms=processed.processing_time_ms)
        tokens = None if model.usage.uncounted else model.usage.total
        add_log_fields(tokens=tokens, cost_usd=model.cost_usd)
        if tokens != 0:
            price = "unknown cost" if model.cost_usd is None else f"{amount(model.cost_usd)} USD"
            logger.info("Email %s took %s tokens in %d calls (%s)", entry.id, tokens or "unknown", model.calls, price)
        try:
            if processed is None:
                # A mail is not to blame for what the model's rate limit took of its time.
                error: AgentError = ProcessingError(f"The {budget_s:g} s for one mail are over", OVER_BUDGET)
                if held_back.seconds >= budget_s / 2:
                    error = LLMError("The rate limit took the time for one mail", "llm_rate_limited", outage=True)
                result = await self._outcomes.after_error(entry, claim, next(reversed(step_ms), "parse"), error)
            else:
                result = await self._conclude(entry, claim, processed, model)
        except AgentError as failure:  # of ledger or mailbox; what the model took is known all the same
            result = await self._outcomes.after_error(entry, claim, None, failure)
        result = replace(result, tokens=model.usage.total, cost_usd=model.cost_usd, step_ms=step_ms)
        if processed is None:
            return result
        if (
            result.ended
            or result.disposition not in ("failed", "outage")
            or str(processed.error_code).startswith(f"{MODEL}_")
        ):
            self.memory.forget_answers(claim.mail_key)
        return replace(
            result,
            scenario=processed.scenario_used or "",
            ticket_id=processed.ticket_id or claim.ticket_id,
            answered_by=answered_by(processed, model if self.has_live_model else None),
        )

    async def _conclude(
        self, entry: InboxEntry, claim: Claim, result: ProcessingResult, model: MeteredModel
    ) -> WorkResult:
        """What the ledger and the mailbox are told of a mail that was processed."""
        for step in result.step_ms.keys() - {result.failed_step}:
            self.memory.suspects[step].succeeded()
        if result.success:
            by_template = self.has_live_model and model.offline_calls > 0
            outcome, code = log_processed(entry.id, result, observes=self._observes, by_template=by_template)
            reason = model.fallback_reason if by_template else None
            written = written_reply(result, claim.mail_key, self.processor.identity_key)
            return await self._outcomes.finish(entry, claim, outcome, code, reason, written)
        assert result.error is not None
        ticket_id = result.ticket_id or claim.ticket_id
        return await self._outcomes.after_error(entry, claim, str(result.failed_step), result.error, ticket_id)

    @property
    def _outcomes(self) -> OutcomeWriter:
        return OutcomeWriter(self.mailbox, self.ledger, self.settings, self.memory, self.lease_s)

    @property
    def _observes(self) -> bool:
        return self.settings.mode == "observe"

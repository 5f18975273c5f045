"""One mail from raw to ProcessingResult: parse, may_reply, triage, check_warranty, draft, create_ticket, send."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from guarantee_email_agent.email.conversation import (
    answered_message_ids,
    follow_up_note,
    machine_reply_reason,
)
from guarantee_email_agent.email.hand_over import (
    asked_for,
    contradicts,
    day_of_mail,
    hand_over_reasons,
    reasons_beside_number,
)
from guarantee_email_agent.email.identity import (
    DEFAULT_DOMAIN,
    mail_identity,
    note_key,
    reply_message_id,
    ticket_key,
)
from guarantee_email_agent.email.model_requests import ModelRequests
from guarantee_email_agent.email.no_reply import no_reply_reason
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import (
    AnswerPolicy,
    IncomingMail,
    ModelSettings,
    ProcessingResult,
    Progress,
    Triage,
)
from guarantee_email_agent.email.recipient import reply_recipient
from guarantee_email_agent.email.reply import (
    as_draft,
    choose_language,
    compose_reply,
    unproved_subject,
)
from guarantee_email_agent.instructions.hand_over_lexicon import CONTRADICTION, FOLLOW_UP, UNEXPLAINED
from guarantee_email_agent.instructions.instruction import Instructions, ScenarioInstruction
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.instructions.template import PLACEHOLDER, TICKET_PLACEHOLDER
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.llm.prompts import MAX_NUMBERS, numbers_key
from guarantee_email_agent.reading.doubt import MAX_DOUBT, Doubt, measure_doubt, measure_doubt_of_answer
from guarantee_email_agent.reading.numbers import Tiers, read_numbers, stands_in, tiers_of
from guarantee_email_agent.services.look_up_answer import WITHHELD, LookUpAnswer, parse_look_up_answer
from guarantee_email_agent.services.ports import (
    LookUpService,
    ReplyHistory,
    ReplySender,
    Thread,
    TicketingSystem,
    parse_ticket_id,
)
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError, IntegrationError, ProcessingError
from guarantee_email_agent.utils.retry import call_with_retry

logger = logging.getLogger(__name__)

RawEmail = Mapping[str, object] | bytes | Email
DEFAULT_POLICY = AnswerPolicy()
OPEN_TICKET_NUMBER = "[ticket number]"
"""Stands in a draft until a person has opened the ticket."""


class InstructionSource(Protocol):
    """Where instructions come from; asked anew for every mail."""

    def load(self) -> Instructions: ...


@dataclass(frozen=True, slots=True)
class EmailProcessor:
    """Processes one mail at a time; holds no state between mails.

    identity_key: makes the ids of replies and tickets unguessable (see `identity`). reply_domain: of a reply's
    Message-ID. history: what the agent did before; None where every mail is the first. opened_ticket_id: of the ticket
    that an earlier try, in another mode, opened for the mail that comes now. look_ups: by name.
    """

    mail: ReplySender
    look_ups: Mapping[str, LookUpService]
    ticketing: TicketingSystem
    llm: LanguageModel
    instructions: InstructionSource
    model: ModelSettings
    clock: Clock
    policy: AnswerPolicy = DEFAULT_POLICY
    history: ReplyHistory | None = None
    identity_key: bytes = b""
    reply_domain: str = DEFAULT_DOMAIN
    opened_ticket_id: str | None = None

    async def process_email(
        self, raw_email: RawEmail, arrived_at: float | None = None, step_ms: dict[str, float] | None = None
    ) -> ProcessingResult:
        """Answer one mail, or say why not. Never raises; a failed mail stays unprocessed for the next attempt.

        raw_email: RFC 5322 bytes, a mapping with `subject`, `body`, `from`, `received`, `message_id`, or an `Email`.
        arrived_at: when the mailbox took it, in seconds since 1970. step_ms: gets the time of each step, of the one in
        which this is cancelled, too.
        """
        started = self.clock.monotonic()
        progress = Progress(_message_id_of(raw_email), self.clock, step_ms)
        try:
            await self._process(raw_email, arrived_at, progress)
        except AgentError as error:
            progress.fail(error)
        except Exception as error:
            logger.debug("Unexpected failure in step %s", progress.step, exc_info=True)
            # The text of an unknown exception may hold the customer's words, so only its type is reported.
            what = f"Unexpected {type(error).__name__} in step {progress.step}"
            progress.fail(ProcessingError(what, "processing_unexpected"))
        finally:
            progress.end_step()
        return progress.result(self.clock.monotonic() - started)

    async def _process(self, raw_email: RawEmail, arrived_at: float | None, progress: Progress) -> None:
        email = raw_email if isinstance(raw_email, Email) else parse_email(raw_email)
        progress.record(message_id=email.message_id)

        progress.step = "instructions"
        instructions = self.instructions.load()

        progress.step = "may_reply"
        thread = await self._find_thread(email)
        if reason := self._no_reply_reason(email, thread, arrived_at, instructions):
            scenario = instructions.route(Situation(automatic=True))
            progress.record(success=True, scenario_used=scenario.name, skip_reason=reason)
            return
        mail = self._incoming_mail(email, thread, arrived_at)
        if reasons := await hand_over_reasons(mail, instructions, self.policy, self.history, self.identity_key):
            await self._hand_over(mail, reasons, instructions, progress)
            return

        progress.step = "triage"
        requests = ModelRequests(self.llm, self.model)
        triage = await self._triage(mail, instructions, requests)
        progress.record(triage=triage)
        if reasons := triage.hand_over or reasons_beside_number(mail, instructions, triage):
            await self._hand_over(mail, reasons, instructions, progress)
            return

        doubt = doubt_of_mail(email, instructions, triage, asked=thread is not None)
        progress.record(doubt=doubt.percent)
        if doubt.percent > MAX_DOUBT - self.policy.caution:
            logger.info("%s", doubt.describe())
            await self._hand_over(mail, (UNEXPLAINED,), instructions, progress)
            return

        progress.step = "check_warranty" if triage.look_up is None or triage.look_up.is_of_warranties else "look_up"
        answer = await self._look_up(mail, triage, progress)

        today = day_of_mail(email.received, arrived_at)
        if answer and triage.look_up and contradicts(answer, triage.look_up, instructions, today):
            await self._hand_over(mail, (CONTRADICTION,), instructions, progress)
            return

        situation = Situation(False, triage.topic, triage.count, answer.status if answer else None)
        scenario = instructions.route(situation)
        tells = triage.look_up is not None and situation.status in triage.look_up.told_statuses
        progress.record(scenario_used=scenario.name, asks_back=scenario.asks_for is not None and not tells)

        progress.step = "draft"
        language = instructions.reply_language(scenario, triage.language)
        facts = _reply_facts(triage, answer, instructions)
        draft, sentences = await requests.choose_sentences(email, instructions, scenario, facts, language)
        progress.record(reply_sentences=sentences)

        progress.step = "create_ticket"
        body = await self._create_ticket(mail, scenario, triage.look_up, facts, draft, progress)

        progress.step = "send"
        progress.record(reply_language=language)
        await self._send(mail, scenario, body, language, progress)

    async def _find_thread(self, email: Email) -> Thread | None:
        if self.history is None or not (message_ids := answered_message_ids(email)):
            return None
        return await self.history.find_thread(message_ids)

    def _no_reply_reason(
        self, email: Email, thread: Thread | None, arrived_at: float | None, instructions: Instructions
    ) -> str | None:
        policy = self.policy
        if reason := no_reply_reason(email, policy.own_addresses, policy.trusted_forms):
            return reason
        if thread is None:
            return None
        approved = [scenario.approved_text for scenario in instructions.scenarios]
        asked = asked_for(thread, instructions) is not None
        wants_person = bool(instructions.hand_over.find(f"{email.own_subject}\n\n{email.new_text}"))
        return machine_reply_reason(email, thread, arrived_at, approved, asked=asked, wants_person=wants_person)

    def _incoming_mail(self, email: Email, thread: Thread | None, arrived_at: float | None) -> IncomingMail:
        """The mail with what its headers decide about it."""
        verified = self.policy.sender_check == "off" or self._is_proved(email)
        # A forged mail of a trusted form would send our reply to anybody.
        recipient = reply_recipient(email, self.policy.trusted_forms) if verified else email.sender
        identity = mail_identity(email, self.identity_key)
        return IncomingMail(email, recipient or email.sender, verified, identity, thread, arrived_at)

    def _is_proved(self, email: Email) -> bool:
        from guarantee_email_agent.email.sender_authentication import sender_verdict  # start-up: few check senders

        return sender_verdict(email, self.policy.authserv_id or "") == "verified"

    async def _hand_over(
        self, mail: IncomingMail, reasons: tuple[str, ...], instructions: Instructions, progress: Progress
    ) -> None:
        """Leave the mail to a person, with a note on its conversation's ticket."""
        progress.step = "hand_over"
        scenario = instructions.route(Situation(hand_over=True))
        if mail.thread is not None and mail.thread.ticket_id and self.policy.mode == "answer":
            await self._add_note(mail, mail.thread.ticket_id, reasons)
        progress.record(success=True, scenario_used=scenario.name, hand_over_reasons=reasons)

    async def _add_note(self, mail: IncomingMail, ticket_id: str, reasons: tuple[str, ...]) -> None:
        """Say on the ticket where the mail is; its words stay in the mailbox."""
        note, key = follow_up_note(mail.email, reasons), note_key(mail.identity)
        try:
            await call_with_retry(lambda: self.ticketing.add_note(ticket_id, note, key), self.clock)
        except IntegrationError as error:
            if error.outage or error.retryable:
                raise
            # A ticket that is gone must not keep the mail from a person.
            logger.warning("Ticket %s took no note: %s", ticket_id, error.code)

    async def _triage(self, mail: IncomingMail, instructions: Instructions, requests: ModelRequests) -> Triage:
        """What the mail is about. In a conversation only the answer to what we asked is answered again."""
        email = mail.email
        wanted = asked_for(mail.thread, instructions) if mail.thread else None
        answer = await requests.triage(email, instructions, wanted)
        lexicon = instructions.lexicon
        named = dict.fromkeys(answer.get("hand_over", ()))
        reasons = tuple(name for name in named if any(name == each.name for each in instructions.hand_over.reasons))
        choice = choose_language(email, instructions, quotes_us=mail.thread is not None)
        topic = answer["topic"]
        look_up = instructions.look_up_for(topic)
        if mail.thread is not None and (look_up is None or look_up.number != wanted):
            # Whatever else it is taken for: what may be answered is the answer to what we asked.
            look_up = next((each for each in instructions.look_ups if each.number == wanted), None)
            topic = look_up.topics[0] if look_up else topic
        if look_up is None:
            return Triage(topic, None, (), reasons or ((FOLLOW_UP,) if mail.thread else ()), language=choice.language)
        tiers = number_tiers(email, in_conversation=mail.thread is not None)
        reading = read_numbers(tiers, look_up.format, lexicon, asked=wanted is not None)
        numbers = reading.picked(answer[numbers_key(look_up.number)][:MAX_NUMBERS])
        if mail.thread is not None:
            # Given now, however it is spelled, and not only quoted; whoever answers may repeat it in the subject.
            quotes_number = any(stands_in(number, email.quoted_text) for number in numbers)
            gives_number = len(numbers) == 1 and stands_in(numbers[0], tiers.new) and not quotes_number
            numbers = numbers if gives_number else ()
            reasons = reasons or (() if gives_number or reading.unreadable or reading.unconfirmed else (FOLLOW_UP,))
        return Triage(topic, look_up, numbers, reasons, language=choice.language, reading=reading)

    async def _look_up(self, mail: IncomingMail, triage: Triage, progress: Progress) -> LookUpAnswer | None:
        """What the service says of the one number, or that the sender may not be told."""
        look_up = triage.look_up
        if look_up is None or triage.count != "one":
            progress.skip_step()
            return None
        if not mail.verified:
            progress.skip_step()
            progress.record(look_up=look_up.name, status=WITHHELD.status)
            return WITHHELD
        number = triage.numbers[0]
        progress.record(look_up=look_up.name, number=number)
        raw = await call_with_retry(lambda: self.look_ups[look_up.name].look_up(number), self.clock)
        answer = parse_look_up_answer(raw, look_up)
        if answer.owner_email is not None and answer.owner_email.lower() != mail.recipient.lower():
            answer = WITHHELD
        progress.record(status=answer.status)
        return answer

    async def _create_ticket(
        self,
        mail: IncomingMail,
        scenario: ScenarioInstruction,
        look_up: LookUp | None,
        facts: Mapping[str, str | None],
        draft: str,
        progress: Progress,
    ) -> str:
        """The reply with the ticket's number in it; the reply as it is where the scenario opens no ticket."""
        if scenario.ticket is None:
            progress.skip_step()
            return draft
        fields = {
            **_ticket_fields(scenario, look_up, facts),
            "customer_email": mail.recipient,
        }
        if self.policy.mode != "answer":
            if self.opened_ticket_id is not None:
                return draft.replace(TICKET_PLACEHOLDER, self.opened_ticket_id)
            progress.record(ticket_fields=fields)
            return draft.replace(TICKET_PLACEHOLDER, OPEN_TICKET_NUMBER)
        data = {**fields, "idempotency_key": ticket_key(mail.identity)}
        # The key makes a repeated call harmless, so this may be retried like a question.
        raw = await call_with_retry(lambda: self.ticketing.create_ticket(data), self.clock)
        number = parse_ticket_id(raw)
        progress.record(ticket_created=True, ticket_id=number, ticket_fields=fields)
        return draft.replace(TICKET_PLACEHOLDER, number)

    async def _send(
        self,
        mail: IncomingMail,
        scenario: ScenarioInstruction,
        body: str,
        language: str,
        progress: Progress,
    ) -> None:
        """Send the reply, store it for a person to send, or only say that it would have been sent."""
        message_id = reply_message_id(mail.identity, self.reply_domain)
        # A sender who failed the check could have us send words to somebody else; unchecked, the sender may be anybody.
        subject = None if mail.verified else ""
        if self.policy.sender_check == "off":
            subject = unproved_subject(mail.email.subject)
        reply = compose_reply(mail.email, mail.recipient, body, message_id, subject=subject, language=language)
        if self.policy.mode == "answer":
            await call_with_retry(lambda: self.mail.send(reply), self.clock)
            progress.record(email_sent=True)
        elif self.policy.mode == "observe":
            progress.record(observed=True)
        else:
            draft = as_draft(reply, scenario.name, progress.ticket_fields)
            await call_with_retry(lambda: self.mail.save_draft(draft), self.clock)
            progress.record(drafted=True)
        progress.record(success=True, recipient=mail.recipient, response_body=body)


def doubt_of_mail(email: Email, instructions: Instructions, triage: Triage, *, asked: bool) -> Doubt:
    """How much of what the customer newly wrote nobody can explain. asked: it answers our question for a number."""
    text = f"{email.own_subject}\n\n{email.new_text}"
    if triage.reading.is_answer:
        return measure_doubt_of_answer(text)
    is_of_warranty = triage.look_up is not None and triage.look_up.is_of_warranties
    return measure_doubt(
        text,
        instructions.lexicon,
        triage.language,
        gives_number=bool(triage.numbers),
        is_answer=asked,
        gets_status=is_of_warranty and triage.count == "one" and not asked,
    )


def number_tiers(email: Email, *, in_conversation: bool) -> Tiers:
    """The texts of a mail in the order in which their numbers count. in_conversation: it answers a reply of ours."""
    texts = (email.subject, email.new_text, email.quoted_text, email.signature_text)
    return tiers_of(*texts, is_answer=email.is_answer, quotes_others=not in_conversation and email.quotes_others)


def _message_id_of(raw_email: RawEmail) -> str:
    value = raw_email.get("message_id") if isinstance(raw_email, Mapping) else None
    return value if isinstance(value, str) else ""


def _reply_facts(triage: Triage, answer: LookUpAnswer | None, instructions: Instructions) -> dict[str, str | None]:
    """What a reply may say. A word that no instruction file knows says nothing."""
    look_up = triage.look_up
    if look_up is None:
        return {}
    facts: dict[str, str | None] = dict.fromkeys(look_up.fact_names)
    if answer is None:
        facts[look_up.unreadable] = "yes" if triage.reading.unreadable else None
        facts[look_up.unconfirmed] = triage.reading.unconfirmed[0] if len(triage.reading.unconfirmed) == 1 else None
        return facts
    facts[look_up.status] = answer.status
    if answer is not WITHHELD:
        facts[look_up.number] = triage.numbers[0]
        for fact in look_up.facts:
            value = answer.facts.get(fact.name)
            facts[fact.name] = value if fact.form != "word" or value in instructions.words_of(fact) else None
    return facts


def _ticket_fields(
    scenario: ScenarioInstruction, look_up: LookUp | None, facts: Mapping[str, str | None]
) -> dict[str, str]:
    """What the instruction says, with facts filled in, and what follows from the look-up."""
    written = {
        name: PLACEHOLDER.sub(lambda match: facts.get(match[1]) or "", value)
        for name, value in (scenario.ticket or {}).items()
    }
    own = (look_up.number, look_up.status) if look_up else ()
    return {**written, **{name: facts[name] or "" for name in own}}

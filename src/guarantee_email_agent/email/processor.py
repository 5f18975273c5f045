"""One mail from raw to ProcessingResult: parse, may_reply, triage, check_warranty, draft, create_ticket, send."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from guarantee_email_agent.email.grounding import GroundingFacts, find_missing_facts, find_unsupported_claims
from guarantee_email_agent.email.identity import DEFAULT_DOMAIN, mail_identity, reply_message_id, ticket_key
from guarantee_email_agent.email.no_reply import no_reply_reason
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import ModelSettings, ProcessingResult, Triage
from guarantee_email_agent.email.reply import compose_reply
from guarantee_email_agent.email.verification import verify_serial_numbers
from guarantee_email_agent.instructions.instruction import Instructions, ScenarioInstruction
from guarantee_email_agent.instructions.lexicon import parse_lexicon
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.instructions.template import (
    FACTS,
    TICKET_PLACEHOLDER,
    MissingFactError,
    OfferedSentence,
    select_template,
)
from guarantee_email_agent.integrations.ports import (
    ReplySender,
    TicketingSystem,
    WarrantyAnswer,
    WarrantyApi,
    parse_ticket_id,
    parse_warranty_answer,
)
from guarantee_email_agent.llm.port import LanguageModel, WrongShapeError, tool_input
from guarantee_email_agent.llm.prompts import (
    CHOICE_TOOL,
    MAX_SERIAL_NUMBERS,
    choice_objection,
    choice_request,
    draft_request,
    is_choice,
    is_draft,
    is_triage,
    triage_request,
    with_objection,
)
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError, ProcessingError
from guarantee_email_agent.utils.retry import RetryPolicy, call_with_retry

logger = logging.getLogger(__name__)

RawEmail = Mapping[str, object] | bytes | Email
DEFAULT_RETRY = RetryPolicy()
MAX_CHOICES = 2
MAX_DRAFTS = 2

# A reply repeats the number, perhaps to somebody whose address was forged: no status, and nothing that is a link.
_MAKES_A_CLAIM = re.compile(r"VALID|EXPIRE|[.][A-Z]{2,}(?:/|$)", re.IGNORECASE)


class InstructionSource(Protocol):
    """Where instructions come from; asked anew for every mail."""

    def load(self) -> Instructions: ...


@dataclass(frozen=True, slots=True)
class EmailProcessor:
    """Processes one mail at a time; holds no state between mails.

    identity_key: makes the ids of replies and tickets unguessable (see `identity`). reply_domain: of a reply's
    Message-ID.
    """

    mail: ReplySender
    warranty: WarrantyApi
    ticketing: TicketingSystem
    llm: LanguageModel
    instructions: InstructionSource
    model: ModelSettings
    clock: Clock
    own_addresses: frozenset[str] = frozenset()
    retry: RetryPolicy = DEFAULT_RETRY
    identity_key: bytes = b""
    reply_domain: str = DEFAULT_DOMAIN

    async def process_email(self, raw_email: RawEmail) -> ProcessingResult:
        """Answer one mail, or say why not. Never raises; a failed mail stays unprocessed for the next attempt.

        raw_email: RFC 5322 bytes, a mapping with `subject`, `body`, `from`, `received`, `message_id`, or an `Email`.
        """
        started = self.clock.monotonic()
        progress = _Progress(_message_id_of(raw_email))
        try:
            await self._process(raw_email, progress)
        except AgentError as error:
            progress.fail(error.code, error.message, error.details)
        except Exception as error:
            logger.debug("Unexpected failure in step %s", progress.step, exc_info=True)
            # The text of an unknown exception may hold the customer's words, so only its type is reported.
            progress.fail("processing_unexpected", f"Unexpected {type(error).__name__} in step {progress.step}")
        return progress.result(self.clock.monotonic() - started)

    async def _process(self, raw_email: RawEmail, progress: _Progress) -> None:
        email = raw_email if isinstance(raw_email, Email) else parse_email(raw_email)
        progress.record(message_id=email.message_id)

        progress.step = "instructions"
        instructions = self.instructions.load()

        progress.step = "may_reply"
        if reason := no_reply_reason(email, self.own_addresses):
            scenario = instructions.route(Situation(automatic=True))
            progress.record(success=True, scenario_used=scenario.name, skip_reason=reason)
            return

        progress.step = "triage"
        triage = await self._triage(email, instructions)

        progress.step = "check_warranty"
        answer = await self._check_warranty(triage, progress)

        situation = Situation(False, triage.intent, triage.serial_count, answer.status if answer else None)
        scenario = instructions.route(situation)
        progress.record(scenario_used=scenario.name)

        progress.step = "draft"
        facts = _reply_facts(triage, answer, instructions.coverage_words)
        draft = await self._draft(email, instructions, scenario, facts)

        progress.step = "create_ticket"
        identity = mail_identity(email, self.identity_key)
        body = await self._create_ticket(email.sender, identity, scenario, facts, draft, progress)

        progress.step = "send"
        reply = compose_reply(email, body, reply_message_id(identity, self.reply_domain))
        await call_with_retry(lambda: self.mail.send(reply), self.retry, self.clock)
        progress.record(success=True, email_sent=True, response_body=body)

    async def _triage(self, email: Email, instructions: Instructions) -> Triage:
        answer = await self._ask(triage_request(email, instructions), is_triage)
        candidates = answer["serial_numbers"][:MAX_SERIAL_NUMBERS]
        lexicon = parse_lexicon(instructions.main_body)
        numbers = verify_serial_numbers(candidates, email, lexicon)
        return Triage(answer["intent"], tuple(number for number in numbers if not _MAKES_A_CLAIM.search(number)))

    async def _check_warranty(self, triage: Triage, progress: _Progress) -> WarrantyAnswer | None:
        if triage.intent != "warranty" or triage.serial_count != "one":
            return None
        serial_number = triage.serial_numbers[0]
        progress.record(serial_number=serial_number)
        raw = await call_with_retry(lambda: self.warranty.check_warranty(serial_number), self.retry, self.clock)
        answer = parse_warranty_answer(raw)
        progress.record(warranty_status=answer.status)
        return answer

    async def _draft(
        self, email: Email, instructions: Instructions, scenario: ScenarioInstruction, facts: Mapping[str, str | None]
    ) -> str:
        """The scenario's reply with the sentences that a model chose; every word of it stands in the instructions."""
        template = select_template(scenario.templates, facts)
        if template is None:
            message = f"{scenario.name} has no reply for these facts. Add one to the instruction file"
            raise ProcessingError(message, "draft_template")
        chosen: Sequence[str] = ()
        if offered := template.offered(facts):
            request = choice_request(email, instructions, scenario, facts, offered)
            chosen = await self._choose(request, offered, scenario)
        try:
            return template.render(facts, chosen)
        except MissingFactError as error:
            message = f"The reply of {scenario.name} cannot be filled in: {error}"
            raise ProcessingError(message, "draft_template") from None

    async def _choose(
        self, request: Mapping[str, Any], offered: Sequence[OfferedSentence], scenario: ScenarioInstruction
    ) -> Sequence[str]:
        """Ids of the sentences that the model chose; none where it chose what it may not, twice."""
        for _ in range(MAX_CHOICES):
            answer = await self.llm.messages.create(**self.model.parameters(), **request)
            try:
                ids: Sequence[str] = tool_input(answer, CHOICE_TOOL, is_choice)["ids"]
                objection = choice_objection(ids, offered)
            except WrongShapeError as error:
                objection = error.objection
            if objection is None:
                return ids
            request = with_objection(request, objection)
        logger.warning("A model chose what was not offered, twice; %s is sent without its choice", scenario.name)
        return ()

    async def _write_freely(
        self, email: Email, instructions: Instructions, scenario: ScenarioInstruction, facts: Mapping[str, str | None]
    ) -> tuple[str, tuple[str, ...]]:
        """The model's own draft, for a person to send, and what in it the facts do not support.

        It is written once more where there is an objection to it.
        """
        grounding = GroundingFacts(
            facts,
            approved_text=scenario.approved_text,
            has_ticket=scenario.ticket is not None,
            allows_warranty_mentions=scenario.allows_warranty_mentions,
        )
        draft = ""
        objections: tuple[str, ...] = ()
        for _ in range(MAX_DRAFTS):
            request = draft_request(email, instructions, scenario, facts, objections)
            draft = str((await self._ask(request, is_draft))["body"])
            objections = find_unsupported_claims(draft, grounding) + find_missing_facts(draft, grounding)
            if not objections:
                break
        return draft, objections

    async def _create_ticket(
        self,
        sender: str,
        identity: str,
        scenario: ScenarioInstruction,
        facts: Mapping[str, str | None],
        draft: str,
        progress: _Progress,
    ) -> str:
        """The reply with the ticket's number in it; the reply as it is where the scenario opens no ticket."""
        if scenario.ticket is None:
            return draft
        fields = {
            **scenario.ticket,
            "serial_number": facts["serial_number"] or "",
            "warranty_status": facts["warranty_status"] or "",
            "customer_email": sender,
        }
        data = {**fields, "idempotency_key": ticket_key(identity)}
        # The key makes a repeated call harmless, so this may be retried like a question.
        raw = await call_with_retry(lambda: self.ticketing.create_ticket(data), self.retry, self.clock)
        number = parse_ticket_id(raw)
        progress.record(ticket_created=True, ticket_id=number, ticket_fields=fields)
        return draft.replace(TICKET_PLACEHOLDER, number)

    async def _ask(self, request: Mapping[str, Any], is_valid: Callable[[object], bool]) -> Mapping[str, Any]:
        """The input of the forced tool call; one of the wrong shape is asked for once more.

        Raises LLMError where the model refuses, is cut off, or answers in the wrong shape twice.
        """
        tool = request["tool_choice"]["name"]
        answer = await self.llm.messages.create(**self.model.parameters(), **request)
        try:
            return tool_input(answer, tool, is_valid)
        except WrongShapeError as error:
            request = with_objection(request, error.objection)
        return tool_input(await self.llm.messages.create(**self.model.parameters(), **request), tool, is_valid)


class _Progress:
    """The current step of one mail and its result so far; the only thing that changes while it is processed."""

    def __init__(self, message_id: str) -> None:
        self.step = "parse"
        self._known: dict[str, Any] = {"success": False, "message_id": message_id}

    def record(self, **known: Any) -> None:
        self._known.update(known)

    def fail(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        self.record(failed_step=self.step, error_code=code, error_message=message, error_details=dict(details or {}))

    def result(self, elapsed_s: float) -> ProcessingResult:
        return ProcessingResult(**self._known, processing_time_ms=round(elapsed_s * 1000))


def _message_id_of(raw_email: RawEmail) -> str:
    value = raw_email.get("message_id") if isinstance(raw_email, Mapping) else None
    return value if isinstance(value, str) else ""


def _reply_facts(
    triage: Triage, answer: WarrantyAnswer | None, coverage_words: frozenset[str]
) -> dict[str, str | None]:
    """What a reply may say. A date means something for a known number only, and coverage for a valid warranty.

    coverage_words: those that the instruction files know; any other says nothing.
    """
    if answer is None:
        return dict.fromkeys(FACTS)
    coverage = answer.coverage.casefold() if answer.coverage and answer.status == "valid" else None
    return {
        "serial_number": triage.serial_numbers[0],
        "warranty_status": answer.status,
        "expiration_date": answer.expiration_date if answer.status in ("valid", "expired") else None,
        "coverage": coverage if coverage in coverage_words else None,
    }

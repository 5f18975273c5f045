"""What is asked of a language model about one mail, and what of its answers is believed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.processor_models import ModelSettings
from guarantee_email_agent.instructions.instruction import Instructions, ScenarioInstruction
from guarantee_email_agent.instructions.template import MissingFactError, OfferedSentence, select_template
from guarantee_email_agent.llm.port import LanguageModel, WrongShapeError, tool_input
from guarantee_email_agent.llm.prompts import (
    CHOICE_TOOL,
    choice_objection,
    choice_request,
    draft_request,
    is_choice,
    is_draft,
    is_triage,
    triage_request,
    with_objection,
)
from guarantee_email_agent.utils.errors import ProcessingError

logger = logging.getLogger(__name__)

MAX_CHOICES: Final = 2
MAX_DRAFTS: Final = 2


@dataclass(frozen=True, slots=True)
class ModelRequests:
    """The requests of one mail. Each raises LLMError where the model refuses, is cut off, or cannot be reached."""

    model: LanguageModel
    settings: ModelSettings
    writes_freely: bool = False
    """Whether a draft is asked for after the triage, and no choice."""

    async def triage(self, email: Email, instructions: Instructions, asked_for: str | None) -> Mapping[str, Any]:
        """`topic`, the numbers of each look-up, `hand_over`: candidates, of which code decides what they are worth."""
        request = triage_request(email, instructions, asked_for, before_draft=self.writes_freely)
        return await self._ask(request, lambda answer: is_triage(answer, instructions.topics, instructions.look_ups))

    async def choose_sentences(
        self,
        email: Email,
        instructions: Instructions,
        scenario: ScenarioInstruction,
        facts: Mapping[str, str | None],
        language: str,
    ) -> str:
        """The scenario's reply with the sentences that a model chose; every word of it stands in the instructions."""
        template = select_template(scenario.templates_in(language), facts)
        if template is None:
            message = f"{scenario.name} has no reply in '{language}' for these facts. Add one to the instruction file"
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
            answer = await self.model.messages.create(**self.settings.parameters(), **request)
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

    async def write_freely(
        self,
        email: Email,
        instructions: Instructions,
        scenario: ScenarioInstruction,
        facts: Mapping[str, str | None],
        language: str,
    ) -> tuple[str, tuple[str, ...]]:
        """The model's own draft, for a person to send, and what in it the facts do not support.

        It is written once more where there is an objection to it.
        """
        # Its patterns take longer to compile than a scenario, and only free drafts are checked.
        from guarantee_email_agent.email.grounding import GroundingFacts, find_missing_facts, find_unsupported_claims

        grounding = GroundingFacts(
            facts,
            approved_text=scenario.approved_text_in(language),
            has_ticket=scenario.ticket is not None,
            allows_warranty_mentions=scenario.allows_warranty_mentions,
        )
        draft = ""
        objections: tuple[str, ...] = ()
        for _ in range(MAX_DRAFTS):
            request = draft_request(email, instructions, scenario, facts, objections, language=language)
            draft = str((await self._ask(request, is_draft))["body"])
            objections = find_unsupported_claims(draft, grounding) + find_missing_facts(draft, grounding)
            if not objections:
                break
        return draft, objections

    async def _ask(self, request: Mapping[str, Any], is_valid: Callable[[object], bool]) -> Mapping[str, Any]:
        """The input of the forced tool call; one of the wrong shape is asked for once more.

        Raises LLMError where the model refuses, is cut off, or answers in the wrong shape twice.
        """
        tool = request["tool_choice"]["name"]
        answer = await self.model.messages.create(**self.settings.parameters(), **request)
        try:
            return tool_input(answer, tool, is_valid)
        except WrongShapeError as error:
            request = with_objection(request, error.objection)
        return tool_input(await self.model.messages.create(**self.settings.parameters(), **request), tool, is_valid)

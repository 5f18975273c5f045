"""What is asked of a language model about one mail, and what of its answers is believed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.processor_models import ModelSettings
from guarantee_email_agent.instructions.instruction import Instructions, ScenarioInstruction
from guarantee_email_agent.instructions.router import UNCLEAR_TOPIC
from guarantee_email_agent.instructions.template import MissingFactError, OfferedSentence, select_template
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.llm.port import LanguageModel, WrongShapeError, tool_input
from guarantee_email_agent.llm.prompts import (
    CHOICE_TOOL,
    TRIAGE_TOOL,
    choice_objection,
    choice_request,
    is_choice,
    is_triage,
    number_formats,
    triage_request,
    with_objection,
)
from guarantee_email_agent.utils.errors import ProcessingError

logger = logging.getLogger(__name__)

MAX_CHOICES: Final = 2


def mail_data(email: Email) -> dict[str, Any]:
    """What a model sees of a mail. is_answer: the subject says so, and repeats an earlier one."""
    return {
        "subject": email.subject,
        "is_answer": email.is_answer,
        "from": email.sender,
        "received": email.received,
        "attachments": list(email.attachments),
        "new_text": email.new_text,
        "quoted_text": email.quoted_text,
        "signature": email.signature_text,
    }


class ModelRequests(NamedTuple):
    """The requests of one mail. Each raises LLMError where the model refuses, is cut off, or cannot be reached."""

    model: LanguageModel
    settings: ModelSettings

    async def triage(self, email: Email, instructions: Instructions, asked_for: str | None) -> Mapping[str, Any]:
        """`topic`, the numbers of each look-up, `hand_over`: candidates, of which code decides what they are worth.

        An answer in another shape is asked for once more; a second one raises WrongShapeError.
        """
        if isinstance(self.model, InstructionInterpreter):  # takes what a request would be written of
            topics = [topic.name for topic in (*instructions.topics, UNCLEAR_TOPIC)]
            return self.model.triage(mail_data(email), topics, number_formats(instructions), asked_for)
        request = triage_request(mail_data(email), instructions, asked_for)

        def is_valid(answer: object) -> bool:
            return is_triage(answer, instructions.topics, instructions.look_ups)

        answer = await self.model.messages.create(**self.settings.parameters(), **request)
        try:
            return tool_input(answer, TRIAGE_TOOL, is_valid)
        except WrongShapeError as error:
            request = with_objection(request, error.objection)
        answer = await self.model.messages.create(**self.settings.parameters(), **request)
        return tool_input(answer, TRIAGE_TOOL, is_valid)

    async def choose_sentences(
        self,
        email: Email,
        instructions: Instructions,
        scenario: ScenarioInstruction,
        facts: Mapping[str, str | None],
        language: str,
    ) -> tuple[str, Mapping[str, str]]:
        """The scenario's reply with the sentences that a model chose, and each of its sentences by its id.

        Every word of it stands in the instructions.
        """
        template = select_template(scenario.templates_in(language), facts)
        if template is None:
            message = f"{scenario.name} has no reply in '{language}' for these facts. Add one to the instruction file"
            raise ProcessingError(message, "draft_template")
        chosen: Sequence[str] = ()
        offered = template.offered(facts)
        if offered and isinstance(self.model, InstructionInterpreter):
            chosen = self.model.choose_sentences(mail_data(email), [each.hint_data for each in offered])
        elif offered:
            request = choice_request(mail_data(email), instructions, scenario, facts, offered)
            chosen = await self._choose(request, offered, scenario)
        try:
            return template.compose(facts, chosen)
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

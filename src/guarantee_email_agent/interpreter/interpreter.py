"""The instruction interpreter: answers the agent's requests without a language model.

It is a pure function of the request. From the system prompt it takes the named elements of the instruction files, from
the user message the mail and the facts; it knows nothing else, so an edited instruction file changes its answer and a
broken one spoils it, as with a real model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guarantee_email_agent.instructions.lexicon import Lexicon, parse_lexicon
from guarantee_email_agent.instructions.markup import MarkupError
from guarantee_email_agent.instructions.phrases import TokenizedText, tokenize
from guarantee_email_agent.instructions.template import MissingFactError, parse_templates, select_template
from guarantee_email_agent.interpreter.intent import tell_intent
from guarantee_email_agent.interpreter.serial_numbers import (
    asks_for_serial_number,
    find_answer,
    find_serial_numbers,
)
from guarantee_email_agent.llm.port import OFFLINE_MODEL, Message, ToolUseBlock
from guarantee_email_agent.llm.prompts import DRAFT_TOOL, TRIAGE_TOOL, element_in
from guarantee_email_agent.utils.errors import LLMError


class InstructionInterpreter:
    """A `LanguageModel` that follows the instruction files to the letter."""

    @property
    def messages(self) -> InstructionInterpreter:
        return self

    async def create(
        self,
        *,
        system: Sequence[Mapping[str, Any]] | str,
        messages: Sequence[Mapping[str, Any]],
        tool_choice: Mapping[str, Any],
        **_: Any,
    ) -> Message:
        """Answer a triage or a draft request through its tool.

        Raises LLMError for a request it cannot answer: another tool, or instructions without what it needs.
        """
        tool = tool_choice.get("name")
        texts = [system] if isinstance(system, str) else [str(block.get("text", "")) for block in system]
        content = _text_of(messages[-1]["content"]) if messages else ""
        try:
            if tool == TRIAGE_TOOL:
                answer = _triage(texts, content)
            elif tool == DRAFT_TOOL:
                answer = _draft(texts, content)
            else:
                raise _cannot(f"the tool '{tool}' is not one it knows")
        except MarkupError as error:
            raise _cannot(f"the instructions cannot be read: {error.message}") from None
        return Message("msg_offline", OFFLINE_MODEL, (ToolUseBlock("toolu_offline", str(tool), answer),), "tool_use")

    async def aclose(self) -> None:
        """Nothing is open."""


def _triage(texts: Sequence[str], content: str) -> dict[str, Any]:
    mail = element_in(content, "mail")
    if not isinstance(mail, dict):
        raise _cannot("the request holds no mail")
    rules = parse_lexicon(texts[0])
    subject, new_text = str(mail.get("subject", "")), str(mail.get("new_text", ""))
    quoted, signature = str(mail.get("quoted_text", "")), str(mail.get("signature", ""))
    written = tokenize(f"{subject}\n\n{new_text}")
    if mail.get("is_answer"):
        # The subject of an answer repeats what somebody wrote earlier.
        tiers = (tokenize(new_text), tokenize(f"{subject}\n\n{quoted}"), tokenize(signature))
    else:
        tiers = (written, tokenize(quoted), tokenize(signature))
    numbers = _numbers_by_tier(tiers, rules)
    if not numbers and asks_for_serial_number(tiers[1], rules):
        numbers = find_answer(tiers[0], rules)
    return {"intent": tell_intent(written, tiers[1], bool(numbers), rules), "serial_numbers": list(numbers)}


def _numbers_by_tier(tiers: Sequence[TokenizedText], rules: Lexicon) -> tuple[str, ...]:
    """What stands in the first tier that gives any; a labelled number further down beats a mere form further up."""
    unlabelled: tuple[str, ...] = ()
    for words in tiers:
        found = find_serial_numbers(words, rules) if words.folded else None
        if found is not None and found.numbers:
            if found.labelled:
                return found.numbers
            unlabelled = unlabelled or found.numbers
    return unlabelled


def _draft(texts: Sequence[str], content: str) -> dict[str, Any]:
    facts = element_in(content, "facts")
    if not isinstance(facts, dict):
        raise _cannot("the request holds no facts")
    for text in reversed(texts):
        template = select_template(parse_templates(text), facts)
        if template is not None:
            try:
                return {"body": template.render(facts)}
            except MissingFactError as error:
                raise _cannot(f"the reply template cannot be filled in: {error}") from None
    raise _cannot("the instructions hold no reply for these facts")


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, Mapping))
    return ""


def _cannot(reason: str) -> LLMError:
    return LLMError(f"The offline model cannot answer: {reason}", "llm_offline_request")

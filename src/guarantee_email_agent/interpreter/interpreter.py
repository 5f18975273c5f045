"""The instruction interpreter: answers the agent's requests without a language model.

Its answer follows from the request and the lexicon files alone. From the request it takes the topics, the mail, the
facts and the sentences to choose from, from the lexicon the words by which it reads a mail; so an edited instruction or
lexicon file changes its answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from guarantee_email_agent.instructions.lexicon import LexiconSource
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.instructions.phrases import PhraseMatcher, tokenize
from guarantee_email_agent.instructions.reply_markup import parse_hint, split_hints
from guarantee_email_agent.instructions.router import OTHER_TOPIC, UNCLEAR
from guarantee_email_agent.llm.port import OFFLINE_MODEL, Message, ModelClient, ToolUseBlock
from guarantee_email_agent.llm.prompts import (
    ASKED_FOR_ELEMENT,
    CHOICE_TOOL,
    NUMBERS_ELEMENT,
    TRIAGE_TOOL,
    element_in,
    numbers_key,
)
from guarantee_email_agent.reading.numbers import SERIAL_NUMBER, read_numbers, stands_in, tiers_of
from guarantee_email_agent.reading.topic import classify_topic, is_only_thanks
from guarantee_email_agent.utils.errors import LLMError


class InstructionInterpreter(ModelClient):
    """A `LanguageModel` that follows the instruction files to the letter. lexicon: asked anew for every mail."""

    def __init__(self, lexicon: LexiconSource) -> None:
        self._lexicon = lexicon

    async def create(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: Mapping[str, Any],
        **_: Any,
    ) -> Message:
        """Answer a triage or a choice through its tool.

        Raises LLMError for a request it cannot answer: another tool, or content without what it needs.
        """
        tool = tool_choice.get("name")
        content = _text_of(messages[-1]["content"]) if messages else ""
        if tool not in (TRIAGE_TOOL, CHOICE_TOOL):
            raise _request_error(f"the tool '{tool}' is not one it knows")
        mail, sentences = element_in(content, "mail"), element_in(content, "sentences")
        if not isinstance(mail, dict) or (tool == CHOICE_TOOL and not isinstance(sentences, list)):
            raise _request_error("the request holds no mail or no sentences")
        if tool == TRIAGE_TOOL:
            formats = element_in(content, NUMBERS_ELEMENT) or []
            answer = self.triage(mail, _topics_in(tools), formats, element_in(content, ASKED_FOR_ELEMENT))
        else:
            answer = {"ids": self.choose_sentences(mail, sentences)}
        return Message("msg_offline", OFFLINE_MODEL, (ToolUseBlock("toolu_offline", str(tool), answer),), "tool_use")

    async def aclose(self) -> None:
        """Nothing is open."""

    def triage(
        self,
        mail: Mapping[str, Any],
        topics: Collection[str],
        number_formats: Sequence[Mapping[str, Any]],
        asked_for: object,
    ) -> dict[str, Any]:
        """What is answered to such a request, for who has its parts."""
        lexicon = self._lexicon()
        subject, new_text, quoted, signature = (
            str(mail.get(name, "")) for name in ("subject", "new_text", "quoted_text", "signature")
        )
        is_answer = bool(mail.get("is_answer"))
        written = tokenize(f"{subject}\n\n{new_text}")
        tiers = tiers_of(subject, new_text, quoted, signature, is_answer=is_answer)
        by_name = {SERIAL_NUMBER.name: SERIAL_NUMBER} | {
            each["number"]: NumberFormat(each["number"], patterns=tuple(each["patterns"]), labels=tuple(each["labels"]))
            for each in number_formats
        }
        answer: dict[str, Any] = {numbers_key(name): [] for name in by_name}
        # The subject of an answer repeats what somebody wrote earlier.
        if is_only_thanks(tokenize(new_text) if is_answer else written, lexicon):
            return {"topic": OTHER_TOPIC if OTHER_TOPIC in topics else UNCLEAR, **answer}
        readings = {name: read_numbers(tiers, each, lexicon, asked=asked_for == name) for name, each in by_name.items()}
        serial = readings[SERIAL_NUMBER.name]
        topic = classify_topic(
            written,
            tokenize(tiers.quoted),
            serial.unreadable or any(stands_in(number, tiers.new) for number in serial.numbers),
            lexicon,
            [each for each in topics if each != UNCLEAR],
        )
        for name, reading in readings.items():
            answer[numbers_key(name)] = list(reading.numbers)
            own_topics = next((each["topics"] for each in number_formats if each["number"] == name), ())
            if reading.numbers and own_topics and name != SERIAL_NUMBER.name and topic in (OTHER_TOPIC, UNCLEAR):
                topic = own_topics[0]
        return {"topic": topic, **answer}

    def choose_sentences(self, mail: Mapping[str, Any], sentences: Sequence[Mapping[str, Any]]) -> list[str]:
        """The ids of those with a hint that stands in what the customer newly wrote; of a group, the first."""
        # The subject of an answer repeats what somebody wrote earlier.
        subject, new_text = str(mail.get("subject", "")), str(mail.get("new_text", ""))
        words = tokenize(new_text if mail.get("is_answer") else f"{subject}\n\n{new_text}")
        hints = tuple((sentence["id"], sentence.get("hints", "")) for sentence in sentences)
        fitting = {match.payload for match in _hint_matcher(hints).find(words, shorter=True)}
        chosen: dict[object, str] = {}
        for sentence in sentences:
            if sentence["id"] in fitting:
                chosen.setdefault(sentence.get("group", sentence["id"]), sentence["id"])
        return list(chosen.values())


def _topics_in(tools: Sequence[Mapping[str, Any]]) -> Collection[str]:
    """The topics among which the triage tool lets a model choose."""
    for tool in tools:
        schema = tool.get("input_schema", {})
        if topics := schema.get("properties", {}).get("topic", {}).get("enum"):
            return cast("Collection[str]", topics)
    raise _request_error("the request names no topics")


@lru_cache(maxsize=64)
def _hint_matcher(hints: tuple[tuple[str, str], ...]) -> PhraseMatcher[str]:
    """Finds sentences by their ids; the hints were checked when the instructions were loaded."""
    return PhraseMatcher(
        parse_hint(hint)._replace(payload=sentence_id)
        for sentence_id, phrases in hints
        for hint in split_hints(phrases)
    )


def _text_of(content: object) -> str:
    """A message's text, which may stand in blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, Sequence) else ()
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, Mapping))


def _request_error(reason: str) -> LLMError:
    return LLMError(f"The offline model cannot answer: {reason}", "llm_offline_request")

"""A model that answers rubrics as a test says, and one question asked of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from messages_server import MessagesServer, Reply, answer, anthropic_config, interpreted_reply, tool_call

from guarantee_email_agent.judging.rubric import TOOL, answer_rubric
from guarantee_email_agent.llm.prompts import element_in
from guarantee_email_agent.llm.provider import live_model
from guarantee_email_agent.utils.clock import SystemClock

QUESTION: Final = "Does the answer say that the warranty is valid?"
SAID: Final = "Your warranty is valid until 2025-12-31."
PARAMETERS: Final = {"model": "claude-sonnet-4-6", "max_tokens": 200, "temperature": 0.0}
Answers = dict[str, Any]


def said(word: str, quote: str = "") -> Answers:
    return {"answer": word, "quote": quote}


def judge(
    own: Answers, control: Answers | None = None, *, told: bool = False, **more: Any
) -> Callable[[dict[str, Any]], Reply]:
    """A model that answers our question so, and the control with fail unless told otherwise. more: of the answer."""

    def reply(request: dict[str, Any]) -> Reply:
        if request["tools"][0]["name"] != TOOL:
            return interpreted_reply(request)
        questions = element_in(request["messages"][0]["content"], "questions")
        answers = [own if question == QUESTION else control or said("fail") for question in questions]
        return answer(tool_call(TOOL, {"answers": answers, "told_the_judge": told}), **more)

    return reply


def ask(server: MessagesServer, text: object, folder: Path, question: str = QUESTION) -> dict[str, Any]:
    async def asking() -> dict[str, Any]:
        model = live_model(anthropic_config(server.url), SystemClock())
        try:
            (row,) = await answer_rubric([question], "Is it valid?", text, model, PARAMETERS, folder)
        finally:
            await model.aclose()
        return row

    return asyncio.run(asking())

"""A language model whose answers a test writes down."""

import asyncio
from typing import Any

from guarantee_email_agent.llm.port import ModelClient


class ScriptedModel(ModelClient):
    """Gives its answers in order; an exception among them is raised."""

    def __init__(self, *answers: Any) -> None:
        self._answers = iter(answers)

    async def create(self, **_request: Any) -> Any:
        answer = next(self._answers)
        await asyncio.sleep(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

"""Answers of the language model that were paid for, kept until their mail comes to an outcome.

While another service is down, the same mail is tried again and again, and would be paid for each time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from guarantee_email_agent.llm.port import LanguageModel, ModelClient
from guarantee_email_agent.llm.request import request_digest

MAX_MAILS: Final = 1000
"""Those that failed last; a model's answer has some kilobytes."""


class KeptAnswers:
    """Of a process, by mail; in memory alone, since a customer's words may stand in them."""

    def __init__(self) -> None:
        self._by_mail: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def before(self, model: LanguageModel, mail_key: str) -> LanguageModel:
        """A LanguageModel in front of another one, for a mail: what that has answered to the same request is given.

        Answers of the templates that stand in for a model are not kept: the model may be back.
        """
        kept = self._by_mail.setdefault(mail_key, {})
        self._by_mail.move_to_end(mail_key)
        if len(self._by_mail) > MAX_MAILS:
            self._by_mail.popitem(last=False)
        return _ModelWithMemory(model, kept)

    def forget(self, mail_key: str) -> None:
        """The mail came to an outcome, or what the model said of it was of no use."""
        self._by_mail.pop(mail_key, None)

    def __len__(self) -> int:
        return len(self._by_mail)


class _ModelWithMemory(ModelClient):
    def __init__(self, model: LanguageModel, kept: dict[str, Any]) -> None:
        self._model, self._kept = model, kept

    async def create(self, **request: Any) -> Any:
        digest = request_digest(request)
        if (answer := self._kept.get(digest)) is None:
            answer = await self._model.messages.create(**request)
            if getattr(answer, "fallback_reason", None) is None:
                self._kept[digest] = answer
        return answer

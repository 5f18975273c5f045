"""The Anthropic API, or any server that speaks `/v1/messages`: the port has its shape, so nothing is translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from guarantee_email_agent.llm.api_client import ApiModel

# The last API version whose requests may hold a temperature; from 2026-10-21 on every one is refused for it.
_VERSION_WITH_TEMPERATURE: Final = "2023-06-01"


class AnthropicModel(ApiModel):
    package: ClassVar[str] = "anthropic"
    label: ClassVar[str] = "Anthropic"
    public_address: ClassVar[str] = "https://api.anthropic.com"

    @classmethod
    def _connect(cls, sdk: Any, **options: Any) -> Any:
        # What customers write goes to the API and nowhere else.
        return sdk.AsyncAnthropic(open_telemetry=False, **options)

    async def _send(self, request: Mapping[str, Any]) -> Any:
        sent = dict(request)
        if (temperature := sent.pop("temperature", None)) is not None:
            sent["extra_body"] = {"temperature": temperature}
            sent["extra_headers"] = {"anthropic-version": _VERSION_WITH_TEMPERATURE}
        answer = await self.client.messages.create(**sent)
        if not _is_message(answer):
            return None
        answer.content = [block for block in answer.content if block.type != "text" or isinstance(block.text, str)]
        return answer


def _is_message(answer: Any) -> bool:
    """Whether the answer has what every answer has: the SDK hands over whatever JSON came."""
    content = getattr(answer, "content", None)
    return (
        isinstance(content, list)
        and isinstance(getattr(answer, "stop_reason", None), str)
        and all(isinstance(getattr(block, "type", None), str) for block in content)
    )

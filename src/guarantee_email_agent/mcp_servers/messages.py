"""What a server says of its tools and answers to calls, in the form of the protocol (MCP 2025-11-25, server/tools).

Written out here, since the SDK's own models take longer to load (0.2 s) than any of our servers to start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from guarantee_email_agent.services.call_errors import ERROR_META_KEY
from guarantee_email_agent.services.tool_error import ToolError
from guarantee_email_agent.utils.text import printable

MAX_TEXT_CHARS: Final = 65_536  # of the text beside structured content; for a mail of megabytes it would only double it


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool as clients see it; the schemas are JSON Schema. read_only, idempotent: None where nothing is said."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    title: str | None = None
    read_only: bool | None = None
    idempotent: bool | None = None

    def to_json(self) -> dict[str, Any]:
        annotations = {
            "readOnlyHint": self.read_only,
            "destructiveHint": None if self.read_only is None else False,  # no tool of ours takes anything away
            "idempotentHint": self.idempotent,
        }
        fields = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": {name: hint for name, hint in annotations.items() if hint is not None} or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a call: text for people, and the same as data. meta: what the caller is told beside it."""

    text: str
    structured_content: Mapping[str, Any] | None = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"content": [{"type": "text", "text": self.text}], "isError": self.is_error}
        if self.structured_content is not None:
            answer["structuredContent"] = self.structured_content
        if self.meta:
            answer["_meta"] = dict(self.meta)
        return answer


def structured_result(content: Mapping[str, Any]) -> ToolResult:
    """An answer as structured content, and as JSON text for clients that read text only."""
    return ToolResult(_as_text(content), dict(content))


def error_result(error: ToolError) -> ToolResult:
    message = printable(error.message)
    marks = {"retryable": error.retryable, "uncertain": error.uncertain}
    data = {"code": error.code, "message": message, **marks}
    return ToolResult(f"{error.code}: {message}", is_error=True, meta={ERROR_META_KEY: data})


def _as_text(content: Mapping[str, Any]) -> str:
    """For clients that read text only; of a whole mail it would be one copy too many."""
    if sum(len(value) for value in content.values() if isinstance(value, str)) <= MAX_TEXT_CHARS:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        if len(text) <= MAX_TEXT_CHARS:
            return text
    return f"over {MAX_TEXT_CHARS} characters of JSON: see the structured content"

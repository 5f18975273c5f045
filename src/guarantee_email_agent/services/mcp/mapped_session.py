"""A service behind somebody else's MCP server: its tools stand for ours, by a mapping of the configuration."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.mcp_server import OwnTool, ToolMapping
from guarantee_email_agent.files.yaml import locate
from guarantee_email_agent.services.call_errors import (
    FAILED,
    MalformedAnswerError,
    classify_message,
    declared_error,
    without_arguments,
)
from guarantee_email_agent.services.mcp.mapped_call import (
    UnmappedArgumentError,
    UnreadableAnswerError,
    answer_content,
    build_arguments,
    cannot_exist,
    is_empty,
    prose,
    read_answer,
    says_not_found,
)
from guarantee_email_agent.services.mcp.mapping_check import Misfit, find_misfits
from guarantee_email_agent.services.mcp.mcp_connection import OfferedTool, ToolAnswer
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError, MCPConnectionError
from guarantee_email_agent.utils.field_path import MISSING

logger = logging.getLogger(__name__)

MAX_SHOWN_MISFITS: Final = 3
_CALL_REFUSED: Final = r"(?i:-326\d\d|unknown tool|\btool\b.{0,80}\bnot found)"
"""What a server says of a tool or an argument that it does not have, which is no answer to the question."""


class MappedSession(McpSession):
    """An McpSession in the names of our tools. Those that the mapping does not name are not offered."""

    def __init__(
        self,
        name: str,
        launch: ServerLaunch,
        mappings: Mapping[str, ToolMapping],
        own_tools: Mapping[str, OwnTool],
        source: Path | None = None,
        **settings: Any,
    ) -> None:
        """source: the configuration file, whose lines errors name. settings: as of McpSession."""
        super().__init__(name, launch, **settings)
        self._mappings = mappings
        self._own_tools = own_tools
        self._source = source
        self._told_unmapped: set[str] = set()

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(self._mappings)

    def name_of(self, tool: str) -> str:
        return self._mappings[tool].tool if tool in self._mappings else tool

    async def require(self, calls: Mapping[str, frozenset[str]]) -> None:
        """Start it. Raises ConfigurationError for tools without a mapping, MCPConnectionError for what does not fit."""
        if unmapped := [tool for tool in calls if tool not in self._mappings]:
            raise ConfigurationError(
                f"{self._place(('tools',))} maps no {' and no '.join(unmapped)}, which the agent cannot do without "
                "(docs/tool-mapping.md). Map it, or take a server that offers it",
                "config_missing_key",
            )
        offered = (await self._connected()).tools
        if misfits := find_misfits(self._mappings, self._own_tools, offered):
            raise MCPConnectionError("\n".join(map(self._describe, misfits)), f"{self.name}_mapping_misfit")
        self._verified = offered

    async def offers(self, tool: str, arguments: AbstractSet[str], timeout_s: float) -> bool:  # noqa: ARG002
        return tool in self._mappings and (
            self._own_tools[tool].further or arguments <= self._mappings[tool].arguments.keys()
        )

    def may_sample(self, tool: str) -> bool:
        """Whether a call just to see is harmless: the server says so, or the configuration gives one."""
        mapping = self._mappings.get(tool)
        if mapping is None or not self._own_tools[tool].reads:
            return False
        offered = self._connection.tools.get(mapping.tool) if self._connection else None
        return bool(mapping.sample) or (offered is not None and offered.read_only)

    def asks_for(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a call reaches the server, whose numbers may be whole ones alone."""
        return not cannot_exist(self._mappings[tool], self._own_tools[tool], arguments)

    def sample(self, tool: str) -> Mapping[str, str]:
        """The arguments that the configuration gives for such a call."""
        return self._mappings[tool].sample

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """As McpSession's, by our tool's name, with its arguments and its answer.

        Raises IntegrationError, too, for what the mapping has no place for (`{name}_unmapped`, an outage).
        """
        mapping, own = self._mappings[tool], self._own_tools[tool]
        if cannot_exist(mapping, own, arguments):
            return _nothing_found(tool)
        try:
            theirs = build_arguments(mapping, own, arguments)
        except UnmappedArgumentError as error:
            message = f"{self._place(('tools', tool, 'arguments'))} {error}"
            if message not in self._told_unmapped:
                self._told_unmapped.add(message)
                logger.error("%s. Mails wait until that is mended", message)
            raise IntegrationError(message, f"{self.name}_unmapped", outage=True) from None
        answer = await self.answer(mapping.tool, theirs, timeout_s, arguments)
        content = answer_content(answer.structured, answer.text)
        told = answer.text if answer.failed else prose(content, answer.text)
        if told is not None:
            told = without_arguments(told, arguments)
            if self._is_not_found(mapping, answer, told):
                return _nothing_found(tool)
            if answer.failed or _is_failure(told, expects_json=content is MISSING and bool(mapping.result)):
                raise self._tool_error(answer, mapping.tool, arguments)
        try:
            if content is MISSING and mapping.result:
                raise UnreadableAnswerError("is no JSON")
            if is_empty(mapping, content):
                return _nothing_found(tool)
            return read_answer(mapping, own, content, arguments)
        except UnreadableAnswerError as error:
            self.log_response(mapping.tool, answer.text)
            raise MalformedAnswerError(self.name, mapping.tool, str(error)) from None

    def _describe_changes(self, offered: Mapping[str, OfferedTool]) -> str:
        misfits = find_misfits(self._mappings, self._own_tools, offered)
        shown = "; ".join(f"{'.'.join(each.path)}: {each.message}" for each in misfits[:MAX_SHOWN_MISFITS])
        more = f"; and {len(misfits) - MAX_SHOWN_MISFITS} more" if len(misfits) > MAX_SHOWN_MISFITS else ""
        if not misfits:
            return ""
        return f"the server's tools do not fit {self.launch.setting}.tools any more: {shown}{more}"

    def _is_not_found(self, mapping: ToolMapping, answer: ToolAnswer, told: str) -> bool:
        """Whether a text says so in the words of the mapping, and is nothing else by what we know of failures."""
        if declared_error(self.name, answer.declared) is not None or re.search(_CALL_REFUSED, told):
            return False
        return classify_message(told) is FAILED and says_not_found(mapping, told)

    def _describe(self, misfit: Misfit) -> str:
        return f"{self._place(('tools', *misfit.path))}: {misfit.message}"

    def _place(self, path: Sequence[str]) -> str:
        """A key of the mapping, with the file and its line where it is known."""
        whole = (*self.launch.setting.split("."), *path)
        if self._source is not None:
            with suppress(OSError, ValueError):
                text = self._source.read_text(encoding="utf-8")
                line = next((line for end in range(len(whole), 0, -1) if (line := locate(text, whole[:end]))), None)
                return f"{self._source.name}:{line}: {'.'.join(whole)}"
        return ".".join(whole)


def _nothing_found(tool: str) -> dict[str, Any]:
    """What our tool answers where there is no such thing."""
    return {"tickets": []} if tool == "find_ticket" else {"status": "not_found"}


def _is_failure(told: str, *, expects_json: bool) -> bool:
    """Whether a text is a failure that the server does not mark as one."""
    return told.lstrip()[:5].casefold() == "error" or (expects_json and classify_message(told) is not FAILED)


def not_tried(session: MappedSession, tool: str) -> str:
    """Why no sample call is made."""
    return (
        f"{session.name_of(tool)} was not tried, since it does not say that it only reads (readOnlyHint). "
        f"{session.launch.setting}.tools.{tool}.sample may give a call to try"
    )

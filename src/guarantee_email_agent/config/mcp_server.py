"""How one MCP server is reached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from guarantee_email_agent.config.tool_mapping import ToolMapping
from guarantee_email_agent.files.fields import not_blank, number, setting

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://[^\s/@]+(/\S*)?", re.IGNORECASE)


def _server_url(value: str) -> str | None:
    if "@" in value.partition("://")[2].partition("/")[0]:
        return "holds a user name or password; pass it as an environment variable that `env` names"
    return None if _URL.fullmatch(value) else f"must be a URL such as https://mcp.example.com/warranty, not {value!r}"


def _variable_names(names: tuple[str, ...]) -> str | None:
    for position, name in enumerate(names, 1):
        if not _VARIABLE_NAME.fullmatch(name):  # the text may be a secret, so it is not shown
            return f"must list names of environment variables, without values; item {position} is no name"
    return None


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server: a command that starts it, or the URL where it runs. Neither: the one that comes with us."""

    command: str | None = setting(None, "Program that starts the server, spoken to over stdio.", not_blank)
    args: tuple[str, ...] = setting((), "Arguments of the command.")
    url: str | None = setting(None, "Where a running server is reached (streamable HTTP).", _server_url)
    env: tuple[str, ...] = setting(
        (), "Names of the environment variables that the server gets; it gets no others.", _variable_names
    )
    timeout_s: float = number(10.0, "Seconds that one call may take.", 0, 600, above=True)
    tools: Mapping[str, ToolMapping] = field(
        default_factory=dict, metadata={"doc": "The server's tools, each under the name of ours that it stands for."}
    )

    def __post_init__(self) -> None:
        if self.command is not None and self.url is not None:
            raise ValueError("has both command and url; keep the one that you use")
        if self.command is None and self.args:
            raise ValueError(
                "has args but no command; add the command, or remove the section to use the built-in server"
            )

        if self.built_in and self.tools:
            raise ValueError("has tools but no command or url; the built-in server needs no mapping")

    @property
    def built_in(self) -> bool:
        """Whether the server that comes with this package is used."""
        return self.command is None and self.url is None

"""What it takes to reach an MCP server of somebody else: a program, or a URL."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.extras import require_extra
from guarantee_email_agent.utils.text import truncate

MAX_TARGET_CHARS: Final = 200

# What programs need in order to run at all; none of it is a secret.
_COMMON_VARIABLES: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """One server, reached by a command over stdio, or by a URL over streamable HTTP.

    setting: the configuration key that it comes from, such as `mailbox.server`. environment: all that the program gets.
    headers: of every HTTP request.
    """

    setting: str
    command: str | None = None
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server is reached by a command or by a URL")

    @property
    def other_remedy(self) -> str:
        """What else may be done about a wrong server: for each of the three services there is a built-in one."""
        mapped = "" if self.setting.startswith("mailbox.") else f", map its own under {self.setting}.tools"
        built_in = ", or remove the setting to use the built-in one"
        return mapped + (built_in if self.setting.startswith(("mcp.", "mailbox.")) else "")

    def __str__(self) -> str:
        target = str(self.url) if self.command is None else shlex.join((self.command, *self.args))
        return truncate(target, MAX_TARGET_CHARS)


def common_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that every server gets: search path, home, language, time zone, temporary folder."""
    return {name: environ[name] for name in _COMMON_VARIABLES if name in environ}


def configured_launch(
    setting: str, server: McpServer, given: Mapping[str, str], environ: Mapping[str, str]
) -> ServerLaunch:
    """given: the variables that `env` may name, with their values. environ: where PATH, HOME and the like come from.

    Raises ConfigurationError for a variable that is not set.
    """
    require_extra("mcp", setting, "mcp")
    if missing := [name for name in server.env if name not in given]:
        raise ConfigurationError(
            f"{setting}.env names {missing[0]}, which is not set. Set it in the environment or in .env, or remove it "
            "from the list",
            "config_missing_secret",
        )
    secrets = {name: given[name] for name in server.env}
    if server.url is None:
        return ServerLaunch(setting, server.command, server.args, {**common_environment(environ), **secrets})
    if len(secrets) > 1:
        raise ConfigurationError(
            f"{setting}.env names {len(secrets)} variables, but a server with a URL gets one, as its Authorization "
            "header. Keep that one",
            "config_invalid_value",
        )
    # A bare token is a bearer token (RFC 6750 §2.1); a value that begins with a scheme stays as it is.
    tokens = map(str.strip, secrets.values())
    headers = [("Authorization", token if " " in token else f"Bearer {token}") for token in tokens]
    return ServerLaunch(setting, url=server.url, headers=dict(headers))

"""What it takes to reach one MCP server: a program to start, or a URL."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_SHOWN = 200

_OPTION: Final = re.compile(r"--[a-z-]+")

# What programs need in order to run at all; none of it is a secret.
_COMMON_VARIABLES: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    # Windows
    "APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERPROFILE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """One server, reached by a command over stdio, or by a URL over streamable HTTP.

    setting: the part of the configuration that says so, such as `mcp.gmail`. environment: all that the program gets.
    headers: of every HTTP request. built_in: it is one of our servers, whose stderr never quotes a customer.
    settings: what the options of such a server are called in the configuration.
    """

    setting: str
    command: str | None = None
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    built_in: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server is reached by a command or by a URL")

    @property
    def reached_by(self) -> str:
        """How to say what `str` shows was done."""
        return "asked" if self.command is None else "run"

    def in_settings(self, words: str) -> str:
        """What the server says, with the names that its user knows instead of options."""
        return _OPTION.sub(lambda option: self.settings.get(option[0], option[0]), words)

    def __str__(self) -> str:
        shown = self.url if self.command is None else shlex.join((self.command, *self.args))
        assert shown is not None
        return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


def common_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that every server gets: search path, home, language, time zone, temporary folder."""
    return {name: environ[name] for name in _COMMON_VARIABLES if name in environ}

"""Every setting, its type, its default and what it means: the file format, its schema and its documentation."""

# ruff: noqa: RUF009  # `_setting` and `_number` are dataclasses.field with a documentation, and the defaults are frozen
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

T = TypeVar("T")

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS: Final = re.compile(r"[^\s@<>,]+@[^\s@<>,]+")
_URL: Final = re.compile(r"https?://[^\s/@]+(/\S*)?", re.IGNORECASE)


def _setting(
    default: T, doc: str, check: Callable[[Any], str | None] | None = None, schema: Mapping[str, Any] | None = None
) -> T:
    """A dataclass field with what people must know about it."""
    setting: T = field(default=default, metadata={"doc": doc, "check": check, "schema": schema or {}})
    return setting


def _number(default: T, doc: str, minimum: float, maximum: float | None = None, *, above: bool = False) -> T:
    """A number from `minimum` (above it, if `above`) to `maximum`."""
    least = f"above {minimum}" if above else f"at least {minimum}"
    wanted = least if maximum is None else f"{least} and at most {maximum}"

    def check(value: float) -> str | None:
        too_small = value <= minimum if above else value < minimum
        shown = int(value) if value == int(value) else value
        return f"must be {wanted}, not {shown}" if too_small or (maximum is not None and value > maximum) else None

    limits = {"exclusiveMinimum" if above else "minimum": minimum, "maximum": maximum}
    return _setting(default, doc, check, {name: limit for name, limit in limits.items() if limit is not None})


def _not_blank(value: str) -> str | None:
    return None if value.strip() else "must not be blank"


def _server_url(value: str) -> str | None:
    if "@" in value.partition("://")[2].partition("/")[0]:
        return "holds a user name or password; pass it as an environment variable that `env` names"
    if _URL.fullmatch(value):
        return None
    return f"must be a URL such as https://mcp.example.com/warranty, not {value!r}"


def _variable_names(names: tuple[str, ...]) -> str | None:
    for number, name in enumerate(names, 1):
        if not _VARIABLE_NAME.fullmatch(name):  # the text may be a secret, so it is not shown
            return f"must list names of environment variables, without values; item {number} is no name"
    return None


def _addresses(addresses: tuple[str, ...]) -> str | None:
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            return f"must list bare addresses such as support@example.com, not {address!r}"
    return None


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server: a command that starts it, or the URL where it runs. Neither: the one that comes with us."""

    command: str | None = _setting(None, "Program that starts the server, spoken to over stdio.", _not_blank)
    args: tuple[str, ...] = _setting((), "Arguments of the command.")
    url: str | None = _setting(None, "Where a running server is reached (streamable HTTP).", _server_url)
    env: tuple[str, ...] = _setting(
        (), "Names of the environment variables that the server gets; it gets no others.", _variable_names
    )
    timeout_s: float = _number(10.0, "Seconds that one call may take.", 0, 600, above=True)

    def __post_init__(self) -> None:
        if self.command is not None and self.url is not None:
            raise ValueError("has both command and url; keep the one that you use")
        if self.command is None and self.args:
            raise ValueError(
                "has args but no command; add the command, or remove the section to use the built-in server"
            )

    @property
    def built_in(self) -> bool:
        """Whether the server that comes with this package is used."""
        return self.command is None and self.url is None


@dataclass(frozen=True, slots=True)
class Mcp:
    """The three services that the agent works with."""

    gmail: McpServer = _setting(McpServer(), "The mailbox: reads unread mail, sends replies.")
    warranty_api: McpServer = _setting(McpServer(), "Looks a serial number up.")
    ticketing_system: McpServer = _setting(McpServer(), "Creates tickets.")


@dataclass(frozen=True, slots=True)
class Instructions:
    """The files that say how the agent answers."""

    main: Path = _setting(Path("instructions/main.md"), "The instruction that every mail is answered under.")
    scenarios_dir: Path = _setting(Path("instructions/scenarios"), "Folder with one instruction file a scenario.")


@dataclass(frozen=True, slots=True)
class Llm:
    """The language model that understands mails and words replies."""

    provider: Literal["offline", "anthropic"] = _setting(
        "offline",
        "`offline` follows the instruction files without a network; `anthropic` asks the API and needs "
        "`ANTHROPIC_API_KEY`.",
    )
    model: str = _setting(
        "claude-sonnet-4-6", "Model id, pinned: a name that never moves on to another model.", _not_blank
    )
    temperature: float | None = _number(
        0.0, "From 0 (the same words each time) to 1; `null` does not send it, for models that refuse it.", 0, 1
    )
    force_tool: bool = _setting(
        True,
        "Whether the model is made to answer through our tools; `false` asks for it only, for models that refuse to be "
        "made.",
    )
    max_tokens: int = _number(1024, "Most tokens of one answer.", 1, 100_000)
    timeout_s: float = _number(15.0, "Seconds that one call may take.", 0, 600, above=True)
    max_attempts: int = _number(3, "Tries of one call, the first included.", 1, 10)


@dataclass(frozen=True, slots=True)
class Eval:
    """The scenario suite and its gate."""

    test_suite_path: Path = _setting(Path("evals/scenarios"), "Folder with the scenario files.")
    pass_threshold: float = _number(
        99.0, "Percentage of scenarios that must pass; below it `eval` exits with 4.", 0, 100, above=True
    )


@dataclass(frozen=True, slots=True)
class Agent:
    """How the agent watches its mailbox."""

    own_addresses: tuple[str, ...] = _setting(
        (), "Addresses that the agent sends from; mail from them is never answered.", _addresses
    )
    mail_budget_s: float = _number(60.0, "Seconds that one mail may take, all retries included.", 0, 3600, above=True)
    poll_interval_s: float = _number(30.0, "Seconds between two looks into the inbox.", 0, 86_400, above=True)
    max_mail_bytes: int = _number(25_000_000, "Largest mail that is read, in bytes.", 1000, 1_000_000_000)


@dataclass(frozen=True, slots=True)
class Logging:
    """Where diagnostics go; results always go to stdout."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = _setting(
        "INFO", "Least level that is logged; tracebacks and customer text only at `DEBUG`."
    )
    json: bool = _setting(False, "One JSON object a line, for log collectors.")
    file: Path | None = _setting(None, "File that the log is appended to, besides stderr.")


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """What only the environment may hold; never shown."""

    anthropic_api_key: str | None = None
    anthropic_base_url: str | None = None  # no secret, but of the environment like the key that is sent there
    mcp_environment: Mapping[str, str] = field(default_factory=dict)  # the variables that mcp.*.env names, where set

    def __repr__(self) -> str:
        return "Secrets(…)"


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the warranty e-mail agent. Every one has a default, so that no file is needed."""

    mcp: Mcp = _setting(Mcp(), "The services that the agent works with.")
    instructions: Instructions = _setting(Instructions(), "The files that say how the agent answers.")
    llm: Llm = _setting(Llm(), "The language model.")
    eval: Eval = _setting(Eval(), "The scenario suite and its gate.")
    agent: Agent = _setting(Agent(), "How the agent watches its mailbox.")
    logging: Logging = _setting(Logging(), "Where diagnostics go.")
    secrets: Secrets = field(default_factory=Secrets, repr=False, metadata={"key": None})
    # The file that this was read from; None if there was none. No part of what two configurations have in common.
    source: Path | None = field(default=None, compare=False, metadata={"key": None})

"""Every setting, its type, its default and what it means: the file format, its schema and its documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from guarantee_email_agent.config.look_up_settings import LookUpSettings, WarrantySettings, look_ups_problem
from guarantee_email_agent.config.mailbox_settings import MarkKind, OAuthSettings, folder_name
from guarantee_email_agent.config.mcp_server import TICKETING_TOOLS, WARRANTY_TOOLS, McpServer, OwnTool, check_mappings
from guarantee_email_agent.config.operation_settings import MetricsSettings, StoreSettings
from guarantee_email_agent.files.validation import all_matching, matching, not_blank, number, setting
from guarantee_email_agent.utils.errors import ConfigurationError

_ADDRESS: Final = r"[^\s@<>,;:\"“”„«»]+@[^\s@<>,;:\"“”„«»]+"
_NO_LEDGER_FILE: Final = re.compile(r"[\s'\"]*[A-Za-z][\w+.-]+\s*[=:]|.*password\s*=|(//)?[^/]*:[^/]*@", re.IGNORECASE)
"""What libpq or a URL with a slip in it is: a scheme with a colon, keywords with values, a user with a password."""
_API_ADDRESS: Final = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?", re.IGNORECASE)
_AUTHSERV_ID: Final = r"[^\s;:\"]+"


def _base_url(value: str) -> str | None:
    if _API_ADDRESS.fullmatch(value):
        return None  # what is none is not shown: it may hold a password
    return (
        "must be a URL such as http://127.0.0.1:11434/v1; one with a user name or password goes into "
        "OPENAI_BASE_URL or ANTHROPIC_BASE_URL"
    )


def _ledger(value: str) -> str | None:
    if "://" not in value and _NO_LEDGER_FILE.match(value):  # what is shown of it might be a password
        return (
            "is neither a file nor a URL. Write a file like ./ledger.db, or a URL, with two slashes after its colon, "
            "like postgresql://agent@db.example.com:5432/ledger"
        )
    scheme, marks, rest = value.partition("://")
    if marks and ":" in rest.partition("/")[0].rpartition("@")[0]:  # the text holds a password, so it is not shown
        return "holds a password; take it out and set LEDGER_URL, with the password, in the environment"
    if marks and not scheme.startswith(("postgresql", "sqlite")):
        return f"must be a file, or a URL that starts with postgresql:// or sqlite:///, not {scheme}://"
    return not_blank(value)


def _answer_since(value: str) -> str | None:
    if value in ("all", "first-start"):
        return None
    from datetime import date  # 2 ms that a command without this setting saves

    try:
        day = date.fromisoformat(value)
    except ValueError:
        return f"must be first-start, all, or a date such as 2026-01-31, not {value!r}"
    # What a mailbox can compare with; whoever means every mail says so.
    return (
        None if 1970 <= day.year < 3000 else f"must lie between 1970 and 2999, not in {day.year}; for every mail: all"
    )


_addresses: Final = all_matching(_ADDRESS, "bare addresses such as support@example.com")


def _mapping_check(own_tools: Mapping[str, OwnTool], needed: str | None = None) -> Callable[[McpServer], str | None]:
    def check(server: McpServer) -> str | None:
        if server.tools:
            check_mappings(server.tools, own_tools, needed)
        return None

    return check


def _unmapped(server: McpServer) -> str | None:
    """Servers made for assistants hand out no whole mails, and give replies a Message-ID that we do not know."""
    problem = "has tools, but no mailbox can be mapped; take a server with the tools of `mcp-server mail`"
    return problem if server.tools else None


@dataclass(frozen=True, slots=True)
class Mcp:
    """The services that the agent works with, beside the mailbox."""

    warranty_api: McpServer = setting(
        McpServer(), "Looks a serial number up.", _mapping_check(WARRANTY_TOOLS, "check_warranty")
    )
    ticketing_system: McpServer = setting(
        McpServer(), "Creates tickets.", _mapping_check(TICKETING_TOOLS, "create_ticket")
    )


Security = Literal["tls", "starttls", "none"]


def _check_tls(host: str | None, security: Security) -> None:
    if security != "none" or host is None:
        return
    from guarantee_email_agent.utils.loopback import is_loopback  # start-up: ipaddress takes 4 ms

    if not is_loopback(host):
        raise ValueError("would send its password unencrypted over a network; set security to tls or starttls")


@dataclass(frozen=True, slots=True)
class Imap:
    """The IMAP server that holds the inbox; its password is `IMAP_PASSWORD`."""

    host: str | None = setting(None, "Name of the server; without one the inbox is the Maildir.", not_blank)
    port: int = number(993, "Port of the server.", 1, 65_535)
    security: Security = setting("tls", "`tls` from the first byte, `starttls`, or `none` (on this machine only).")
    user: str | None = setting(None, "Name to log in with; by default `mailbox.from_address`.", not_blank)
    folder: str = setting("INBOX", "Folder that is watched.", not_blank)
    sent_folder: str | None = setting(
        None, "Folder for what was sent; by default the one that the server says is for it.", not_blank
    )
    drafts_folder: str | None = setting(
        None, "Folder for drafts; by default the one that the server says is for them.", not_blank
    )
    ca_file: Path | None = setting(
        None, "Certificates to trust instead of the system's, for the SMTP server too; a PEM file."
    )
    marks: MarkKind = setting(
        "auto",
        "What says what became of a mail: `keywords` on it, `folders` that it is moved to, or `auto`, keywords where "
        "the server keeps them.",
    )
    mark_folder: str = setting(
        "guarantee-email-agent", "Folder that holds one for each outcome, where marks are folders.", folder_name
    )

    def __post_init__(self) -> None:
        _check_tls(self.host, self.security)
        if self.host is None and self.marks == "folders":
            raise ValueError("has marks: folders without a host. Name the server, or leave it out for a Maildir")


@dataclass(frozen=True, slots=True)
class Smtp:
    """The SMTP server that takes replies; its password is `SMTP_PASSWORD`, by default the one for IMAP."""

    host: str | None = setting(None, "Name of the server; by default the IMAP server's.", not_blank)
    port: int = number(465, "Port of the server.", 1, 65_535)
    security: Security = setting(
        "tls", "`tls` from the first byte, `starttls`, or `none` (on this machine, or without a login)."
    )
    user: str | None = setting(
        None, "Name to log in with; by default the one for IMAP, and `''` for a relay that wants no login."
    )

    def __post_init__(self) -> None:
        if self.user != "":
            _check_tls(self.host, self.security)


@dataclass(frozen=True, slots=True)
class MailboxSettings:
    """The mailbox: IMAP and SMTP where `imap.host` is set, a Maildir, or what an MCP server offers."""

    from_address: str | None = setting(
        None,
        "Address that replies come from; mail from it is never answered.",
        matching(_ADDRESS, "a bare address such as support@example.com"),
    )
    maildir: Path = setting(Path("mailbox"), "The Maildir that is the inbox where no IMAP server is named.")
    imap: Imap = setting(Imap(), "The IMAP server that holds the inbox.")
    smtp: Smtp = setting(Smtp(), "The SMTP server that takes replies.")
    oauth: OAuthSettings = setting(OAuthSettings(), "Access tokens in place of passwords.")
    sent_copy: Literal["self", "server", "append"] = setting(
        "self",
        "How a sent reply is proved after a crash: `self`, a copy to our own address in the same SMTP transaction; "
        "`server`, for servers that file sent mail on their own; `append`, filed by us once the server took it.",
    )
    copy_wait_s: float = number(60.0, "Seconds after which a copy that has not come will not come.", 0, 600)
    server: McpServer = setting(McpServer(), "An MCP server with the mailbox.", _unmapped)


@dataclass(frozen=True, slots=True)
class Warranties:
    """The list that the built-in warranty server looks serial numbers up in."""

    file: Path = setting(Path("warranties.csv"), "A CSV file, or an SQLite database with a table `warranties`.")


@dataclass(frozen=True, slots=True)
class Tickets:
    """The tickets of the built-in ticketing server."""

    database: Path = setting(Path("tickets.db"), "An SQLite database, made where it is missing.")


@dataclass(frozen=True, slots=True)
class InstructionSettings:
    """The files that say how the agent answers."""

    main: Path = setting(Path("instructions/main.md"), "The instruction that every mail is answered under.")
    scenarios_dir: Path = setting(Path("instructions/scenarios"), "Folder with one instruction file a scenario.")


@dataclass(frozen=True, slots=True)
class Llm:
    """The language model that understands mails and words replies."""

    provider: Literal["offline", "anthropic", "openai"] = setting(
        "offline",
        "`offline` follows the instruction files without a network; `anthropic` and `openai` ask an API of that shape, "
        "and need `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`.",
    )
    base_url: str | None = setting(
        None,
        "Where the API is reached, such as `http://127.0.0.1:11434/v1`; by default what `ANTHROPIC_BASE_URL` or "
        "`OPENAI_BASE_URL` says, or else at its usual address.",
        _base_url,
    )
    model: str = setting(
        "claude-sonnet-4-6", "Model id, pinned: a name that never moves on to another model.", not_blank
    )
    max_cost_per_day: float | None = number(
        None,
        "US dollars that all agents on one ledger may spend in a day (UTC); mails beyond are handed over. `null`: no "
        "limit.",
        0,
        1_000_000,
        above=True,
    )
    max_tokens: int = number(1024, "Most tokens of one answer.", 1, 100_000)
    timeout_s: float = number(15.0, "Seconds that one call may take.", 0, 600, above=True)
    requests_per_minute: float | None = number(
        None,
        "Requests that may be sent in a minute; by default as many as the API does not refuse.",
        0,
        1_000_000,
        above=True,
    )
    when_down: Literal["wait", "template"] = setting(
        "wait",
        "What becomes of mail while the model is down: `wait` leaves it unprocessed, `template` answers with the "
        "instruction's own template.",
    )


@dataclass(frozen=True, slots=True)
class Eval:
    """The scenario suite and its gate."""

    test_suite_path: Path = setting(Path("evals/scenarios"), "Folder with the scenario files.")
    pass_threshold: float = number(
        99.0, "Percentage of scenarios that must pass; below it `eval` exits with 4.", 1, 100, above=True
    )


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """Most mails that are answered; what comes on top is handed over. They count for all agents on one ledger."""

    per_address: int = number(5, "Replies in 24 hours to one address.", 1, 10_000)
    per_thread: int = number(3, "Replies in 24 hours in one conversation.", 1, 10_000)
    per_hour: int = number(200, "Replies in an hour in all.", 1, 1_000_000)


Mode = Literal["answer", "drafts", "observe"]
SenderCheck = Literal["off", "neutral", "hold"]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How the agent watches its mailbox."""

    mode: Mode = setting(
        "answer",
        "`answer` sends replies and creates tickets; `drafts` puts replies into the Drafts folder for a person to "
        "send; `observe` only logs what it would have done.",
    )
    answer_since: str = setting(
        "first-start",
        "Mails that came before are left alone: `first-start` (the first `run` on this mailbox, by the ledger), a date "
        "such as `2026-01-31` (UTC), or `all`.",
        _answer_since,
    )
    max_age_days: float | None = number(
        None, "Mails older than so many days are left alone; `null`: none is.", 0, 36_500, above=True
    )
    max_delay_days: float | None = number(
        7.0,
        "Mails that came more than so many days after they were written and first sent, such as old ones that somebody "
        "copied, are handed over; `null`: none is.",
        0,
        36_500,
        above=True,
    )
    skip_seen: bool = setting(False, "Whether mails that somebody has read are left alone, too.")
    limits: ReplyLimits = setting(ReplyLimits(), "Most mails that are answered.")
    sender_check: SenderCheck = setting(
        "off",
        "What becomes of a mail whose sender is not proved: `off`, as any other; `neutral`, a reply without status, "
        "date or ticket; `hold`, it is handed over.",
    )
    authserv_id: str | None = setting(
        None,
        "The name by which your mail server signs `Authentication-Results`; no other is believed.",
        matching(_AUTHSERV_ID, "the one word before the first ; of Authentication-Results, such as mx.example.com"),
    )
    trusted_forms: tuple[str, ...] = setting(
        (), "Senders whose `Reply-To` is answered: the web forms of your own site.", _addresses
    )
    own_addresses: tuple[str, ...] = setting(
        (), "Further addresses of our own; mail from them is never answered.", _addresses
    )
    require_eval: bool = setting(
        True, "Whether mode `answer` uses only instruction files for which `eval` passed the configured suite."
    )
    caution: int = number(
        70, "How sure the agent has to be of a mail, in percent, before it answers; `0`: not at all.", 0, 100
    )
    ledger: str = setting(
        "ledger.db",
        "What keeps the agent from answering twice: an SQLite file, or `postgresql://…` for several machines; a URL "
        "with a password comes from `LEDGER_URL`.",
        _ledger,
    )
    concurrency: int = number(4, "Mails in progress at a time.", 1, 100)
    max_attempts: int = number(3, "Tries of one mail, after which it is left for a person.", 1, 100)
    mail_budget_s: float = number(60.0, "Seconds that one mail may take, all retries included.", 0, 3600, above=True)
    call_timeout_s: float = number(
        10.0,
        "Seconds that one call of a service may take; one of the mailbox has three times as long.",
        0,
        600,
        above=True,
    )
    poll_interval_s: float = number(30.0, "Seconds between two polls of the inbox.", 0, 86_400, above=True)

    def __post_init__(self) -> None:
        if self.sender_check != "off" and self.authserv_id is None:
            raise ValueError(
                f"has sender_check: {self.sender_check} but no authserv_id; add the name that stands first in the "
                "Authentication-Results header of your mails"
            )

    @property
    def mail_timeout_s(self) -> float:
        """Of a call of the mailbox, which may move a whole mail."""
        return 3 * self.call_timeout_s


@dataclass(frozen=True, slots=True)
class Logging:
    """Where diagnostics go; results always go to stdout."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "Least level that is logged; tracebacks and customer text only at `DEBUG`."
    )
    json: bool = setting(False, "One JSON object a line, for log collectors.")
    file: Path | None = setting(None, "File that the log is appended to, besides the console.")


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """What only the environment may hold; never shown."""

    anthropic_api_key: str | None = None
    anthropic_base_url: str | None = None  # no secret, but of the environment like the key that is sent there
    openai_api_key: str | None = None
    openai_base_url: str | None = None
    imap_password: str | None = None
    smtp_password: str | None = None
    oauth_client_secret: str | None = None
    ledger_key: str | None = None
    ledger_url: str | None = None
    mcp_environment: Mapping[str, str] = field(default_factory=dict)  # the variables that mcp.*.env names, where set

    def __repr__(self) -> str:
        return "Secrets(…)"


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the warranty e-mail agent. Every one has a default, so that no file is needed."""

    mcp: Mcp = setting(Mcp(), "The services that the agent works with, beside the mailbox.")
    mailbox: MailboxSettings = setting(MailboxSettings(), "The mailbox.")
    warranties: Warranties = setting(Warranties(), "The list of the built-in warranty server.")
    warranty: WarrantySettings = setting(WarrantySettings(), "What is known of serial numbers and of warranties.")
    tickets: Tickets = setting(Tickets(), "The tickets of the built-in ticketing server.")
    look_ups: Mapping[str, LookUpSettings] = setting(
        {}, "Further look-ups, by the names of their services.", look_ups_problem
    )
    instructions: InstructionSettings = setting(InstructionSettings(), "The files that say how the agent answers.")
    llm: Llm = setting(Llm(), "The language model.")
    eval: Eval = setting(Eval(), "The scenario suite and its gate.")
    store: StoreSettings = setting(StoreSettings(), "Where runs of `eval`, `grade` and `solve` are kept.")
    agent: AgentSettings = setting(AgentSettings(), "How the agent watches its mailbox.")
    metrics: MetricsSettings = setting(MetricsSettings(), "Figures and health, for monitoring.")
    logging: Logging = setting(Logging(), "Where diagnostics go.")
    secrets: Secrets = field(default_factory=Secrets, repr=False, metadata={"key": None})
    # The file that this was read from; None if there was none. No part of what two configurations have in common.
    source: Path | None = field(default=None, compare=False, metadata={"key": None})

    @property
    def run_store_file(self) -> Path:
        return self.store.file_for(self.source)

    @property
    def ledger_location(self) -> str:
        """A file, or a database's URL, which may hold a password. Raises ConfigurationError for what is neither."""
        url = self.secrets.ledger_url
        if url is not None and "://" not in url and (problem := _ledger(url)):
            raise ConfigurationError(f"LEDGER_URL {problem}", "ledger_invalid_location")
        return url or self.agent.ledger

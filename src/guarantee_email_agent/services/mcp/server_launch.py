"""What it takes to reach each of the three MCP servers: ours, unless the configuration names another."""

from __future__ import annotations

import hmac
import ipaddress
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from guarantee_email_agent.config.mailbox_settings import KEPT_TOKEN_FLOWS, OAuthSettings
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config, MailboxSettings
from guarantee_email_agent.files.private_file import read_private_text
from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import truncate

MAX_TARGET_CHARS: Final = 200

_MAX_SECRET_BYTES: Final = 4_000_000

_OPTION: Final = re.compile(r"--[a-z-]+")

# What programs need in order to run at all; none of it is a secret.
_COMMON_VARIABLES: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    # Windows
    "APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERPROFILE",
)  # fmt: skip

# So that ours run from a checkout, too, and trust the certificates that this process trusts.
_OWN_VARIABLES: Final = ("PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR")

# For what asks an issuer of access tokens, which may be out of reach otherwise.
_PROXY_VARIABLES: Final = tuple(
    variant for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY") for variant in (name, name.lower())
)

_Options: TypeAlias = Mapping[str, tuple[str, object]]
"""Of a server's command line: the setting that each comes from, and its value.

True for an option that has none, None or False for one that stays out.
"""


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """One server, reached by a command over stdio, or by a URL over streamable HTTP.

    setting: the configuration key that it comes from, such as `mcp.gmail`. environment: all that the program gets.
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
    def other_remedy(self) -> str:
        """What else may be done about a wrong server: for each of the three services there is a built-in one."""
        return ", or remove the setting to use the built-in one" if self.setting.startswith("mcp.") else ""

    def with_setting_names(self, text: str) -> str:
        """A message of the server, with the names of settings in place of its options."""
        return _OPTION.sub(lambda option: self.settings.get(option[0], option[0]), text)

    def __str__(self) -> str:
        target = str(self.url) if self.command is None else shlex.join((self.command, *self.args))
        return truncate(target, MAX_TARGET_CHARS)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name: where no proxy stands, and a password may go without TLS."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def common_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that every server gets: search path, home, language, time zone, temporary folder."""
    return {name: environ[name] for name in _COMMON_VARIABLES if name in environ}


def mail_launch(config: Config, environ: Mapping[str, str], key: bytes = b"") -> ServerLaunch:
    """environ: where PATH, HOME and the like come from. Secrets come from `config.secrets`.

    key: what makes the names of mails unguessable, the same for all agents of one inbox; the server gets one derived
    from it, to know the copies of our own replies by. Without it each process has a key of its own.
    Raises ConfigurationError where a setting or a secret is missing that the server cannot do without.
    """
    if not config.mcp.gmail.built_in:
        return _configured_launch("mcp.gmail", config.mcp.gmail, config, environ)
    mailbox = config.mailbox
    if mailbox.from_address is None:
        raise ConfigurationError(
            "mailbox.from_address is missing. Set it to the address that replies come from", "config_missing_key"
        )
    options: _Options
    if mailbox.imap.host is None:
        options = {
            "--maildir": ("mailbox.maildir", mailbox.maildir),
            "--from": ("mailbox.from_address", mailbox.from_address),
            "--read-only": ("agent.mode", config.agent.mode == "observe"),
        }
        return _built_in_launch("mailbox.maildir", "mail", options, environ)
    secrets = _oauth_secrets(config, environ) if mailbox.oauth.provider is not None else {}
    if mailbox.oauth.provider is None and config.secrets.imap_password is None:
        raise ConfigurationError(
            "IMAP_PASSWORD is not set, but mailbox.imap.host is. Set it in the environment or in .env",
            "config_missing_secret",
        )
    if mailbox.oauth.provider is None:
        secrets["IMAP_PASSWORD"] = str(config.secrets.imap_password)
    if config.secrets.smtp_password is not None:
        secrets["SMTP_PASSWORD"] = config.secrets.smtp_password
    if key:
        secrets["MAIL_KEY"] = hmac.digest(key, b"copies of replies", "sha256").hex()
    options = {
        **_imap_options(mailbox, mailbox.imap.host, mailbox.from_address),
        **_oauth_options(mailbox.oauth),
        "--read-only": ("agent.mode", config.agent.mode == "observe"),
    }
    return _built_in_launch("mailbox", "mail", options, environ, secrets)


def warranty_launch(config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    """As `mail_launch`."""
    if not config.mcp.warranty_api.built_in:
        return _configured_launch("mcp.warranty_api", config.mcp.warranty_api, config, environ)
    setting = "warranties.file"
    return _built_in_launch(setting, "warranty", {"--file": (setting, config.warranties.file)}, environ)


def look_up_launch(name: str, config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    """As `mail_launch`. name: of the look-up."""
    settings = config.look_ups[name]
    if settings.table is None:
        return _configured_launch(f"look_ups.{name}.server", settings.server, config, environ)
    options: _Options = {
        "--file": (f"look_ups.{name}.table", settings.table),
        "--key": (f"look_ups.{name}.key", settings.key or settings.number),
    }
    return _built_in_launch(f"look_ups.{name}.table", "table", options, environ)


def ticketing_launch(config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    """As `mail_launch`."""
    if not config.mcp.ticketing_system.built_in:
        return _configured_launch("mcp.ticketing_system", config.mcp.ticketing_system, config, environ)
    setting = "tickets.database"
    return _built_in_launch(setting, "ticketing", {"--database": (setting, config.tickets.database)}, environ)


def _imap_options(mailbox: MailboxSettings, host: str, address: str) -> _Options:
    imap, smtp = mailbox.imap, mailbox.smtp
    user = imap.user or address
    return {
        "--imap-host": ("mailbox.imap.host", host),
        "--imap-port": ("mailbox.imap.port", imap.port),
        "--imap-security": ("mailbox.imap.security", imap.security),
        "--imap-user": ("mailbox.imap.user", user),
        "--imap-folder": ("mailbox.imap.folder", imap.folder),
        "--sent-folder": ("mailbox.imap.sent_folder", imap.sent_folder),
        "--drafts-folder": ("mailbox.imap.drafts_folder", imap.drafts_folder),
        "--marks": ("mailbox.imap.marks", imap.marks),
        **{
            f"--mark-{name.replace('_', '-')}": (f"mailbox.imap.mark_folders.{name}", folder)
            for name, folder in asdict(imap.mark_folders).items()
        },
        "--smtp-host": ("mailbox.smtp.host", smtp.host or host),
        "--smtp-port": ("mailbox.smtp.port", smtp.port),
        "--smtp-security": ("mailbox.smtp.security", smtp.security),
        "--smtp-user": ("mailbox.smtp.user", smtp.user or user),
        "--from": ("mailbox.from_address", address),
        "--sent-copy": ("mailbox.sent_copy", mailbox.sent_copy),
        "--copy-wait": ("mailbox.copy_wait_s", f"{mailbox.copy_wait_s:g}"),
        "--ca-file": ("mailbox.imap.ca_file", imap.ca_file),
    }


def _oauth_secrets(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """What the server needs in order to come by access tokens. Raises ConfigurationError for what is missing."""
    oauth = config.mailbox.oauth
    require_oauth_client(config)
    if oauth.used_flow == "service_account" and oauth.key_file is not None:
        _require_private("key_file", oauth.key_file, "Save the account's JSON key there", follow_links=True)
    elif oauth.used_flow in KEPT_TOKEN_FLOWS:
        _require_private("token_file", oauth.token_file, "Sign in: guarantee-email-agent authorize")
    secrets = {name: environ[name] for name in _PROXY_VARIABLES if name in environ}
    if config.secrets.oauth_client_secret is not None:
        secrets["OAUTH_CLIENT_SECRET"] = config.secrets.oauth_client_secret
    return secrets


def require_oauth_client(config: Config) -> None:
    """Raises ConfigurationError where the extra is not installed, or the client's secret is missing."""
    from importlib.util import find_spec

    if find_spec("oauthlib") is None or find_spec("httpx2") is None:
        raise ConfigurationError(
            "mailbox.oauth needs oauthlib. Run: pip install 'guarantee-email-agent[oauth]'", "config_missing_package"
        )
    if config.mailbox.oauth.used_flow == "client_credentials" and config.secrets.oauth_client_secret is None:
        raise ConfigurationError(
            "OAUTH_CLIENT_SECRET is not set, but mailbox.oauth.flow is client_credentials. Set it in the environment "
            "or in .env",
            "config_missing_secret",
        )


def name_oauth_settings(text: str, oauth: OAuthSettings) -> str:
    """As `ServerLaunch.with_setting_names`, for a message about access tokens."""
    names = {option: setting for option, (setting, _) in _oauth_options(oauth).items()}
    return _OPTION.sub(lambda option: names.get(option[0], option[0]), text)


def _require_private(key: str, file: Path, remedy: str, *, follow_links: bool = False) -> None:
    try:
        read_private_text(file, _MAX_SECRET_BYTES, follow_links=follow_links)
    except InputFileError as error:
        missing = error.code == "document_not_found"
        raise ConfigurationError(
            f"mailbox.oauth.{key}: {file}: {error.message}{f'. {remedy}' if missing else ''}",
            "config_missing_secret" if missing else "config_invalid_secret",
        ) from None


def _oauth_options(oauth: OAuthSettings) -> _Options:
    if oauth.provider is None:
        return {}
    endpoints = "mailbox.oauth.token_url" if oauth.provider == "other" else "mailbox.oauth.provider"
    return {
        "--oauth-flow": ("mailbox.oauth.flow", oauth.used_flow),
        "--oauth-client-id": ("mailbox.oauth.client_id", oauth.client_id),
        "--oauth-token-url": (endpoints, oauth.endpoints.token),
        "--oauth-scope": ("mailbox.oauth.scopes", " ".join(oauth.used_scopes) or None),
        "--oauth-token-file": ("mailbox.oauth.token_file", oauth.token_file),
        "--oauth-key-file": ("mailbox.oauth.key_file", oauth.key_file),
    }


def _built_in_launch(
    setting: str,
    module: str,
    options: _Options,
    environ: Mapping[str, str],
    secrets: Mapping[str, str] = MappingProxyType({}),
) -> ServerLaunch:
    # With `=`, so that a value may begin with a dash.
    given = (
        option if value is True else f"{option}={value}"
        for option, (_, value) in options.items()
        if value is not None and value is not False
    )
    own = {name: environ[name] for name in _OWN_VARIABLES if name in environ}
    return ServerLaunch(
        setting=setting,
        command=sys.executable,
        # -P: a file of the user's that is called email.py must not stand in for the library's.
        args=("-P", "-m", f"guarantee_email_agent.mcp_servers.{module}", *given),
        environment={**common_environment(environ), **own, **secrets},
        built_in=True,
        settings={option: name for option, (name, _) in options.items()},
    )


def _configured_launch(setting: str, server: McpServer, config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    given = config.secrets.mcp_environment
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

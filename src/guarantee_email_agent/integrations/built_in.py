"""From the configuration to the three servers: ours, unless the user names others."""

from __future__ import annotations

import hmac
import sys
from collections.abc import Mapping
from types import MappingProxyType

from guarantee_email_agent.config.settings import Config, Mailbox, McpServer
from guarantee_email_agent.integrations.server_launch import ServerLaunch, common_environment
from guarantee_email_agent.utils.errors import ConfigurationError

# So that ours run from a checkout, too, and trust the certificates that this process trusts.
_OWN_VARIABLES = ("PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR")

_MAIL_SETTINGS = {
    "--maildir": "mailbox.maildir",
    "--from": "mailbox.from_address",
    "--imap-host": "mailbox.imap.host",
    "--imap-port": "mailbox.imap.port",
    "--imap-security": "mailbox.imap.security",
    "--imap-user": "mailbox.imap.user",
    "--imap-folder": "mailbox.imap.folder",
    "--sent-folder": "mailbox.imap.sent_folder",
    "--smtp-host": "mailbox.smtp.host",
    "--smtp-port": "mailbox.smtp.port",
    "--smtp-security": "mailbox.smtp.security",
    "--smtp-user": "mailbox.smtp.user",
    "--sent-copy": "mailbox.sent_copy",
    "--copy-wait": "mailbox.copy_wait_s",
    "--ca-file": "mailbox.imap.ca_file",
}


def mail_launch(config: Config, environ: Mapping[str, str], key: bytes = b"") -> ServerLaunch:
    """environ: where PATH, HOME and the like come from. Secrets come from `config.secrets`.

    key: what makes the names of mails unguessable, the same for all agents of one inbox; the server gets one derived
    from it, to know the copies of our own replies by. Without it each process has a key of its own.

    Raises ConfigurationError where a setting or a secret is missing that the server cannot do without.
    """
    if not config.mcp.gmail.built_in:
        return _named_by_user("mcp.gmail", config.mcp.gmail, config, environ)
    mailbox = config.mailbox
    if mailbox.from_address is None:
        raise ConfigurationError(
            "mailbox.from_address is missing. Set it to the address that replies come from", "config_missing_key"
        )
    if mailbox.imap.host is None:
        options: dict[str, object] = {"--maildir": mailbox.maildir, "--from": mailbox.from_address}
        return _ours("mailbox.maildir", "mail", options, _MAIL_SETTINGS, environ)
    if config.secrets.imap_password is None:
        raise ConfigurationError(
            "IMAP_PASSWORD is not set, but mailbox.imap.host is. Set it in the environment or in .env",
            "config_missing_secret",
        )
    secrets = {"IMAP_PASSWORD": config.secrets.imap_password}
    if config.secrets.smtp_password is not None:
        secrets["SMTP_PASSWORD"] = config.secrets.smtp_password
    if key:
        secrets["MAIL_KEY"] = hmac.digest(key, b"copies of replies", "sha256").hex()
    options = _imap_options(mailbox, mailbox.imap.host, mailbox.from_address)
    return _ours("mailbox", "mail", options, _MAIL_SETTINGS, environ, secrets)


def warranty_launch(config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    """As `mail_launch`."""
    if not config.mcp.warranty_api.built_in:
        return _named_by_user("mcp.warranty_api", config.mcp.warranty_api, config, environ)
    setting = "warranties.file"
    return _ours(setting, "warranty", {"--file": config.warranties.file}, {"--file": setting}, environ)


def ticketing_launch(config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    """As `mail_launch`."""
    if not config.mcp.ticketing_system.built_in:
        return _named_by_user("mcp.ticketing_system", config.mcp.ticketing_system, config, environ)
    setting = "tickets.database"
    return _ours(setting, "ticketing", {"--database": config.tickets.database}, {"--database": setting}, environ)


def _imap_options(mailbox: Mailbox, host: str, address: str) -> dict[str, object]:
    imap, smtp = mailbox.imap, mailbox.smtp
    user = imap.user or address
    return {
        "--imap-host": host,
        "--imap-port": imap.port,
        "--imap-security": imap.security,
        "--imap-user": user,
        "--imap-folder": imap.folder,
        "--sent-folder": imap.sent_folder,
        "--smtp-host": smtp.host or host,
        "--smtp-port": smtp.port,
        "--smtp-security": smtp.security,
        "--smtp-user": smtp.user or user,
        "--from": address,
        "--sent-copy": mailbox.sent_copy,
        "--copy-wait": f"{mailbox.copy_wait_s:g}",
        "--ca-file": imap.ca_file,
    }


def _ours(
    setting: str,
    module: str,
    options: Mapping[str, object],
    settings: Mapping[str, str],
    environ: Mapping[str, str],
    secrets: Mapping[str, str] = MappingProxyType({}),
) -> ServerLaunch:
    """options: of the server's command line; None for one that stays out. settings: see `ServerLaunch`."""
    # With `=`, so that a value may begin with a dash.
    given = (f"{option}={value}" for option, value in options.items() if value is not None)
    own = {name: environ[name] for name in _OWN_VARIABLES if name in environ}
    return ServerLaunch(
        setting=setting,
        command=sys.executable,
        # -P: a file of the user's that is called email.py must not stand in for the library's.
        args=("-P", "-m", f"guarantee_email_agent.mcp_servers.{module}", *given),
        environment={**common_environment(environ), **own, **secrets},
        built_in=True,
        settings=settings,
    )


def _named_by_user(setting: str, server: McpServer, config: Config, environ: Mapping[str, str]) -> ServerLaunch:
    given = config.secrets.mcp_environment
    missing = [name for name in server.env if name not in given]
    if missing:
        raise ConfigurationError(
            f"{setting}.env names {missing[0]}, which is not set. Set it in the environment or in .env, or remove it "
            "from the list",
            "config_missing_secret",
        )
    secrets = {name: given[name] for name in server.env}
    if server.url is None:
        return ServerLaunch(
            setting=setting,
            command=server.command,
            args=server.args,
            environment={**common_environment(environ), **secrets},
        )
    if len(secrets) > 1:
        raise ConfigurationError(
            f"{setting}.env names {len(secrets)} variables, but a server with a URL gets one, as its Authorization "
            "header. Keep that one",
            "config_invalid_value",
        )
    return ServerLaunch(setting=setting, url=server.url, headers=dict(map(_authorization, secrets.values())))


def _authorization(secret: str) -> tuple[str, str]:
    """A bare token is a bearer's (RFC 6750 §2.1); a value with a scheme before it stands as it is."""
    secret = secret.strip()
    return "Authorization", secret if " " in secret else f"Bearer {secret}"

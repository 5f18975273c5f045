"""The mailbox that a configuration names, with its servers, passwords and tokens."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.config.mailbox_settings import KEPT_TOKEN_FLOWS
from guarantee_email_agent.config.settings import Config, MailboxSettings, Secrets
from guarantee_email_agent.files.private_file import read_private_text
from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.utils.addresses import parse_address
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.loopback import is_loopback

if TYPE_CHECKING:
    from guarantee_email_agent.services.mail.mail_store import OwnMailStore
    from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
    from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

_MAX_SECRET_BYTES: Final = 4_000_000
_REPLACE_IDS: Final = ("office365.com", "outlook.com", "office365.us", "outlook.cn", "amazonaws.com")
"""Domains of SMTP servers that give every mail a Message-ID of their own: `git send-email --help`, SES's manual."""


def check_mailbox(config: Config) -> None:
    """Raises ConfigurationError where a setting or a secret is missing that the mailbox cannot do without."""
    mailbox, oauth = config.mailbox, config.mailbox.oauth
    if mailbox.from_address is None:
        raise ConfigurationError(
            "mailbox.from_address is missing. Set it to the address that replies come from", "config_missing_key"
        )
    if mailbox.imap.host is None:
        return
    if oauth.provider is None:
        if config.secrets.imap_password is None:
            raise ConfigurationError(
                "IMAP_PASSWORD is not set, but mailbox.imap.host is. Set it in the environment or in .env",
                "config_missing_secret",
            )
        return
    require_oauth_client(config)
    if oauth.used_flow == "service_account" and oauth.key_file is not None:
        _require_private("key_file", oauth.key_file, "Save the account's JSON key there", follow_links=True)
    elif oauth.used_flow in KEPT_TOKEN_FLOWS:
        _require_private("token_file", oauth.token_file, "Sign in: guarantee-email-agent authorize")


def require_oauth_client(config: Config) -> None:
    """Raises ConfigurationError where the extra is not installed, or the client's secret is missing."""
    require_extra("oauth", "mailbox.oauth", "oauthlib", "httpx2")
    if config.mailbox.oauth.used_flow == "client_credentials" and config.secrets.oauth_client_secret is None:
        raise ConfigurationError(
            "OAUTH_CLIENT_SECRET is not set, but mailbox.oauth.flow is client_credentials. Set it in the environment "
            "or in .env",
            "config_missing_secret",
        )


def open_configured_store(config: Config, key: bytes) -> OwnMailStore:
    """Blocks. key: what makes the names of mails unguessable, the same for all agents of one inbox; empty for none.

    Raises ToolError.
    """
    client: OAuthClient | None = None
    if config.mailbox.imap.host is not None and config.mailbox.oauth.provider is not None:
        from guarantee_email_agent.services.mail.oauth.oauth_client import oauth_client

        client = oauth_client(config)
    copy_key = hmac.digest(key, b"copies of replies", "sha256").hex().encode() if key else b""
    read_only = config.agent.mode == "observe"
    return open_mail_store(config.mailbox, config.secrets, copy_key, client, read_only=read_only)


def open_mail_store(
    mailbox: MailboxSettings,
    passwords: Secrets,
    copy_key: bytes,
    client: OAuthClient | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
) -> OwnMailStore:
    """Blocks. copy_key: what proves the copies of our own replies; without it each process has a key of its own.

    create: make a Maildir where it is missing. Raises ToolError.
    """
    address = mailbox.from_address or ""
    if parse_address(address) != address or not address.isascii():
        raise ToolError("mail_invalid_setting", "mailbox.from_address is not one bare address like support@example.com")
    if mailbox.imap.host is None:
        from guarantee_email_agent.services.mail.maildir import Maildir

        return Maildir(mailbox.maildir, address, create=create, read_only=read_only)
    from ssl import SSLError

    from guarantee_email_agent.services.mail.imap import ImapMailbox
    from guarantee_email_agent.services.mail.imap_replies import ImapSettings
    from guarantee_email_agent.services.mail.mail_server import MailServer, tls_context

    imap, smtp = mailbox.imap, mailbox.smtp
    user = imap.user or address
    smtp_user = user if smtp.user is None else smtp.user or None
    tokens: AccessTokens | None = None
    if client is not None:
        from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens

        tokens = AccessTokens(client)
    smtp_password = passwords.smtp_password or (passwords.imap_password if tokens is None else None)
    smtp_host = smtp.host or mailbox.imap.host
    inbox = MailServer(
        "IMAP", mailbox.imap.host, imap.port, imap.security, user, passwords.imap_password, imap.ca_file, tokens
    )
    outgoing = MailServer(
        "SMTP",
        smtp_host,
        smtp.port,
        smtp.security,
        smtp_user,
        smtp_password,
        imap.ca_file,
        None if smtp_password else tokens,
    )
    for server in (inbox, outgoing):
        if server.security == "none" and server.user is not None and not is_loopback(server.host):
            text = (
                f"{server.setting}.security none is for servers on this machine: {server.host} would get the password"
            )
            raise ToolError("mail_invalid_setting", text)
    try:
        tls_context(imap.ca_file)
    except OSError as error:
        reason = "holds no certificate in PEM format" if isinstance(error, SSLError) else error.strerror
        raise ToolError("mail_invalid_setting", f"mailbox.imap.ca_file {imap.ca_file}: {reason}") from None
    settings = ImapSettings(
        mailbox,
        inbox,
        outgoing,
        # Without a key of its own, copies of another process are not told from what a stranger sends: they are listed.
        key=copy_key or secrets.token_bytes(32),
        read_only=read_only,
        replaces_ids=f".{smtp_host}".casefold().endswith(tuple(f".{domain}" for domain in _REPLACE_IDS)),
    )
    return ImapMailbox(settings)


def _require_private(key: str, file: Path, remedy: str, *, follow_links: bool = False) -> None:
    try:
        read_private_text(file, _MAX_SECRET_BYTES, follow_links=follow_links)
    except InputFileError as error:
        missing = error.code == "document_not_found"
        raise ConfigurationError(
            f"mailbox.oauth.{key}: {file}: {error.message}{f'. {remedy}' if missing else ''}",
            "config_missing_secret" if missing else "config_invalid_secret",
        ) from None

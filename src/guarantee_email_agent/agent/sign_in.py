"""Signing in to the mailbox by OAuth as a person or `check` sees it: in words of the configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.services.mail.open_store import require_oauth_client
from guarantee_email_agent.services.tool_error import ToolError
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError
from guarantee_email_agent.utils.terminal import Terminal
from guarantee_email_agent.utils.text import printable

_TO_CORRECT = ("mail_auth", "mail_port")
"""Codes of what waiting does not heal."""


def uses_oauth(config: Config) -> bool:
    """Whether the mailbox is one that the built-in mail server signs in to by OAuth."""
    mailbox = config.mailbox
    return config.mailbox.server.built_in and mailbox.imap.host is not None and mailbox.oauth.provider is not None


def sign_in(config: Config, terminal: Terminal, *, timeout_s: float, port: int) -> None:
    """Have a person sign in, and keep the token; a client that needs no person gets a token to see that it can.

    Raises ConfigurationError for what has to be corrected, and IntegrationError for what may be tried again.
    """
    if not uses_oauth(config):
        raise ConfigurationError(
            "There is nothing to sign in to: mailbox.imap.host and mailbox.oauth.provider are not both set "
            "(docs/mailbox-oauth.md)",
            "config_missing_key",
        )
    require_oauth_client(config)
    with _as_error_of_the_user():
        from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
        from guarantee_email_agent.services.mail.oauth.authorization import authorize
        from guarantee_email_agent.services.mail.oauth.oauth_client import oauth_client

        client = oauth_client(config)
        if not client.keeps_token:
            token = AccessTokens(client).renew()
            terminal.line(f"Nobody needs to sign in for {client.flow}.")
            terminal.outcome(f"✓ The issuer gave an access token, good until {_moment(token.expires_at)}.")
            return
        open_page = partial(_ask_to_open, terminal, client.user, timeout_s)
        authorize(client, open_page, timeout_s=timeout_s, port=port)
        terminal.outcome(f"✓ Signed in. The token is kept in {printable(str(client.token_file))}.")


def check_sign_in(config: Config) -> str:
    """That a new access token can be had, and how long it lasts.

    Raises IntegrationError where it cannot, as where a password is refused. The new token is kept, as one of `run` is:
    some issuers take the old refresh token back.
    """
    require_oauth_client(config)
    with _as_error_of_the_user(to_correct=()):
        from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
        from guarantee_email_agent.services.mail.oauth.oauth_client import oauth_client

        client = oauth_client(config)
        tokens = AccessTokens(client)
        try:
            token = tokens.renew()
        finally:
            tokens.close()
        kept = f", kept in {client.token_file}" if client.keeps_token else ""
        issued = f"a new access token until {_moment(token.expires_at)}{kept}"
        return f"{config.mailbox.oauth.provider}, {client.flow}: {issued}"


def _ask_to_open(terminal: Terminal, user: str, timeout_s: float, url: str, port: int) -> None:
    terminal.line(f"Open this address in a browser on this machine, and sign in as {printable(user)}:")
    terminal.line(f"    {printable(url)}")
    terminal.line(f"From another machine, first: ssh -L {port}:127.0.0.1:{port} …, and keep that open.")
    terminal.line(f"Waiting for at most {max(1, round(timeout_s / 60))} min; Ctrl-C gives up …")
    terminal.flush()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


@contextmanager
def _as_error_of_the_user(to_correct: Collection[str] = _TO_CORRECT) -> Iterator[None]:
    try:
        yield
    except ToolError as error:
        if error.code in to_correct:
            raise ConfigurationError(error.message, error.code) from None
        raise IntegrationError(error.message, error.code, retryable=error.retryable, outage=True) from None

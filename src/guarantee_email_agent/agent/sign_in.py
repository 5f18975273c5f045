"""Signing in to the mailbox by OAuth as a person sees it: in words of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.open_store import require_oauth_client
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError
from guarantee_email_agent.utils.terminal import Terminal
from guarantee_email_agent.utils.text import printable

_TO_CORRECT = ("mail_auth", "mail_port")
"""Codes of what waiting does not heal."""


def sign_in(config: Config, terminal: Terminal, *, timeout_s: float, port: int) -> None:
    """Have a person sign in, and keep the token; a client that needs no person gets a token to see that it can.

    Raises ConfigurationError for what has to be corrected, and IntegrationError for what may be tried again.
    """
    mailbox = config.mailbox
    if not mailbox.server.built_in or mailbox.imap.host is None or mailbox.oauth.provider is None:
        raise ConfigurationError(
            "There is nothing to sign in to: mailbox.imap.host and mailbox.oauth.provider are not both set "
            "(docs/mailbox-oauth.md)",
            "config_missing_key",
        )
    require_oauth_client(config)
    with _as_error_of_the_user():
        from guarantee_email_agent.services.mail.oauth.access_tokens import TokenIssuer
        from guarantee_email_agent.services.mail.oauth.authorization import authorize
        from guarantee_email_agent.services.mail.oauth.oauth_client import oauth_client

        client = oauth_client(config)
        if not client.keeps_token:
            token = TokenIssuer(client).issue()
            terminal.line(f"Nobody needs to sign in for {client.flow}.")
            until = datetime.fromtimestamp(token.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
            terminal.outcome(f"✓ The issuer gave an access token, good until {until}.")
            return
        authorize(client, _PersonAtTerminal(terminal, client.user), timeout_s=timeout_s, port=port)
        terminal.outcome(f"✓ Signed in. The token is kept in {printable(str(client.token_file))}.")


class _PersonAtTerminal:
    """A Person who reads what is printed."""

    def __init__(self, terminal: Terminal, user: str) -> None:
        self._terminal = terminal
        self._user = printable(user)

    def enter_code(self, uri: str, code: str, expires_in_s: float) -> None:
        self._terminal.line(f"Open {printable(uri)} in a browser, sign in as {self._user}, and enter the code:")
        self._terminal.line(f"    {printable(code)}")
        self._terminal.line(f"Waiting for at most {max(1, round(expires_in_s / 60))} min; Ctrl-C gives up …")
        self._terminal.flush()

    def open_page(self, url: str, port: int) -> None:
        self._terminal.line(f"Open this address in a browser on this machine, and sign in as {self._user}:")
        self._terminal.line(f"    {printable(url)}")
        self._terminal.line(f"From another machine, first: ssh -L {port}:127.0.0.1:{port} …, and keep that open.")
        self._terminal.flush()


@contextmanager
def _as_error_of_the_user() -> Iterator[None]:
    try:
        yield
    except ToolError as error:
        if error.code in _TO_CORRECT:
            raise ConfigurationError(error.message, error.code) from None
        raise IntegrationError(error.message, error.code, retryable=error.retryable, outage=True) from None

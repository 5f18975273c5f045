"""What this agent is to an issuer of tokens: a client with an id, a flow and endpoints (RFC 6749 §2)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.mailbox_settings import OAuthFlow
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.files.private_file import read_private_text
from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.services.tool_error import ToolError

AUTHORIZE: Final = "guarantee-email-agent authorize"

_MAX_KEY_BYTES: Final = 100_000


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """user: whose mailbox it is. token_file: of the flow in which a person signs in. key_file: of a service account.

    The scopes are those of IMAP and SMTP together: one token is for both.
    """

    flow: OAuthFlow
    client_id: str | None
    secret: str | None = field(repr=False)
    user: str
    token_url: str
    scopes: tuple[str, ...] = ()
    token_file: Path | None = None
    key_file: Path | None = None
    authorization_url: str | None = None

    @property
    def keeps_token(self) -> bool:
        return self.flow == "authorization_code"


@dataclass(frozen=True, slots=True)
class ServiceAccountKey:
    """The key that a service account signs its requests with (RFC 7523)."""

    email: str
    private_key: str = field(repr=False)


def oauth_client(config: Config) -> OAuthClient:
    """That of a configuration with `mailbox.oauth.provider`."""
    oauth, mailbox = config.mailbox.oauth, config.mailbox
    endpoints = oauth.endpoints
    return OAuthClient(
        oauth.used_flow,
        oauth.client_id,
        config.secrets.oauth_client_secret,
        mailbox.imap.user or mailbox.from_address or "",
        endpoints.token,
        oauth.used_scopes,
        oauth.token_file,
        oauth.key_file,
        endpoints.authorization,
    )


def read_service_account_key(file: Path) -> ServiceAccountKey:
    """Raises ToolError `mail_auth` for a file that others may read, or that is no such key."""
    try:
        match json.loads(read_private_text(file, _MAX_KEY_BYTES, follow_links=True)):
            case {"client_email": str(email), "private_key": str(private_key)}:
                return ServiceAccountKey(email, private_key)
    except InputFileError as error:
        raise ToolError("mail_auth", f"mailbox.oauth.key_file {file}: {error.message}") from None
    except (ValueError, RecursionError):
        pass
    text = f"mailbox.oauth.key_file {file}: is no JSON key of a service account, with client_email and private_key"
    raise ToolError("mail_auth", text)

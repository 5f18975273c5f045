"""The client that we are to an issuer of tokens (RFC 6749 §2), its token, and the file that keeps that between runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.mailbox_settings import KEPT_TOKEN_FLOWS, OAuthFlow
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.files.private_file import PrivateDraft, locked, private_draft, read_private_text
from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.services.call_errors import ToolError

AUTHORIZE: Final = "guarantee-email-agent authorize"

_MAX_KEY_BYTES: Final = 100_000


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """user: whose mailbox it is. token_file: of flows in which a person signs in. key_file: of a service account.

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
    device_url: str | None = None
    authorization_url: str | None = None

    @property
    def keeps_token(self) -> bool:
        return self.flow in KEPT_TOKEN_FLOWS


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
        endpoints.device,
        endpoints.authorization,
    )


def read_service_account_key(file: Path) -> tuple[str, str]:
    """The address of a service account, and the private key that it signs its requests with (RFC 7523).

    Raises ToolError `mail_auth` for a file that others may read, or that is no such key.
    """
    try:
        match json.loads(read_private_text(file, _MAX_KEY_BYTES, follow_links=True)):
            case {"client_email": str(email), "private_key": str(private_key)}:
                return email, private_key
    except InputFileError as error:
        raise ToolError("mail_auth", f"mailbox.oauth.key_file {file}: {error.message}") from None
    except (ValueError, RecursionError):
        pass
    text = f"mailbox.oauth.key_file {file}: is no JSON key of a service account, with client_email and private_key"
    raise ToolError("mail_auth", text)


_MAX_BYTES: Final = 4_000_000  # more than an issuer's answer
_ROOM_BYTES: Final = 32_768  # more than a token of any provider
_MAX_SECONDS: Final = 1e12
_LOCK_S: Final = 12.0  # another agent asks the issuer meanwhile
_EARLY_S: Final = 300.0  # an access token is replaced so long before its end,
_EARLY_PART: Final = 0.2  # or after so much less than its lifetime


@dataclass(frozen=True, slots=True)
class Token:
    """obtained_at, expires_at: of the access token, in seconds since 1970 by our clock, not by the issuer's."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    obtained_at: float
    expires_at: float

    def is_usable(self, now: float) -> bool:
        """Whether it lasts for a while. Not if it comes from the future: the clock was set back meanwhile."""
        early_s = min(_EARLY_S, _EARLY_PART * (self.expires_at - self.obtained_at))
        return self.obtained_at <= now < self.expires_at - early_s


def _is_sendable(*values: str) -> bool:
    """Whether they can be sent. Tokens are ASCII (RFC 6749 appendix A); JSON may hold half a character."""
    return all(value.isascii() for value in values)


class TokenFile:
    """Raises ToolError: `mail_auth` where a person has to sign in, `mail_disk_full`, `mail_unavailable`."""

    def __init__(self, client: OAuthClient) -> None:
        assert client.token_file is not None
        self.path = client.token_file
        self._made_for = {"client_id": client.client_id, "token_url": client.token_url, "user": client.user}

    def read(self) -> Token:
        """The token. It has to be one for this client and this user."""
        try:
            content = json.loads(read_private_text(self.path, _MAX_BYTES))
        except InputFileError as error:
            if error.code == "document_not_found":
                raise self._sign_in("does not exist") from None
            raise ToolError("mail_auth", f"mailbox.oauth.token_file {self.path}: {error.message}") from None
        except (ValueError, RecursionError):
            content = None
        match content:
            case {
                "access_token": str(access),
                "refresh_token": str() | None as refresh,
                "obtained_at": int() | float() as obtained_at,
                "expires_at": int() | float() as expires_at,
                **others,
            } if max(abs(obtained_at), abs(expires_at)) < _MAX_SECONDS and _is_sendable(access, refresh or ""):
                for name, value in self._made_for.items():
                    if others.get(name) != value:
                        raise self._sign_in(f"was made for another {name.replace('_', ' ')}")
                return Token(access, refresh, float(obtained_at), float(expires_at))
        raise self._sign_in("holds no token")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While no other process of ours reads it in order to replace it."""
        try:
            with locked(self.path, _LOCK_S):
                yield
        except TimeoutError:
            text = f"mailbox.oauth.token_file {self.path}: another process keeps it locked"
            raise ToolError("mail_unavailable", text, retryable=True) from None
        except OSError as error:
            raise self._unwritable(error) from None

    @contextmanager
    def draft(self) -> Iterator[PrivateDraft]:
        """Room for a token that is still to come, while it is locked: one that was issued must not be lost."""
        try:
            with private_draft(self.path, _ROOM_BYTES) as draft:
                yield draft
        except OSError as error:
            raise self._unwritable(error) from None

    def commit(self, draft: PrivateDraft, token: Token) -> None:
        """Put a token into the file."""
        content = {
            **self._made_for,
            "access_token": token.access_token,
            "refresh_token": token.refresh_token,
            "obtained_at": token.obtained_at,
            "expires_at": token.expires_at,
        }
        draft.commit(json.dumps(content, indent=2) + "\n")

    def _sign_in(self, problem: str) -> ToolError:
        return ToolError("mail_auth", f"mailbox.oauth.token_file {self.path} {problem}. Sign in: {AUTHORIZE}")

    def _unwritable(self, error: OSError) -> ToolError:
        import errno  # only for those in trouble

        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        text = f"mailbox.oauth.token_file {self.path} cannot be written ({error.strerror})"
        remedy = "Make room" if full else "Name one in a folder that the agent may write to"
        return ToolError("mail_disk_full" if full else "mail_unavailable", f"{text}. {remedy}", retryable=True)

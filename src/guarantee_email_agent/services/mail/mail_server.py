"""Where an IMAP or SMTP server is, how to talk to it safely, and its errors in words for the caller."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.utils.text import truncate

if TYPE_CHECKING:
    from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens

CONNECT_S: Final = 10.0
STEP_S: Final = 20.0  # of waiting for the next bytes of an answer
_Connection = TypeVar("_Connection")
_MAX_RESPONSE_CHARS: Final = 200  # of what a server answered, in our messages


class TokenRefusedError(ToolError):
    """A server refused an access token: another one may be taken."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """security: TLS from the first byte, after STARTTLS, or none (loopback). tokens: in place of the password."""

    kind: Literal["IMAP", "SMTP"]
    host: str
    port: int
    security: Literal["tls", "starttls", "none"]
    user: str | None
    password: str | None = field(repr=False)
    ca_file: Path | None = None
    tokens: AccessTokens | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{self.kind} server {self.host}:{self.port}"

    @property
    def setting(self) -> str:
        """The section of the configuration that it comes from."""
        return f"mailbox.{self.kind.lower()}"

    def with_token(self, connect: Callable[[str | None], _Connection]) -> _Connection:
        """What `connect` gives with an access token, if there are any; where that is refused, once more with another.

        Raises ToolError.
        """
        if self.tokens is None or self.user is None:
            return connect(None)
        token = self.tokens.get()
        try:
            return connect(token)
        except TokenRefusedError:
            if (other := self.tokens.get_other(token)) is None:
                raise
            return connect(other)

    def credentials(self, encoding: Literal["utf-8", "ascii"]) -> tuple[str, str]:
        """User and password. encoding: ascii where the server lacks PLAIN. Raises ToolError where they do not fit."""
        user, password = self.user or "", self.password or ""
        try:
            f"{user}{password}".encode(encoding)
        except UnicodeEncodeError:
            text = f"the {self.name} offers no way to log in with the characters of this user or password"
            raise ToolError("mail_auth", f"{text}. Set a password of ASCII characters") from None
        return user, password

    def starttls_missing(self) -> ToolError:
        text = f"the {self.name} offers no STARTTLS. Use {self.setting}.security tls and the port for it"
        return ToolError("mail_tls", text)

    def login_refused(self, response: str) -> ToolError:
        text = f"the {self.name} refused the login of {self.user}: {response}. Check the user and {self.kind}_PASSWORD"
        return ToolError("mail_auth", text)

    def token_refused(self, response: str) -> TokenRefusedError:
        text = f"the {self.name} refused the access token of {self.user}: {response}"
        remedy = f"Check the user, and that this client may use {self.kind} for that mailbox"
        return TokenRefusedError("mail_auth", f"{text}. {remedy}")

    def unavailable(self, text: str) -> ToolError:
        """text: what follows the server's name."""
        return ToolError("mail_unavailable", f"the {self.name} {text}", retryable=True)

    def connection_error(self, error: Exception) -> ToolError:
        """Why no connection came about, or why it broke, and what to do."""
        name = self.name
        match error:
            case ssl.SSLCertVerificationError():
                reason = error.verify_message or "it cannot be verified"
                remedy = "Have it renewed, or name its CA with mailbox.imap.ca_file"
                return ToolError("mail_tls", f"the certificate of the {name} was refused: {reason}. {remedy}")
            case ssl.SSLError() if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
                text = f"the {name} speaks no TLS on this port. Change the port or {self.setting}.security"
                return ToolError("mail_tls", text)
            case socket.gaierror():
                text = f"there is no host of that name for the {name}. Check {self.setting}.host, and the network"
                return ToolError("mail_unavailable", text, retryable=True)
            case TimeoutError():
                return ToolError("mail_timeout", f"the {name} did not answer in time", retryable=True)
            case ConnectionRefusedError():
                return self.unavailable(f"refuses connections. Check {self.setting}.port, and whether it runs")
        text = f"the connection to the {name} broke: {format_response(error)}"
        return ToolError("mail_unavailable", text, retryable=True)


@cache
def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies the certificate and the host's name. Raises OSError for a file that holds no certificate."""
    return ssl.create_default_context(cafile=ca_file)


def format_response(response: object) -> str:
    """What a server answered, short, on one line, and without the full stop of a sentence."""
    text = response.decode("utf-8", "replace") if isinstance(response, bytes) else str(response)
    text = re.sub(r"""^b(['"])(.*)\1$""", r"\2", text)  # imaplib's errors hold bytes
    return truncate(" ".join(text.split()).rstrip("."), _MAX_RESPONSE_CHARS)


MECHANISM: Final = "XOAUTH2"
_MAX_ANSWERS: Final = 4
_LONG_WORD: Final = re.compile(r"\S{60,}")


class TokenLogin:
    """One try to log in by XOAUTH2, which Google and Microsoft document: what to send first, and to what follows.

    A server that refuses a token first sends a challenge with the reason, as JSON, and wants an empty answer to that.
    """

    def __init__(self, server: MailServer, token: str, offered: Collection[str]) -> None:
        """offered: names of the mechanisms that the server has. Raises ToolError where it is none of them."""
        upper = {name.upper() for name in offered}
        if MECHANISM not in upper:
            has = f"only {', '.join(sorted(upper))}" if upper else "no login at all here"
            text = f"the {server.name} offers {has}, and access tokens need {MECHANISM}"
            remedy = f"Allow OAuth there, or use a password: {server.kind}_PASSWORD"
            raise ToolError("mail_auth", f"{text}. {remedy}")
        self._server = server
        self._token = token
        self._answers = 0
        self._reason = ""
        self.first = f"user={server.user or ''}\x01auth=Bearer {token}\x01\x01".encode()

    def answer(self, challenge: bytes) -> bytes:
        """The first response to an empty challenge; then as `acknowledge`."""
        if self._answers == 0 and not challenge.strip():
            self._answers = 1
            return self.first
        return self.acknowledge(challenge)

    def acknowledge(self, challenge: bytes) -> bytes:
        """The empty answer to the challenge that gives the reason of a refusal.

        Raises ToolError for a server that goes on asking.
        """
        self._answers += 1
        if self._answers > _MAX_ANSWERS:
            raise self._server.unavailable("does not come to an end with the login")
        with suppress(ValueError, RecursionError):
            match json.loads(challenge):
                case {"status": str() | int() as status}:
                    self._reason = str(status)
        return b""

    def describe(self, response: object) -> str:
        """What a server said to a refusal, with the reason that its challenge gave, and without the token."""
        said = response.decode("utf-8", "replace") if isinstance(response, bytes) else str(response)
        said, reason = (format_response(self._without_token(text)) for text in (said, self._reason))
        return f"{said} (status {reason})" if reason and reason not in said else said

    def _without_token(self, text: str) -> str:
        """Before anything is cut; a server may echo a part of it, or what it was sent in base64."""
        return _LONG_WORD.sub("…", text.replace(self._token, "…"))

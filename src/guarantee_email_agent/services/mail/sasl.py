"""Logging in with an access token: XOAUTH2, which Google and Microsoft document and other servers have, too.

A server that refuses a token first sends a challenge with the reason, as JSON, and wants an empty answer to that before
it says no.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from guarantee_email_agent.services.mail.mail_server import MailServer, format_response
from guarantee_email_agent.services.tool_error import ToolError

MECHANISM: Final = "XOAUTH2"
_MAX_ANSWERS: Final = 4
_LONG_WORD: Final = re.compile(r"\S{60,}")


class TokenLogin:
    """One try to log in: what to send first, and what to the challenges that follow."""

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

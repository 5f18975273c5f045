"""Logging in with an access token: the SASL mechanisms XOAUTH2 and OAUTHBEARER.

XOAUTH2 is what Google and Microsoft document and what most servers have; OAUTHBEARER is its standard (RFC 7628). A
server that refuses a token first sends a challenge with the reason, as JSON, and wants an answer to that, empty or one
octet, before it says no.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final, Literal

from guarantee_email_agent.services.mail.mail_server import MailServer, format_response
from guarantee_email_agent.services.tool_error import ToolError

Mechanism = Literal["XOAUTH2", "OAUTHBEARER"]

_PREFERRED: Final[tuple[Mechanism, ...]] = ("XOAUTH2", "OAUTHBEARER")
_MAX_ANSWERS: Final = 4
_LONG_WORD: Final = re.compile(r"\S{60,}")
_LAST_ANSWERS: Final[dict[Mechanism, bytes]] = {"XOAUTH2": b"", "OAUTHBEARER": b"\x01"}  # RFC 7628 §3.2.3


def choose_mechanism(offered: Collection[str], server: MailServer) -> Mechanism:
    """offered: names of the mechanisms that a server has. Raises ToolError where it has neither."""
    upper = {name.upper() for name in offered}
    for mechanism in _PREFERRED:
        if mechanism in upper:
            return mechanism
    has = f"only {', '.join(sorted(upper))}" if upper else "no login at all here"
    text = f"the {server.name} offers {has}, and access tokens need XOAUTH2 or OAUTHBEARER"
    remedy = f"Allow OAuth there, or use a password: {server.kind}_PASSWORD"
    raise ToolError("mail_auth", f"{text}. {remedy}")


class TokenLogin:
    """One try to log in: what to send first, and what to the challenges that follow."""

    def __init__(self, mechanism: Mechanism, server: MailServer, token: str) -> None:
        self.mechanism = mechanism
        self._server = server
        self._token = token
        self._answers = 0
        self._reason = ""
        user = server.user or ""
        if mechanism == "XOAUTH2":
            text = f"user={user}\x01auth=Bearer {token}\x01\x01"
        else:  # RFC 7628 §3.1; the name's own commas and equals signs are escaped (RFC 5801 §4)
            name = user.replace("=", "=3D").replace(",", "=2C")
            text = f"n,a={name},\x01host={server.host}\x01port={server.port}\x01auth=Bearer {token}\x01\x01"
        self.first = text.encode()

    def answer(self, challenge: bytes) -> bytes:
        """The first response to an empty challenge; then as `acknowledge`."""
        if self._answers == 0 and not challenge.strip():
            self._answers = 1
            return self.first
        return self.acknowledge(challenge)

    def acknowledge(self, challenge: bytes) -> bytes:
        """What the challenge that gives the reason of a refusal is to be answered with.

        Raises ToolError for a server that goes on asking.
        """
        self._answers += 1
        if self._answers > _MAX_ANSWERS:
            raise self._server.unavailable("does not come to an end with the login")
        with suppress(ValueError, RecursionError):
            match json.loads(challenge):
                case {"status": str() | int() as status}:
                    self._reason = str(status)
        return _LAST_ANSWERS[self.mechanism]

    def describe(self, response: object) -> str:
        """What a server said to a refusal, with the reason that its challenge gave, and without the token."""
        said = response.decode("utf-8", "replace") if isinstance(response, bytes) else str(response)
        said, reason = (format_response(self._without_token(text)) for text in (said, self._reason))
        return f"{said} (status {reason})" if reason and reason not in said else said

    def _without_token(self, text: str) -> str:
        """Before anything is cut; a server may echo a part of it, or what it was sent in base64."""
        return _LONG_WORD.sub("…", text.replace(self._token, "…"))

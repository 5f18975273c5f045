"""The access token of the moment, for every connection of a process: kept while it is good, replaced in time.

Asking goes on in a thread of its own, whoever gives up waiting for it: an issuer may take the old refresh token back
with the answer that brings the new one, so that an answer that nobody kept would cost a person's sign-in.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from guarantee_email_agent.files.private_file import PrivateDraft
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth.oauth_client import AUTHORIZE, OAuthClient, Token, TokenFile
from guarantee_email_agent.services.mail.oauth.token_issuer import TokenIssuer

logger = logging.getLogger(__name__)

WAIT_S: Final = 12.0  # for the issuer; the agent's own limit of a call is 30 s
_FRESH_S: Final = 60.0  # the age below which a token that was refused is not replaced: the next would be, too


class AccessTokens:
    """May be used from several threads. now: seconds since 1970. Methods raise ToolError, as TokenIssuer does."""

    def __init__(self, client: OAuthClient, now: Callable[[], float] = time.time) -> None:
        self._file = TokenFile(client) if client.keeps_token else None
        self._issuer = TokenIssuer(client, now)
        self._now = now
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._request: Future[Token] | None = None

    def get(self) -> str:
        """One that lasts for a while yet."""
        with self._lock:
            token = self._token
        if token is None or not token.is_usable(self._now()):
            try:
                token = self._replace(None)
            except ToolError as error:
                # Its last minutes are there for an issuer that is down.
                if not error.retryable or token is None or not token.obtained_at <= self._now() < token.expires_at:
                    raise
        return token.access_token

    def get_other(self, refused: str) -> str | None:
        """Another one than that which a mail server refused; None where that one was issued just now."""
        with self._lock:
            token = self._token
        if token is None or token.access_token == refused:
            token = self._replace(refused)
        return token.access_token if token.access_token != refused else None

    def close(self) -> None:
        """Give a request that is on its way the time to be kept."""
        with self._lock:
            request = self._request
        if request is not None:
            with suppress(ToolError, TimeoutError):
                request.result(WAIT_S)

    def _replace(self, refused: str | None) -> Token:
        with self._lock:
            request = self._request
            if request is None:
                request = self._request = Future()
                arguments = (request, refused)
                # No daemon: a process that ended with the answer on its way would lose the one good refresh token.
                threading.Thread(target=self._work, args=arguments, daemon=False, name="access token").start()
        try:
            return request.result(WAIT_S)
        except TimeoutError:
            text = f"the {self._issuer.name} does not answer in time"
            raise ToolError("mail_unavailable", text, retryable=True) from None

    def _work(self, request: Future[Token], refused: str | None) -> None:
        try:
            token = self._obtain(refused)
        except BaseException as error:  # noqa: BLE001 - for whoever waits
            with self._lock:
                self._request = None
            request.set_exception(error)
            return
        with self._lock:
            self._token, self._request = token, None
        request.set_result(token)

    def _obtain(self, refused: str | None) -> Token:
        if self._file is None:
            with self._lock:
                known = self._token
            return known if known is not None and self._is_too_new(known, refused) else self._issuer.issue()
        if self._is_good(known := self._file.read(), refused):
            return known
        with self._file.locked():
            stored = self._file.read()  # another agent may have been faster
            if self._is_good(stored, refused) or self._is_too_new(stored, refused):
                return stored
            if stored.refresh_token is None:
                text = f"mailbox.oauth.token_file {self._file.path} holds no refresh token"
                raise ToolError("mail_auth", f"{text}, and its access token has expired. Sign in: {AUTHORIZE}")
            with self._file.draft() as draft:
                token = self._issuer.refresh(stored)
                self._save(draft, token)
        return token

    def _save(self, draft: PrivateDraft, token: Token) -> None:
        """A disk that fails between the making of room and the writing leaves the token in memory alone."""
        assert self._file is not None
        try:
            self._file.commit(draft, token)
        except OSError as error:
            logger.error(
                "mail: %s cannot be written (%s). The new token is in memory alone: before it ends, mend that, and "
                "sign in: %s",
                self._file.path,
                error.strerror,
                AUTHORIZE,
            )

    def _is_too_new(self, token: Token, refused: str | None) -> bool:
        """Whether it was refused just after it was issued."""
        return token.access_token == refused and 0 <= self._now() - token.obtained_at < _FRESH_S

    def _is_good(self, token: Token, refused: str | None) -> bool:
        return token.access_token != refused and token.is_usable(self._now())

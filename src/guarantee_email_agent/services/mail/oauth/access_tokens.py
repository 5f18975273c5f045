"""Access tokens of an OAuth issuer: asked for over HTTP, kept while they are good, replaced in time.

oauthlib writes the requests and reads the answers, and does no I/O; httpx2 carries them, so that proxies and
certificates are found as everywhere else.
"""

from __future__ import annotations

import json
import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from oauthlib.oauth2 import OAuth2Error, ServiceApplicationClient
from oauthlib.oauth2.rfc6749.parameters import parse_token_response, prepare_token_request

from guarantee_email_agent.files.private_file import PrivateDraft
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth.oauth_client import (
    AUTHORIZE,
    OAuthClient,
    Token,
    TokenFile,
    read_service_account_key,
)
from guarantee_email_agent.utils.loopback import is_loopback
from guarantee_email_agent.utils.text import printable, truncate

_CONNECT_S: Final = 10.0
_READ_S: Final = 10.0  # for the next bytes
_REQUEST_S: Final = 30.0  # for the whole of one, before its connection is closed
_MAX_BYTES: Final = 1_000_000
_MAX_QUOTED_CHARS: Final = 200
_MIN_SECRET_CHARS: Final = 4
_LIFETIME_S: Final = 1800.0  # where the issuer tells none
_MAX_LIFETIME_S: Final = 366 * 86_400.0
_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"  # RFC 8628 §3.4
_JWT_LIFETIME_S: Final = 1800
_SKEW_S: Final = 60  # by which our clock may be ahead of the issuer's
_READ_BY_LIBRARY: Final = ("access_token", "token_type", "refresh_token", "error", "error_description")
_NO_SECRETS: Final = ("grant_type", "client_id", "scope", "redirect_uri")
_ACCESS_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,100000}")
_TRANSIENT: Final = ("temporarily_unavailable", "server_error", "slow_down", "authorization_pending")
_SIGN_IN_AGAIN: Final = ("invalid_grant", "interaction_required", "login_required", "consent_required")
_CLIENT_REFUSED: Final = ("invalid_client", "unauthorized_client")


class RefusedByIssuerError(ToolError):
    """`error`: as OAuth calls it, such as `invalid_grant` (RFC 6749 §5.2)."""

    def __init__(self, code: str, message: str, error: str, *, retryable: bool = False) -> None:
        super().__init__(code, message, retryable)
        self.error = error


@dataclass(frozen=True, slots=True)
class DeviceAuthorization:
    """What a person needs in order to sign in (RFC 8628 §3.2). interval_s: between two polls."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    expires_in_s: float
    interval_s: float


class TokenIssuer:
    """Every method asks once. Raises ToolError: `mail_unavailable` where another try can heal it, `mail_auth`,
    `mail_tls`; RefusedByIssuerError where the issuer said no.

    now: seconds since 1970.
    """

    def __init__(self, client: OAuthClient, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._now = now

    def refresh(self, token: Token) -> Token:
        """A new access token; with the old refresh token where the issuer gives no new one (RFC 6749 §6)."""
        return self._token(self._body("refresh_token", refresh_token=token.refresh_token), token)

    def issue(self) -> Token:
        """One for the client itself: by its secret (RFC 6749 §4.4), or by a key, on behalf of the user (RFC 7523)."""
        client = self._client
        if client.flow == "client_credentials":
            return self._token(self._body("client_credentials", scope=list(client.scopes)))
        assert client.key_file is not None
        email, private_key = read_service_account_key(client.key_file)
        signer = ServiceApplicationClient(client.client_id)
        issued_at = int(self._now()) - _SKEW_S
        try:
            body = signer.prepare_request_body(
                private_key=private_key,
                issuer=email,
                subject=client.user,
                audience=client.token_url,
                issued_at=issued_at,
                expires_at=issued_at + _JWT_LIFETIME_S,
                scope=list(client.scopes),
            )
        except Exception:  # noqa: BLE001 - of the library for cryptography, whose text could quote the key
            text = f"mailbox.oauth.key_file {client.key_file}: its private_key cannot be used. Make a new key"
            raise ToolError("mail_auth", text) from None
        return self._token(body)

    def redeem(self, code: str, verifier: str, redirect_uri: str) -> Token:
        """For an authorization code (RFC 6749 §4.1.3), with its PKCE verifier (RFC 7636 §4.5)."""
        return self._token(
            self._body("authorization_code", code=code, code_verifier=verifier, redirect_uri=redirect_uri)
        )

    def begin_device(self) -> DeviceAuthorization:
        """Begin to sign a person in on another device (RFC 8628 §3.1)."""
        client = self._client
        assert client.device_url is not None
        form = {"client_id": client.client_id, "scope": " ".join(client.scopes), "client_secret": client.secret}
        answer = self._post(client.device_url, urlencode({name: value for name, value in form.items() if value}))
        if "error" in answer:
            raise self.refused(str(answer["error"]), str(answer.get("error_description", "")))
        match answer:
            # Google says verification_url.
            case {"device_code": str(device_code), "user_code": str(user_code), **others}:
                uri = others.get("verification_uri") or others.get("verification_url")
                if isinstance(uri, str) and re.match(r"https?://", uri, re.IGNORECASE):
                    return DeviceAuthorization(
                        device_code,
                        user_code,
                        uri,
                        _seconds(others.get("expires_in"), 900.0),
                        max(1.0, _seconds(others.get("interval"), 5.0)),  # RFC 8628 §3.5
                    )
        raise self._unavailable("answers what is no device authorization")

    def redeem_device(self, authorization: DeviceAuthorization) -> Token:
        """Raises RefusedByIssuerError, also for `authorization_pending` and `slow_down` (RFC 8628 §3.5)."""
        return self._token(self._body(_DEVICE_GRANT, device_code=authorization.device_code))

    def _body(self, grant_type: str, **parameters: Any) -> str:
        client = self._client
        body: str = prepare_token_request(
            grant_type, client_id=client.client_id, client_secret=client.secret, **parameters
        )
        return body

    def _token(self, body: str, old: Token | None = None) -> Token:
        asked_at = self._now()  # before the issuer, so that no part of its lifetime is counted twice
        answer = self._post(self._client.token_url, body)
        # Of lifetimes that make no sense, and of errors that are no text, the library would make errors of its own.
        read = {name: answer[name] for name in _READ_BY_LIBRARY if isinstance(answer.get(name), str)}
        if "access_token" not in read and "error" not in read:
            raise self._unavailable("answers what is no bearer token")
        try:
            issued = parse_token_response(json.dumps(read))
        except OAuth2Error as error:
            secrets = [value for name, value in parse_qsl(body) if name not in _NO_SECRETS]
            raise self.refused(str(error.error), str(error.description or ""), secrets) from None
        access, refresh = issued["access_token"], issued.get("refresh_token")
        kind = issued.get("token_type", "Bearer")
        if not _ACCESS_TOKEN.fullmatch(access) or kind.lower() != "bearer":
            raise self._unavailable("answers what is no bearer token")
        refresh = refresh or (old.refresh_token if old else None)
        return Token(access, refresh, asked_at, asked_at + _seconds(answer.get("expires_in"), _LIFETIME_S))

    def _post(self, url: str, body: str) -> dict[str, Any]:
        """The JSON object of the answer, whatever its status."""
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # so that its size can be limited
        }
        watchdog: threading.Timer | None = None
        try:
            timeout = httpx2.Timeout(_CONNECT_S, read=_READ_S)
            is_near = is_loopback(httpx2.URL(url).host)
            if not is_near and httpx2.URL(url).scheme != "https":
                text = f"the {self.name} would get secrets unencrypted. Name it by a URL that begins with https://"
                raise ToolError("mail_tls", text)
            trust_env = not is_near  # a proxy could not reach this machine
            verify = False if url.startswith("http:") else httpx2.create_ssl_context()  # which takes 20 ms to read
            with httpx2.Client(timeout=timeout, trust_env=trust_env, verify=verify, follow_redirects=False) as http:
                watchdog = threading.Timer(_REQUEST_S, http.close)
                watchdog.daemon = True
                watchdog.start()
                with http.stream("POST", url, content=body, headers=headers) as response:
                    data = b""
                    for chunk in response.iter_raw():
                        data += chunk
                        if len(data) > _MAX_BYTES:
                            raise self._unavailable("gives an answer that is too large")
                    status = response.status_code
        except (httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError, ValueError, ImportError) as error:
            raise self._connection_error(error) from None
        finally:
            if watchdog is not None:
                watchdog.cancel()
        if status == 429 or status >= 500:
            raise self._unavailable(f"is not well (HTTP {status})")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if 300 <= status < 400 or not isinstance(answer, dict) or (status >= 400 and "error" not in answer):
            remedy = "Check mailbox.oauth.provider (or token_url), and proxies between"
            text = f"answers no token request (HTTP {status}). {remedy}"
            raise ToolError(
                "mail_auth" if status >= 300 else "mail_unavailable", f"the {self.name} {text}", status < 300
            )
        return answer

    @property
    def name(self) -> str:
        return f"OAuth issuer {urlsplit(self._client.token_url).hostname}"

    def _connection_error(self, error: Exception) -> ToolError:
        seen: BaseException | None = error
        while seen is not None:
            if isinstance(seen, ssl.SSLCertVerificationError):
                text = f"the certificate of the {self.name} was refused: {seen.verify_message}"
                return ToolError("mail_tls", f"{text}. Name its CA in SSL_CERT_FILE")
            seen = seen.__cause__ or seen.__context__
        if isinstance(error, httpx2.TimeoutException):
            return self._unavailable("does not answer in time")
        if isinstance(error, httpx2.ProxyError | ValueError | ImportError):
            return self._unavailable("cannot be reached through the proxy that HTTPS_PROXY or ALL_PROXY names")
        return self._unavailable("cannot be reached. Check the network, and whether it needs a proxy (HTTPS_PROXY)")

    def _unavailable(self, problem: str) -> ToolError:
        return ToolError("mail_unavailable", f"the {self.name} {problem}", retryable=True)

    def refused(self, error: str, description: str, secrets: Collection[str] = ()) -> RefusedByIssuerError:
        """What an error of OAuth's means, and what to do.

        description: the issuer's own words. secrets: of the request, which it may quote.
        """
        client = self._client
        said = f"{error}: {description}" if description else error
        known = {client.secret or "", *(secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARS)} - {""}
        for secret in sorted(known, key=len, reverse=True):
            said = said.replace(secret, "…")
        said = truncate(printable(" ".join(said.split())).rstrip("."), _MAX_QUOTED_CHARS)
        if error in _TRANSIENT:
            text = f"the {self.name} asks for patience ({said})"
            return RefusedByIssuerError("mail_unavailable", text, error, retryable=True)
        if client.flow == "service_account":
            remedy = "Check mailbox.oauth.key_file, this machine's clock, and that the account may act for the user"
        elif error in _CLIENT_REFUSED:
            remedy = "Check mailbox.oauth.client_id and OAUTH_CLIENT_SECRET, which may have expired"
        elif error == "invalid_scope":
            remedy = "Check mailbox.oauth.scopes, and what the client was granted"
        elif error in _SIGN_IN_AGAIN and client.keeps_token:
            remedy = f"Sign in anew: {AUTHORIZE}"
        else:
            remedy = "Check how the client is registered there"
        text = f"the {self.name} refuses {client.user}: {said}. {remedy}"
        return RefusedByIssuerError("mail_auth", text, error)


def _seconds(value: object, default: float) -> float:
    """From an answer; some issuers give a number as text."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return default
    return min(seconds, _MAX_LIFETIME_S) if isfinite(seconds) and seconds > 0 else default


logger = logging.getLogger(__name__)

WAIT_S: Final = 12.0  # for the issuer; the agent's own limit of a call is 30 s
_FRESH_S: Final = 60.0  # the age below which a token that was refused is not replaced: the next would be, too


class AccessTokens:
    """The access token of the moment, for every connection of a process. May be used from several threads.

    Asking goes on in a thread of its own, whoever gives up waiting for it: an issuer may take the old refresh token
    back with the answer that brings the new one, so that an answer that nobody kept would cost a person's sign-in.

    now: seconds since 1970. Methods raise ToolError, as TokenIssuer does.
    """

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

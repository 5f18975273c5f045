"""A person's sign-in: by a code on another device (RFC 8628), or in a browser that comes back to us (RFC 8252)."""

from __future__ import annotations

import hmac
import html
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Protocol, Self
from urllib.parse import parse_qsl, urlsplit

from oauthlib.common import add_params_to_uri
from oauthlib.oauth2 import WebApplicationClient

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth.access_tokens import RefusedByIssuerError, TokenIssuer
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient, Token, TokenFile

_SLOWER_S: Final = 5.0  # RFC 8628 §3.5
_DENIED: Final = ("access_denied", "authorization_declined")  # the second is Microsoft's
_TOO_LATE: Final = ("expired_token", "code_expired", "bad_verification_code")
_REQUEST_S: Final = 5.0  # that one connection may take: browsers open some that they never use
_POLL_S: Final = 0.05
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>guarantee-email-agent</title><p>{}"


class Person(Protocol):
    """Whoever signs in, who is told what to do."""

    def enter_code(self, uri: str, code: str, expires_in_s: float) -> None: ...
    def open_page(self, url: str, port: int) -> None: ...


def authorize(
    client: OAuthClient,
    person: Person,
    *,
    timeout_s: float,
    port: int = 0,
    sleep: Callable[[float], object] = time.sleep,
) -> Token:
    """Have a person sign in, and keep the token in the client's file, over one that is there.

    timeout_s: seconds to wait, at most; a device's code may expire before. port: for the browser; 0 is any.
    Raises ToolError: `mail_denied`, `mail_not_authorized` where nobody signed in, and as TokenIssuer and TokenFile do.
    """
    file = TokenFile(client)
    with file.locked(), file.draft():
        pass  # better now than once somebody has signed in
    issuer = TokenIssuer(client)
    if client.flow == "device":
        token = _authorize_device(issuer, person, timeout_s, sleep)
    else:
        token = _authorize_in_browser(client, issuer, person, timeout_s, port)
    if token.refresh_token is None:
        text = f"the {issuer.name} gave no refresh token, so the sign-in would last as long as one access token"
        raise ToolError("mail_auth", f"{text}. Add the scope for it, such as offline_access, to mailbox.oauth.scopes")
    with file.locked(), file.draft() as draft:
        try:
            file.commit(draft, token)
        except OSError as error:
            text = f"mailbox.oauth.token_file {file.path} cannot be written ({error.strerror}). Sign in again"
            raise ToolError("mail_unavailable", text) from None
    return token


def _authorize_device(issuer: TokenIssuer, person: Person, timeout_s: float, sleep: Callable[[float], object]) -> Token:
    authorization = issuer.begin_device()
    deadline = time.monotonic() + min(timeout_s, authorization.expires_in_s)
    person.enter_code(
        authorization.verification_uri, authorization.user_code, min(timeout_s, authorization.expires_in_s)
    )
    interval_s = authorization.interval_s
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise _nobody_came()
        sleep(min(interval_s, left_s))
        try:
            return issuer.redeem_device(authorization)
        except RefusedByIssuerError as error:
            if error.error == "slow_down":
                interval_s += _SLOWER_S
            elif error.error in _DENIED:
                raise ToolError("mail_denied", "the sign-in was denied. Nothing was changed") from None
            elif error.error in _TOO_LATE:
                raise _nobody_came() from None
            elif error.code != "mail_unavailable":  # authorization_pending is one of those
                raise
        except ToolError as error:
            if not error.retryable:
                raise
            interval_s = min(2 * interval_s, 60.0)  # RFC 8628 §3.5, for a connection that fails


def _authorize_in_browser(
    client: OAuthClient, issuer: TokenIssuer, person: Person, timeout_s: float, port: int
) -> Token:
    assert client.authorization_url is not None
    state = secrets.token_urlsafe(32)
    pkce = WebApplicationClient(client.client_id)
    verifier: str = pkce.create_code_verifier(64)
    try:
        redirect = LoopbackRedirect(state, port)
    except OSError as error:
        raise ToolError("mail_port", f"port {port} cannot be used ({error.strerror}). Choose another: --port") from None
    with redirect:
        # Microsoft takes any port of the name alone, Google of both.
        is_microsoft = (urlsplit(client.authorization_url).hostname or "").endswith("microsoftonline.com")
        redirect_uri = f"http://{'localhost' if is_microsoft else '127.0.0.1'}:{redirect.port}"
        parameters = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(client.scopes),
            "state": state,
            "code_challenge": pkce.create_code_challenge(verifier, "S256"),
            "code_challenge_method": "S256",
            "login_hint": client.user,
        }
        if (urlsplit(client.authorization_url).hostname or "").endswith("google.com"):
            parameters |= {"access_type": "offline", "prompt": "consent"}  # else it gives no refresh token
        given = [(name, value) for name, value in parameters.items() if value]
        person.open_page(add_params_to_uri(client.authorization_url, given), redirect.port)
        try:
            answer = redirect.wait(timeout_s)
        except TimeoutError:
            raise _nobody_came() from None
    if (refusal := answer.get("error")) is not None:
        if refusal in _DENIED:
            raise ToolError("mail_denied", "the sign-in was denied. Nothing was changed")
        raise issuer.refused(refusal, answer.get("error_description", ""))
    return issuer.redeem(answer["code"], verifier, redirect_uri)


def _nobody_came() -> ToolError:
    return ToolError("mail_not_authorized", "nobody signed in in time. Nothing was changed; start it again")


class LoopbackRedirect(ThreadingHTTPServer):
    """Where a browser brings the authorization code: a web server on loopback, for one answer (RFC 8252 §7.3).

    Serves while its context is entered, in threads: a connection that a browser holds open must not keep the next from
    being heard. state: the random text that shows an answer to be one to our question (RFC 6749 §10.12).

    port: 0 for any. Raises OSError where it is taken.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, state: str, port: int = 0) -> None:
        self._state = state
        self._answer: Mapping[str, str] = {}
        self._answered = threading.Event()
        super().__init__(("127.0.0.1", port), _RedirectHandler)
        self.port: int = self.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": _POLL_S}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def wait(self, timeout_s: float) -> Mapping[str, str]:
        """The parameters that the browser brought: `code`, or `error`. Raises TimeoutError."""
        if not self._answered.wait(timeout_s):
            raise TimeoutError
        return self._answer

    def take(self, target: str) -> tuple[int, str]:
        """Status and page. A request without our state is nobody's answer: any page in the browser can make one."""
        query = dict(parse_qsl(urlsplit(target).query))
        if not hmac.compare_digest(query.get("state", "").encode(), self._state.encode()):
            return 404, "This is no answer to the sign-in that is waited for."
        if "code" not in query and "error" not in query:
            return 400, "The answer holds no authorization code."
        self._answer = self._answer or query  # what a page is loaded again for is the first answer
        said = html.escape(query.get("error", "")[:80])
        return 200, f"The sign-in was refused: {said}." if said else "Signed in. You may close this page."

    def page_written(self) -> None:
        """Whoever waits ends the program."""
        if self._answer:
            self._answered.set()

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class _RedirectHandler(BaseHTTPRequestHandler):
    timeout = _REQUEST_S
    server: LoopbackRedirect

    def do_GET(self) -> None:
        status, text = self.server.take(self.path)
        page = _PAGE.format(text).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(page)
        self.server.page_written()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the request line holds the code
        pass

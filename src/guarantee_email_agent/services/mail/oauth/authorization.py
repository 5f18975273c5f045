"""A person's sign-in, in a browser that comes back to us (RFC 8252)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from oauthlib.common import add_params_to_uri
from oauthlib.oauth2 import WebApplicationClient

from guarantee_email_agent.services.mail.oauth.loopback_redirect import LoopbackRedirect
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient
from guarantee_email_agent.services.mail.oauth.token_file import Token, TokenFile
from guarantee_email_agent.services.mail.oauth.token_issuer import TokenIssuer
from guarantee_email_agent.services.tool_error import ToolError

_DENIED: Final = ("access_denied", "authorization_declined")  # the second is Microsoft's


def authorize(
    client: OAuthClient, open_page: Callable[[str, int], object], *, timeout_s: float, port: int = 0
) -> Token:
    """Have a person sign in, and keep the token in the client's file, over one that is there.

    open_page: is told the URL to open in a browser, and the port that the browser comes back to. timeout_s: seconds to
    wait, at most. port: 0 is any.
    Raises ToolError: `mail_denied`, `mail_not_authorized` where nobody signed in, and as TokenIssuer and TokenFile do.
    """
    file = TokenFile(client)
    with file.locked(), file.draft():
        pass  # better now than once somebody has signed in
    issuer = TokenIssuer(client)
    token = _authorize_in_browser(client, issuer, open_page, timeout_s, port)
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


def _authorize_in_browser(
    client: OAuthClient, issuer: TokenIssuer, open_page: Callable[[str, int], object], timeout_s: float, port: int
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
        open_page(add_params_to_uri(client.authorization_url, given), redirect.port)
        try:
            answer = redirect.wait(timeout_s)
        except TimeoutError:
            text = "nobody signed in in time. Nothing was changed; start it again"
            raise ToolError("mail_not_authorized", text) from None
    if (refusal := answer.get("error")) is not None:
        if refusal in _DENIED:
            raise ToolError("mail_denied", "the sign-in was denied. Nothing was changed")
        raise issuer.refused(refusal, answer.get("error_description", ""))
    return issuer.redeem(answer["code"], verifier, redirect_uri)

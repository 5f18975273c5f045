from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from mail_stores import refused
from oauth_issuer import OAuthIssuer

from guarantee_email_agent.services.mail.oauth.authorization import authorize
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient
from guarantee_email_agent.services.tool_error import ToolError


class Person:
    """Is told which page to open."""

    def __init__(self) -> None:
        self.told: Future[str] = Future()

    def __call__(self, url: str, port: int) -> None:
        self.told.set_result(url)


def test_a_file_that_cannot_be_made_is_told_before_anybody_signs_in(
    client: OAuthClient, issuer: OAuthIssuer, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match="cannot be written"):
        authorize(replace(client, token_file=tmp_path / "missing" / "token.json"), Person(), timeout_s=60)
    assert issuer.requests == []


def test_the_browser_brings_a_code_that_is_redeemed(client: OAuthClient, issuer: OAuthIssuer) -> None:
    person = Person()
    with ThreadPoolExecutor(1) as pool:
        signing_in = pool.submit(authorize, client, person, timeout_s=60)
        url = person.told.result(60)
        assert "Signed in" in get(issuer.redirect_of(url))
        assert signing_in.result().refresh_token == "refresh-1"
    assert client.token_file is not None
    assert json.loads(client.token_file.read_text())["refresh_token"] == "refresh-1"
    assert "code_challenge_method=S256" in url
    assert issuer.requests[0]["redirect_uri"].startswith("http://127.0.0.1:")


def test_a_page_that_knows_no_state_is_no_answer(client: OAuthClient, issuer: OAuthIssuer) -> None:
    person = Person()
    with ThreadPoolExecutor(1) as pool:
        signing_in = pool.submit(authorize, client, person, timeout_s=60)
        url = person.told.result(60)
        for forged in ({"state": "guessed"}, {"state": None}, {"state": "", "code": "stolen"}):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                get(issuer.redirect_of(url, **forged))
        with pytest.raises(urllib.error.HTTPError, match="400"):
            get(issuer.redirect_of(url, code=None))
        get(issuer.redirect_of(url))
        signing_in.result()
    assert len(issuer.requests) == 1


@pytest.mark.parametrize(
    ("error", "shown", "code"),
    [
        ("access_denied", "access_denied", "mail_denied"),
        ("server_error", "server_error", "mail_unavailable"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;", "mail_auth"),
    ],
)
def test_a_refusal_is_shown_to_both_and_is_no_markup(
    client: OAuthClient, issuer: OAuthIssuer, error: str, shown: str, code: str
) -> None:
    person = Person()
    with ThreadPoolExecutor(1) as pool:
        signing_in = pool.submit(authorize, client, person, timeout_s=60)
        answer = issuer.redirect_of(person.told.result(60), code=None, error=error)
        assert f"refused: {shown}" in get(answer)
        with refused(code):
            signing_in.result()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("invalid_client", "OAUTH_CLIENT_SECRET"),
        ((200, b'{"access_token": "a", "expires_in": 60}'), "offline_access"),
    ],
)
def test_without_a_token_that_lasts_the_old_one_stays(
    client: OAuthClient, issuer: OAuthIssuer, token_file: Path, answer: str | tuple[int, bytes], told: str
) -> None:
    before, person = token_file.read_text(), Person()
    issuer.answers = [answer]
    with ThreadPoolExecutor(1) as pool:
        signing_in = pool.submit(authorize, client, person, timeout_s=60)
        get(issuer.redirect_of(person.told.result(60)))
        with pytest.raises(ToolError, match=told):
            signing_in.result()
    assert token_file.read_text() == before


def test_nobody_who_comes_in_time_and_a_port_that_is_taken(client: OAuthClient, issuer: OAuthIssuer) -> None:
    with refused("mail_not_authorized"):
        authorize(client, Person(), timeout_s=0.01)
    with refused("mail_port"):
        authorize(client, Person(), timeout_s=1.0, port=issuer.port)


def test_a_connection_that_says_nothing_holds_up_nobody(client: OAuthClient, issuer: OAuthIssuer) -> None:
    person = Person()
    with ThreadPoolExecutor(1) as pool:
        signing_in = pool.submit(authorize, client, person, timeout_s=60)
        url = person.told.result(60)
        redirect = issuer.redirect_of(url)
        port = int(redirect.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port)):
            get(redirect)
            signing_in.result()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())

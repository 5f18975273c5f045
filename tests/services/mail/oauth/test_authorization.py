import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from mail_stores import refused
from oauth_issuer import SCOPES, OAuthIssuer

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth.authorization import authorize
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient


class Person:
    """Is told what to do."""

    def __init__(self) -> None:
        self.told: Future[str] = Future()

    def enter_code(self, uri: str, code: str, expires_in_s: float) -> None:
        self.told.set_result(f"{uri} {code} {expires_in_s:g}")

    def open_page(self, url: str, port: int) -> None:
        self.told.set_result(url)


def refusal(client: OAuthClient) -> ToolError:
    with pytest.raises(ToolError) as caught:
        authorize(client, Person(), timeout_s=60, sleep=lambda _: None)
    return caught.value


class TestDevice:
    def test_a_person_enters_a_code_and_the_token_is_kept(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        issuer.answers = ["authorization_pending", "authorization_pending"]
        person, waits = Person(), list[float]()
        token = authorize(client, person, timeout_s=60, sleep=waits.append)
        assert person.told.result() == f"{issuer.url}/enter BDWP-HQPK 60"
        assert json.loads(client.token_file.read_text())["refresh_token"] == token.refresh_token == "refresh-1"
        assert issuer.requests[0] == {"client_id": client.client_id, "scope": " ".join(SCOPES)}
        assert waits == [1.0, 1.0, 1.0]

    def test_an_issuer_that_asks_for_patience_gets_it(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        issuer.answers = ["slow_down", (503, b""), "authorization_pending"]
        waits: list[float] = []
        authorize(client, Person(), timeout_s=60, sleep=waits.append)
        assert waits == [1.0, 6.0, 12.0, 12.0]

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            ("access_denied", "mail_denied"),
            ("authorization_declined", "mail_denied"),
            ("expired_token", "mail_not_authorized"),
            ("invalid_client", "mail_auth"),
        ],
    )
    def test_without_a_sign_in_the_old_token_stays(
        self, client: OAuthClient, issuer: OAuthIssuer, token_file: Path, error: str, code: str
    ) -> None:
        before = token_file.read_text()
        issuer.answers = ["authorization_pending", error]
        assert refusal(client).code == code
        assert token_file.read_text() == before

    def test_nobody_who_comes_in_time(self, client: OAuthClient) -> None:
        with refused("mail_not_authorized"):
            authorize(client, Person(), timeout_s=0.0)

    def test_a_sign_in_that_would_last_for_an_hour_is_refused(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        issuer.answers = [(200, b'{"access_token": "a", "expires_in": 3600}')]
        assert "offline_access" in refusal(client).message

    def test_a_file_that_cannot_be_made_is_told_before_anybody_signs_in(
        self, client: OAuthClient, issuer: OAuthIssuer, tmp_path: Path
    ) -> None:
        error = refusal(replace(client, token_file=tmp_path / "missing" / "token.json"))
        assert "cannot be written" in error.message
        assert issuer.requests == []


class TestBrowser:
    @pytest.fixture
    def browser_client(self, client: OAuthClient) -> OAuthClient:
        return replace(client, flow="authorization_code")

    def test_the_browser_brings_a_code_that_is_redeemed(self, browser_client: OAuthClient, issuer: OAuthIssuer) -> None:
        person = Person()
        with ThreadPoolExecutor(1) as pool:
            signing_in = pool.submit(authorize, browser_client, person, timeout_s=60)
            url = person.told.result(60)
            assert "Signed in" in get(issuer.redirect_of(url))
            assert signing_in.result().refresh_token == "refresh-1"
        assert "code_challenge_method=S256" in url
        assert issuer.requests[0]["redirect_uri"].startswith("http://127.0.0.1:")

    def test_a_page_that_knows_no_state_is_no_answer(self, browser_client: OAuthClient, issuer: OAuthIssuer) -> None:
        person = Person()
        with ThreadPoolExecutor(1) as pool:
            signing_in = pool.submit(authorize, browser_client, person, timeout_s=60)
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
        self, browser_client: OAuthClient, issuer: OAuthIssuer, error: str, shown: str, code: str
    ) -> None:
        person = Person()
        with ThreadPoolExecutor(1) as pool:
            signing_in = pool.submit(authorize, browser_client, person, timeout_s=60)
            answer = issuer.redirect_of(person.told.result(60), code=None, error=error)
            assert f"refused: {shown}" in get(answer)
            with refused(code):
                signing_in.result()

    def test_nobody_who_comes_in_time_and_a_port_that_is_taken(
        self, browser_client: OAuthClient, issuer: OAuthIssuer
    ) -> None:
        with refused("mail_not_authorized"):
            authorize(browser_client, Person(), timeout_s=0.01)
        with refused("mail_port"):
            authorize(browser_client, Person(), timeout_s=1.0, port=issuer.port)

    def test_a_connection_that_says_nothing_holds_up_nobody(
        self, browser_client: OAuthClient, issuer: OAuthIssuer
    ) -> None:
        person = Person()
        with ThreadPoolExecutor(1) as pool:
            signing_in = pool.submit(authorize, browser_client, person, timeout_s=60)
            url = person.told.result(60)
            redirect = issuer.redirect_of(url)
            port = int(redirect.split(":")[2].partition("/")[0])
            with socket.create_connection(("127.0.0.1", port)):
                get(redirect)
                signing_in.result()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())

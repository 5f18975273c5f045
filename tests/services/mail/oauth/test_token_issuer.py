"""What an issuer of tokens may answer, and what its refusals mean."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from certificates import make_certificate, server_context
from oauth_issuer import CLIENT_SECRET, USER, OAuthIssuer
from scripted_server import ScriptedServer

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth import access_tokens
from guarantee_email_agent.services.mail.oauth.access_tokens import TokenIssuer
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient, Token

OLD = Token("old", "refresh-0", 0.0, 3600.0)


def refusal(client: OAuthClient) -> ToolError:
    with pytest.raises(ToolError) as caught:
        TokenIssuer(client).refresh(OLD)
    return caught.value


@pytest.mark.parametrize(
    ("error", "code", "retryable", "told"),
    [
        ("invalid_grant", "mail_auth", False, "Sign in anew: guarantee-email-agent authorize"),
        ("interaction_required", "mail_auth", False, "Sign in anew: guarantee-email-agent authorize"),
        ("invalid_client", "mail_auth", False, "OAUTH_CLIENT_SECRET, which may have expired"),
        ("invalid_scope", "mail_auth", False, "Check mailbox.oauth.scopes"),
        ("unsupported_grant_type", "mail_auth", False, "how the client is registered"),
        ("temporarily_unavailable", "mail_unavailable", True, "asks for patience"),
    ],
)
def test_a_refusal_tells_what_to_do(
    client: OAuthClient, issuer: OAuthIssuer, error: str, code: str, retryable: bool, told: str
) -> None:
    issuer.answers = [error]
    refused = refusal(client)
    assert (refused.code, refused.retryable) == (code, retryable)
    assert told in refused.message
    assert error in refused.message


def test_the_issuers_words_are_quoted_on_one_line_and_without_the_secret(
    client: OAuthClient, issuer: OAuthIssuer
) -> None:
    said = {"error": "invalid_client", "error_description": f"\x1b[31mwrong:\r\n{CLIENT_SECRET} {'x' * 999}"}
    issuer.answers = [(401, json.dumps(said).encode())]
    message = refusal(replace(client, secret=CLIENT_SECRET)).message
    assert CLIENT_SECRET not in message
    assert message.isprintable()
    assert len(message) < 500


class TestSecretsThatTheIssuerQuotes:
    """Of the request, in the description of an error."""

    def quote(self, issuer: OAuthIssuer, secret: str) -> None:
        said = {"error": "invalid_grant", "error_description": f"{secret} is over"}
        issuer.answers = [(400, json.dumps(said).encode())]

    def test_refresh_token(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        self.quote(issuer, "refresh-0")
        assert "invalid_grant: … is over" in refusal(client).message

    def test_code_and_its_verifier(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        self.quote(issuer, "code-1 of verifier+1")
        with pytest.raises(ToolError, match="… of … is over"):
            TokenIssuer(client).redeem("code-1", "verifier+1", "http://127.0.0.1:1")

    def test_device_code(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        token_issuer = TokenIssuer(client)
        authorization = token_issuer.begin_device()
        self.quote(issuer, authorization.device_code)
        with pytest.raises(ToolError, match="invalid_grant: … is over"):
            token_issuer.redeem_device(authorization)

    def test_what_is_no_secret_stays(self, client: OAuthClient, issuer: OAuthIssuer) -> None:
        self.quote(issuer, f"the grant of {client.client_id}")
        assert f"the grant of {client.client_id} is over" in refusal(client).message


@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        ((503, b"<html>"), "mail_unavailable", True),
        ((429, b'{"error": "slow_down"}'), "mail_unavailable", True),
        ((200, b"<html>a proxy wants a login"), "mail_unavailable", True),
        ((200, b"access_token=1&token_type=Bearer"), "mail_unavailable", True),
        ((200, b"[]"), "mail_unavailable", True),
        ((200, b'{"access_token": "a\\u0001b"}'), "mail_unavailable", True),
        ((200, b'{"access_token": {}}'), "mail_unavailable", True),
        ((200, b'{"access_token": "a", "token_type": "mac"}'), "mail_unavailable", True),
        ((200, b'{"token_type": "Bearer"}'), "mail_unavailable", True),
        ((400, b'{"error": ["invalid_grant"]}'), "mail_unavailable", True),
        ((404, b"{}"), "mail_auth", False),
        ((302, b"{}"), "mail_auth", False),
        ((200, b"x" * 2_000_000), "mail_unavailable", True),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_an_answer_without_a_token_is_no_token(
    client: OAuthClient, issuer: OAuthIssuer, answer: tuple[int, bytes], code: str, retryable: bool
) -> None:
    issuer.answers = [answer]
    refused = refusal(client)
    assert (refused.code, refused.retryable) == (code, retryable)
    assert len(issuer.requests) == 1  # a redirect is not followed: it would take the secret elsewhere


@pytest.mark.parametrize("given", ["3600", 3600, 3600.0])
def test_a_lifetime_counts_from_before_the_request(client: OAuthClient, issuer: OAuthIssuer, given: object) -> None:
    issuer.lifetime_s = given
    moments = iter([100.0, 160.0])
    token = TokenIssuer(client, lambda: next(moments)).redeem_device(TokenIssuer(client).begin_device())
    assert (token.obtained_at, token.expires_at) == (100.0, 3700.0)


@pytest.mark.parametrize("given", [None, "soon", -1, 0, True, [], 1e999, 10**400])
def test_a_lifetime_that_makes_no_sense_counts_as_half_an_hour(
    client: OAuthClient, issuer: OAuthIssuer, given: object
) -> None:
    issuer.lifetime_s = given
    issuer_now = TokenIssuer(client, lambda: 0.0)
    expected = 1.0 if given is True else 1800.0
    assert issuer_now.redeem_device(issuer_now.begin_device()).expires_at == expected


def test_an_issuer_that_is_not_there_is_out_of_reach(client: OAuthClient) -> None:
    refused = refusal(replace(client, token_url="http://127.0.0.1:1/token"))
    assert (refused.code, refused.retryable) == ("mail_unavailable", True)
    assert "the OAuth issuer 127.0.0.1 cannot be reached" in refused.message


def test_no_secret_goes_out_unencrypted(client: OAuthClient) -> None:
    refused = refusal(replace(client, token_url="http://id.example.com/token"))
    assert refused.code == "mail_tls"


def test_an_issuer_that_says_nothing_is_given_up(client: OAuthClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_tokens, "_READ_S", 0.1)
    with ScriptedServer(b"", lambda _: b"") as silent:
        refused = refusal(replace(client, token_url=f"http://127.0.0.1:{silent.port}/"))
    assert (refused.code, refused.retryable) == ("mail_unavailable", True)
    assert "does not answer in time" in refused.message


def test_the_certificate_of_an_issuer_is_verified(
    client: OAuthClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificate(tmp_path, "localhost")
    body = b'{"access_token": "a", "expires_in": 60}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    answers = iter([answer])
    with ScriptedServer(
        b"", lambda line: next(answers) if line == b"\r\n" else b"", server_context(tmp_path)
    ) as server:
        secure = replace(client, token_url=f"https://localhost:{server.port}/")
        refused = refusal(secure)
        assert refused.code == "mail_tls"
        assert "SSL_CERT_FILE" in refused.message
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert TokenIssuer(secure).refresh(OLD).access_token == "a"


def test_a_proxy_is_used_for_what_is_not_on_this_machine(
    client: OAuthClient, monkeypatch: pytest.MonkeyPatch, issuer: OAuthIssuer
) -> None:
    asked: list[bytes] = []
    with ScriptedServer(b"", lambda line: asked.append(line)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert refusal(replace(client, token_url="https://id.example.com/token")).retryable
        assert asked == [b"CONNECT id.example.com:443 HTTP/1.1\r\n"]
        assert refusal(client).code == "mail_auth"  # of the issuer itself, on loopback
    assert len(asked) == 1


@pytest.fixture(scope="module")
def key_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("key")
    for command in (("genrsa", "-out", "key.pem", "2048"), ("rsa", "-in", "key.pem", "-pubout", "-out", "public.pem")):
        subprocess.run(["openssl", *command], check=True, capture_output=True, cwd=folder)
    return (folder / "key.pem").read_text(), (folder / "public.pem").read_text()


@pytest.fixture
def service_account(client: OAuthClient, tmp_path: Path, key_pair: tuple[str, str]) -> OAuthClient:
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"client_email": "agent@project.example", "private_key": key_pair[0]}))
    file.chmod(0o600)
    return replace(client, flow="service_account", key_file=file)


def test_a_service_account_signs_that_it_acts_for_the_user(
    service_account: OAuthClient, issuer: OAuthIssuer, key_pair: tuple[str, str]
) -> None:
    token = TokenIssuer(service_account).issue()
    assert token.access_token in issuer.access_tokens
    form = issuer.requests[-1]
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    claims = jwt.decode(form["assertion"], key_pair[1], ["RS256"], audience=issuer.token_url)
    assert (claims["iss"], claims["sub"]) == ("agent@project.example", USER)
    assert claims["exp"] - claims["iat"] <= 3600


@pytest.mark.parametrize(
    "content", ["{}", "[]", "no json", '{"client_email": "a@b.example", "private_key": "PRIVATE"}']
)
def test_a_key_that_cannot_be_used_is_told_and_never_quoted(service_account: OAuthClient, content: str) -> None:
    service_account.key_file.write_text(content)
    with pytest.raises(ToolError) as caught:
        TokenIssuer(service_account).issue()
    assert caught.value.code == "mail_auth"
    assert str(service_account.key_file) in caught.value.message
    assert "PRIVATE" not in caught.value.message


def test_a_key_that_others_may_read_is_refused(service_account: OAuthClient) -> None:
    service_account.key_file.chmod(0o640)
    with pytest.raises(ToolError, match="others may use it"):
        TokenIssuer(service_account).issue()

"""Logging in with access tokens: to Dovecot and Postfix, and to servers that answer as no real one can be made to."""

import base64
import dataclasses
import json
from collections.abc import Callable, Iterator

import pytest
from mail_servers import MailServers
from mail_stores import log_in, login_refusal
from oauth_issuer import OAuthIssuer
from scripted_server import ScriptedServer
from tcp_proxy import TcpProxy

from guarantee_email_agent.services.mail import mail_server
from guarantee_email_agent.services.mail.imap_session import ImapSession
from guarantee_email_agent.services.mail.mail_server import MailServer

REASON = base64.b64encode(json.dumps({"status": "401", "schemes": "bearer"}).encode())


class Tokens:
    """As AccessTokens: the first one, and then the others for those that are refused."""

    def __init__(self, first: str, *others: str) -> None:
        self._first, self._others = first, list(others)
        self.refused: list[str] = []

    def get(self) -> str:
        return self._first

    def get_other(self, refused: str) -> str | None:
        self.refused.append(refused)
        return self._others.pop(0) if self._others else None


@pytest.fixture
def issuer(mail_servers: MailServers) -> Iterator[OAuthIssuer]:
    """Whom Dovecot asks about a token."""
    with OAuthIssuer(mail_servers.issuer_port) as issuer:
        yield issuer


@pytest.fixture(params=["IMAP", "SMTP"])
def server(request: pytest.FixtureRequest, mail_servers: MailServers) -> MailServer:
    """Dovecot, and Postfix that asks it."""
    servers = mail_servers
    port = servers.imaps_port if request.param == "IMAP" else servers.smtps_port
    return MailServer(request.param, servers.host, port, "tls", servers.user, None, servers.ca_file)


@pytest.mark.parametrize("length", [40, 2500], ids=["short", "as long as Microsoft's"])
def test_a_token_is_taken(server: MailServer, issuer: OAuthIssuer, length: int) -> None:
    issuer.token_length = length
    log_in(dataclasses.replace(server, tokens=Tokens(issuer.issue()["access_token"])))
    assert issuer.counts["introspected"] == 1


def test_a_refused_token_is_replaced_once(server: MailServer, issuer: OAuthIssuer) -> None:
    tokens = Tokens("over", issuer.issue()["access_token"])
    log_in(dataclasses.replace(server, tokens=tokens))
    assert tokens.refused == ["over"]


def test_a_token_that_is_refused_for_good_is_told_without_the_token(server: MailServer, issuer: OAuthIssuer) -> None:
    tokens = Tokens("first-token", "second-token")
    error = login_refusal(dataclasses.replace(server, tokens=tokens))
    assert (error.code, error.retryable) == ("mail_auth", False)
    assert "refused the access token of support@example.com" in error.message
    assert "(status 401)" in error.message
    assert "-token" not in error.message
    assert tokens.refused == ["first-token"]


def test_a_session_goes_on_with_a_new_token_where_the_old_one_is_over(
    mail_servers: MailServers, issuer: OAuthIssuer
) -> None:
    old, new = issuer.issue()["access_token"], issuer.issue()["access_token"]
    tokens = Tokens(old, new)
    servers = mail_servers
    with TcpProxy(servers.imap_port) as proxy:
        server = MailServer("IMAP", servers.host, proxy.port, "none", servers.user, None, None, tokens)
        session = ImapSession(server, lambda _: None)
        session.run(lambda client: client.noop())
        issuer.access_tokens.discard(old)
        proxy.cut()  # as servers do to clients that outlive their tokens
        session.run(lambda client: client.noop())
        session.close()
    assert tokens.refused == [old]


@pytest.fixture
def scripted() -> Iterator[Callable[..., MailServer]]:
    """An IMAP server that answers the login, and what comes after it, as it is told."""
    servers: list[ScriptedServer] = []

    def start(answers: list[bytes], mechanisms: bytes = b"AUTH=XOAUTH2") -> MailServer:
        pending = iter(answers)
        tags: list[bytes] = []

        def answer(line: bytes) -> bytes | None:
            words = line.split()
            if len(words) > 1 and words[1] == b"CAPABILITY":
                return b"* CAPABILITY IMAP4rev1 " + mechanisms + b"\r\n" + words[0] + b" OK done\r\n"
            if len(words) > 1 and words[1] in (b"AUTHENTICATE", b"NOOP"):
                tags.append(words[0])
            said = next(pending, None)
            return None if said is None else said.replace(b"TAG", tags[-1]) + b"\r\n"

        server = ScriptedServer(b"* OK hi\r\n", answer)
        servers.append(server)
        server.__enter__()
        return MailServer("IMAP", "localhost", server.port, "none", "user", None, None, Tokens("the-token"))

    yield start
    for server in servers:
        server.__exit__()


@pytest.mark.parametrize("mechanisms", [b"AUTH=PLAIN AUTH=LOGIN", b""])
def test_a_server_without_such_a_login_is_told(scripted: Callable[..., MailServer], mechanisms: bytes) -> None:
    server = scripted([], mechanisms)
    error = login_refusal(server)
    assert error.code == "mail_auth"
    assert "access tokens need XOAUTH2" in error.message
    assert "IMAP_PASSWORD" in error.message
    assert server.tokens.refused == []  # another token would not help


@pytest.mark.parametrize(
    ("answers", "code", "told"),
    [
        ([b"+ ", b"+ " + REASON, b"TAG NO no"], "mail_auth", "no (status 401)"),
        ([b"+ ", b"TAG NO [UNAVAILABLE] later"], "mail_unavailable", "later"),
        ([b"+ ", b"TAG NO the-token is not good"], "mail_auth", "… is not good"),
        ([b"+ ", *[b"+ " + REASON] * 9], "mail_unavailable", "does not come to an end"),
        ([b"+ ", b"+ " + b"a", b"TAG NO no"], "mail_unavailable", "cannot be read"),
        ([b"+ "], "mail_unavailable", "broke"),
    ],
)
def test_what_a_server_may_say_to_a_token(
    scripted: Callable[..., MailServer], answers: list[bytes], code: str, told: str
) -> None:
    error = login_refusal(scripted(answers))
    assert error.code == code
    assert told in error.message


@pytest.mark.parametrize(
    "refusal", [b"NO [EXPIRED] token", b"BAD User is authenticated but not connected.", b"NO AccessTokenExpired"]
)
def test_a_session_that_outlived_its_token_is_begun_anew(scripted: Callable[..., MailServer], refusal: bytes) -> None:
    login = [b"+ ", b"TAG OK in"]
    server = scripted([*login, b"TAG " + refusal, *login, b"TAG OK done"])
    session = ImapSession(server, lambda _: None)
    try:
        assert session.run(lambda client: client.noop())[0] == b"done"
    finally:
        session.close()


@pytest.mark.parametrize("echo", ["token", "half of it", "base64"])
def test_a_server_that_repeats_a_token_is_not_quoted(echo: str) -> None:
    token = "secret" * 300
    server = MailServer("SMTP", "mail.example.com", 465, "tls", "user", None)
    login = mail_server.TokenLogin(server, token, ["XOAUTH2"])
    said = {"token": token, "half of it": token[:900], "base64": base64.b64encode(login.first).decode()}[echo]
    assert login.describe(f"no: {said} is not good".encode()) == "no: … is not good"

import dataclasses
from pathlib import Path

import pytest
from certificates import make_certificate, server_context
from mail_servers import MailServers
from mail_stores import log_in, login_refusal
from scripted_server import ScriptedServer

from guarantee_email_agent.services.mail import imap_session, smtp
from guarantee_email_agent.services.mail.mail_server import MailServer, format_response


@pytest.fixture(params=["IMAP", "SMTP"])
def secure(request: pytest.FixtureRequest, mail_servers: MailServers) -> MailServer:
    """Either server, over TLS and with login."""
    servers = mail_servers
    port = servers.imaps_port if request.param == "IMAP" else servers.smtps_port
    return MailServer(request.param, servers.host, port, "tls", servers.user, servers.password, servers.ca_file)


@pytest.fixture(params=["IMAP", "SMTP"])
def absent(request: pytest.FixtureRequest) -> MailServer:
    """Either server, where there is none."""
    return MailServer(request.param, "localhost", 1, "none", "user", "secret")


@pytest.fixture(params=["tls", "starttls"])
def encrypted(request: pytest.FixtureRequest, secure: MailServer, mail_servers: MailServers) -> MailServer:
    """Either server, over TLS from the first byte or after STARTTLS."""
    if request.param == "tls":
        return secure
    port = mail_servers.imap_port if secure.kind == "IMAP" else mail_servers.submission_port
    return dataclasses.replace(secure, security="starttls", port=port)


def test_a_server_is_reached_over_tls(encrypted: MailServer) -> None:
    log_in(encrypted)


def test_a_certificate_of_an_unknown_authority_is_refused(encrypted: MailServer) -> None:
    error = login_refusal(dataclasses.replace(encrypted, ca_file=None))
    assert (error.code, error.retryable) == ("mail_tls", False)
    assert "the certificate of the" in error.message
    assert error.message.endswith("Have it renewed, or name its CA with mailbox.imap.ca_file")


@pytest.mark.parametrize(
    ("host", "flaw", "told"),
    [
        ("localhost", {"expired": True}, "certificate has expired"),
        ("other.example.com", {"addresses": False}, "Hostname mismatch"),
    ],
)
def test_a_certificate_expired_or_for_another_host_is_refused(
    secure: MailServer, tmp_path: Path, host: str, flaw: dict[str, bool], told: str
) -> None:
    make_certificate(tmp_path, host, **flaw)
    with ScriptedServer(b"", lambda _: None, server_context(tmp_path)) as server:
        error = login_refusal(dataclasses.replace(secure, port=server.port, ca_file=tmp_path / "ca.pem"))
    assert error.code == "mail_tls"
    assert told in error.message


def test_a_port_without_tls_is_reported(secure: MailServer, mail_servers: MailServers) -> None:
    port = mail_servers.imap_port if secure.kind == "IMAP" else mail_servers.smtp_port
    error = login_refusal(dataclasses.replace(secure, port=port))
    assert error.code == "mail_tls"
    assert error.message.endswith(f"Change the port or mailbox.{secure.kind.lower()}.security")


def test_a_wrong_password_is_reported(secure: MailServer) -> None:
    error = login_refusal(dataclasses.replace(secure, password="not it"))
    assert (error.code, error.retryable) == ("mail_auth", False)
    assert f"Check the user and {secure.kind}_PASSWORD" in error.message
    assert "not it" not in error.message


def test_a_password_may_have_any_letters(secure: MailServer) -> None:
    error = login_refusal(dataclasses.replace(secure, password="påssword"))
    assert error.code == "mail_auth"


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("mail.invalid", "there is no host of that name for the {} server mail.invalid:1."),
        ("localhost", "the {} server localhost:1 refuses connections."),
    ],
)
def test_a_host_or_port_where_nothing_is_is_reported(absent: MailServer, host: str, told: str) -> None:
    error = login_refusal(dataclasses.replace(absent, host=host))
    assert (error.code, error.retryable) == ("mail_unavailable", True)
    assert error.message.startswith(told.format(absent.kind))


@pytest.mark.parametrize(("greeting", "code"), [(b"", "mail_timeout"), (None, "mail_unavailable")])
def test_a_server_that_says_nothing_or_hangs_up_is_given_up(
    absent: MailServer, monkeypatch: pytest.MonkeyPatch, greeting: bytes | None, code: str
) -> None:
    for module, limit in ((imap_session, "CONNECT_S"), (imap_session, "STEP_S"), (smtp, "CONNECT_S")):
        monkeypatch.setattr(module, limit, 0.2)
    with ScriptedServer(greeting, lambda _: b"") as server:
        error = login_refusal(dataclasses.replace(absent, port=server.port))
    assert (error.code, error.retryable) == (code, True)


def test_a_server_without_starttls_is_reported(absent: MailServer) -> None:
    greetings = {"IMAP": b"* OK [CAPABILITY IMAP4rev1] hello\r\n", "SMTP": b"220 hello\r\n"}

    def answer(line: bytes) -> bytes:
        if absent.kind == "SMTP":
            return b"250 hello\r\n"
        return b"* CAPABILITY IMAP4rev1\r\n" + line.split()[0] + b" OK done\r\n"

    with ScriptedServer(greetings[absent.kind], answer) as server:
        error = login_refusal(dataclasses.replace(absent, port=server.port, security="starttls"))
    assert error.code == "mail_tls"
    assert "offers no STARTTLS" in error.message


def test_what_a_server_said_is_cut_to_one_line() -> None:
    assert format_response(b"no\r\n  way\xff") == "no way\ufffd"
    assert format_response(b"4.2.0 Not now.\r\n") == "4.2.0 Not now"
    assert len(format_response("x" * 1000)) == 201

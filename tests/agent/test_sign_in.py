"""The whole agent on a mailbox that wants access tokens: from the first sign-in to one that was taken back, and
commands that are ended while the issuer takes the old refresh token back.
"""

import json
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import environment
from company import ADDRESS, Company
from mail_servers import MailServers
from oauth_issuer import CLIENT_ID, USER, OAuthIssuer
from scripted_server import ScriptedServer
from tcp_proxy import TcpProxy
from waiting import PATIENCE_S, wait_until

MAIL = f"""\
From: customer@example.org
To: {ADDRESS}
Subject: Dryer
Date: Sun, 18 Jan 2026 10:00:00 +0000
Message-ID: <%s@example.org>

My dryer SN12345 is broken.
""".replace("\n", "\r\n")


@pytest.fixture
def issuer(mail_servers: MailServers) -> Iterator[OAuthIssuer]:
    with OAuthIssuer(mail_servers.issuer_port) as issuer:
        yield issuer


@pytest.fixture
def proxy(mail_servers: MailServers) -> Iterator[TcpProxy]:
    with TcpProxy(mail_servers.imap_port) as proxy:
        yield proxy


@pytest.fixture
def desk(company: Company, mail_servers: MailServers, issuer: OAuthIssuer, proxy: TcpProxy) -> Company:
    company.configure(
        mailbox={
            "from_address": ADDRESS,
            "imap": {"host": "localhost", "port": proxy.port, "security": "none", "ca_file": str(mail_servers.ca_file)},
            "smtp": {"port": mail_servers.smtps_port},
            "oauth": issuer.settings(),
            "copy_wait_s": 0,
        },
        agent={"poll_interval_s": 0.2},
        logging={"file": "agent.log"},
    )
    return company


def secrets_of(issuer: OAuthIssuer, folder: Path) -> list[str]:
    kept = json.loads((folder / "mail-token.json").read_text())
    return [kept["access_token"], kept["refresh_token"], *issuer.access_tokens, *issuer.refresh_tokens]


@pytest.mark.slow
def test_a_sign_in_that_was_taken_back_costs_no_mail(
    desk: Company, mail_servers: MailServers, issuer: OAuthIssuer, proxy: TcpProxy
) -> None:
    issuer.lifetime_s = 2  # so that the next connection needs another one
    signed_in = desk.run("authorize")
    assert signed_in.returncode == 0, signed_in.stderr
    assert "enter the code:\n    BDWP-HQPK\n" in signed_in.stdout
    token_file = desk.folder / "mail-token.json"
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600

    agent = desk.start()
    mail_servers.deliver((MAIL % "first").encode())
    wait_until(mail_servers.sent_to_customers, problem=(desk.folder / "agent.log").read_text)

    issuer.refresh_tokens.clear()
    issuer.revoke_access()
    proxy.cut()
    mail_servers.deliver((MAIL % "second").encode())
    desk.wait_for_log("invalid_grant")
    secrets = secrets_of(issuer, desk.folder)
    issuer.lifetime_s = 3600
    assert desk.run("authorize").returncode == 0
    wait_until(lambda: len(mail_servers.sent_to_customers()) == 2, problem=(desk.folder / "agent.log").read_text)
    desk.stop(agent)

    log = (desk.folder / "agent.log").read_text()
    (told,) = [line for line in log.splitlines() if "invalid_grant" in line]
    assert " ERROR " in told
    assert told.endswith("Sign in anew: guarantee-email-agent authorize; mails stay in the inbox until then")
    everything = log + signed_in.stdout + signed_in.stderr
    assert not [
        secret for secret in (*secrets, *secrets_of(issuer, desk.folder), "device-secret") if secret in everything
    ]


_CAPABILITIES = b"CAPABILITY IMAP4rev1 AUTH=XOAUTH2 SASL-IR"


def answer(line: bytes) -> bytes:
    """Of an IMAP server that is never asked for more than how to sign in."""
    tag, command = line.split()[:2]
    about = b"* " + _CAPABILITIES + b"\r\n" if command.upper() == b"CAPABILITY" else b""
    return about + tag + b" OK done\r\n"


@pytest.fixture(autouse=True)
def _nobody_ignores_sighup() -> Iterator[None]:
    """As `nohup` does, and `run` at its end: a program that is started would go on with that."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.fixture
def holding_issuer() -> Iterator[OAuthIssuer]:
    with OAuthIssuer() as holding_issuer:
        holding_issuer.rotates, holding_issuer.hold = True, threading.Event()
        yield holding_issuer
        holding_issuer.hold.set()


@pytest.fixture
def folder(tmp_path: Path, holding_issuer: OAuthIssuer) -> Iterator[Path]:
    """With a configuration, and a token that is over."""
    with ScriptedServer(b"* OK [" + _CAPABILITIES + b"] ready\r\n", answer) as imap:
        server = {"host": "127.0.0.1", "port": imap.port, "security": "none"}
        oauth = holding_issuer.settings(flow="device", token_file="token.json")
        mailbox = {"from_address": USER, "imap": server, "smtp": {**server, "port": 1}, "oauth": oauth}
        settings = {"mailbox": mailbox, "llm": {"provider": "offline"}, "agent": {"require_eval": False}}
        (tmp_path / "config.yaml").write_text(json.dumps(settings))
        issued = holding_issuer.issue()
        token = {name: issued[name] for name in ("access_token", "refresh_token")}
        made_for = {"client_id": CLIENT_ID, "token_url": holding_issuer.token_url, "user": USER}
        (tmp_path / "token.json").write_text(json.dumps({**made_for, **token, "obtained_at": 1, "expires_at": 2}))
        (tmp_path / "token.json").chmod(0o600)
        yield tmp_path


def start(folder: Path, command: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "guarantee_email_agent", command]
    return subprocess.Popen(
        program, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def kept(folder: Path) -> str:
    return str(json.loads((folder / "token.json").read_text())["refresh_token"])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_check_ends_with_the_new_token(folder: Path, holding_issuer: OAuthIssuer, number: signal.Signals) -> None:
    pytest.importorskip("oauthlib", reason="oauthlib is not installed: uv sync --group ci")
    with start(folder, "check") as check:
        assert holding_issuer.arrived.wait(PATIENCE_S)
        check.send_signal(number)
        holding_issuer.hold.set()
        output, _ = check.communicate(timeout=PATIENCE_S)
    assert check.returncode == 130, output
    assert kept(folder) == "refresh-2"


def test_mail_server_of_an_agent_that_is_stopped_twice_keeps_the_new_token(
    folder: Path, holding_issuer: OAuthIssuer
) -> None:
    pytest.importorskip("oauthlib", reason="oauthlib is not installed: uv sync --group ci")
    with start(folder, "run") as agent:
        assert holding_issuer.arrived.wait(PATIENCE_S)
        agent.send_signal(signal.SIGTERM)
        assert any("Stopping" in line for line in agent.stdout)
        agent.send_signal(signal.SIGTERM)
        holding_issuer.hold.set()
        agent.communicate(timeout=PATIENCE_S)
    wait_until(lambda: kept(folder) == "refresh-2")

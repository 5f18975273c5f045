"""The whole agent on a mailbox that wants access tokens, from the first sign-in to one that was taken back."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from company import ADDRESS, Company
from mail_servers import MailServers
from oauth_issuer import OAuthIssuer
from tcp_proxy import TcpProxy
from waiting import wait_until

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

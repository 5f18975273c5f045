"""Commands that are ended while the issuer takes the old refresh token back: the new one is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import environment
from oauth_issuer import CLIENT_ID, USER, OAuthIssuer
from scripted_server import ScriptedServer
from waiting import PATIENCE_S, wait_until

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
def issuer() -> Iterator[OAuthIssuer]:
    with OAuthIssuer() as issuer:
        issuer.rotates, issuer.hold = True, threading.Event()
        yield issuer
        issuer.hold.set()


@pytest.fixture
def folder(tmp_path: Path, issuer: OAuthIssuer) -> Iterator[Path]:
    """With a configuration, and a token that is over."""
    with ScriptedServer(b"* OK [" + _CAPABILITIES + b"] ready\r\n", answer) as imap:
        server = {"host": "127.0.0.1", "port": imap.port, "security": "none"}
        oauth = issuer.settings(flow="device", token_file="token.json")
        mailbox = {"from_address": USER, "imap": server, "smtp": {**server, "port": 1}, "oauth": oauth}
        settings = {"mailbox": mailbox, "llm": {"provider": "offline"}, "agent": {"require_eval": False}}
        (tmp_path / "config.yaml").write_text(json.dumps(settings))
        issued = issuer.issue()
        token = {name: issued[name] for name in ("access_token", "refresh_token")}
        made_for = {"client_id": CLIENT_ID, "token_url": issuer.token_url, "user": USER}
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_check_ends_with_the_new_token(folder: Path, issuer: OAuthIssuer, number: signal.Signals) -> None:
    pytest.importorskip("oauthlib", reason="oauthlib is not installed: uv sync --group ci")
    with start(folder, "check") as check:
        assert issuer.arrived.wait(PATIENCE_S)
        check.send_signal(number)
        issuer.hold.set()
        output, _ = check.communicate(timeout=PATIENCE_S)
    assert check.returncode == 130, output
    assert kept(folder) == "refresh-2"


def test_mail_server_of_an_agent_that_is_stopped_twice_keeps_the_new_token(folder: Path, issuer: OAuthIssuer) -> None:
    pytest.importorskip("oauthlib", reason="oauthlib is not installed: uv sync --group ci")
    with start(folder, "run") as agent:
        assert issuer.arrived.wait(PATIENCE_S)
        agent.send_signal(signal.SIGTERM)
        assert any("Stopping" in line for line in agent.stdout)
        agent.send_signal(signal.SIGTERM)
        issuer.hold.set()
        agent.communicate(timeout=PATIENCE_S)
    wait_until(lambda: kept(folder) == "refresh-2")

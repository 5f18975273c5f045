"""Where services are, without what is nobody's business."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from guarantee_email_agent.agent.outages import LEDGER, MAILS, MODEL, SENDING, TICKETING, WARRANTY_SYSTEM
from guarantee_email_agent.agent.service_addresses import service_addresses
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config


def config(folder: Path, text: str, **environ: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(None, environ, folder)


def test_files_and_mail_servers(tmp_path: Path) -> None:
    found = service_addresses(
        config(
            tmp_path, "mailbox: {imap: {host: imap.example.com, user: eve}, smtp: {host: smtp.example.com, port: 587}}"
        )
    )
    assert found == {
        MAILS: "imap.example.com:993",
        SENDING: "smtp.example.com:587",
        WARRANTY_SYSTEM: str(tmp_path / "warranties.csv"),
        TICKETING: str(tmp_path / "tickets.db"),
        LEDGER: str(tmp_path / "ledger.db"),
    }


def test_a_maildir_is_for_all_mail(tmp_path: Path) -> None:
    found = service_addresses(config(tmp_path, ""))
    assert found[MAILS] == str(tmp_path / "mailbox")
    assert SENDING not in found


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://eve:hush@api.example.com:8443/mcp?token=hush", "api.example.com:8443/mcp"),
        ("https://eve:hush@[::1]/mcp#hush", "[::1]/mcp"),
        ("postgresql://eve:hush@db.example.com/agent", "db.example.com/agent"),
        ("http://eve:hush@example.com:99999999/", "example.com"),
    ],
)
def test_a_url_is_shown_without_user_password_and_query(tmp_path: Path, url: str, shown: str) -> None:
    given = config(tmp_path, "mcp: {warranty_api: {url: https://api.example.com}}", LEDGER_URL=url)
    server = replace(given.mcp.warranty_api, url=url)
    found = service_addresses(replace(given, mcp=replace(given.mcp, warranty_api=server)))
    assert (found[WARRANTY_SYSTEM], found[LEDGER]) == (shown, shown)


def test_a_program_is_shown_without_its_arguments(tmp_path: Path) -> None:
    text = "mcp: {ticketing_system: {command: tickets-server, args: [--token, hush]}}"
    assert service_addresses(config(tmp_path, text))[TICKETING] == "tickets-server"


def test_a_model_has_the_address_of_the_environment(tmp_path: Path) -> None:
    text = "llm: {provider: anthropic}"
    assert service_addresses(config(tmp_path, text))[MODEL] == "api.anthropic.com"
    own = config(tmp_path, text, ANTHROPIC_BASE_URL="http://key:hush@127.0.0.1:8080")
    assert service_addresses(own)[MODEL] == "127.0.0.1:8080"

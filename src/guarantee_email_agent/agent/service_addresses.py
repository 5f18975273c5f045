"""Where the services of a configuration are, as it may stand in a log: without users, passwords and query strings."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from guarantee_email_agent.agent.outages import LEDGER, MAILS, MODEL, SENDING, TICKETING, WARRANTY_SYSTEM
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config

_PUBLIC_MODEL_API: Final = "api.anthropic.com"


def service_addresses(config: Config) -> dict[str, str]:
    """By the names that `agent.outages` has for services and their parts."""
    mailbox, imap, smtp = config.mailbox, config.mailbox.imap, config.mailbox.smtp
    inbox = str(mailbox.maildir) if imap.host is None else f"{imap.host}:{imap.port}"
    addresses = {
        MAILS: _address(config.mcp.gmail, inbox),
        WARRANTY_SYSTEM: _address(config.mcp.warranty_api, config.warranties.file),
        TICKETING: _address(config.mcp.ticketing_system, config.tickets.database),
        LEDGER: _location(config.secrets.ledger_url or config.agent.ledger),
    }
    if config.mcp.gmail.built_in and imap.host is not None:
        addresses[SENDING] = f"{smtp.host or imap.host}:{smtp.port}"
    if config.llm.provider != "offline":
        addresses[MODEL] = _location(config.secrets.anthropic_base_url or "") or _PUBLIC_MODEL_API
    return addresses | {name: _address(each.server, each.table) for name, each in config.look_ups.items()}


def _address(server: McpServer, built_in: Path | str | None) -> str:
    """The program alone where it is one: its arguments may hold what is nobody's business."""
    if built_in is not None and server.built_in:
        return str(built_in)
    return _location(server.url) if server.url else str(server.command)


def _location(place: str) -> str:
    """A path as it is; of a URL host, port and path."""
    if "://" not in place:
        return place
    host = ""
    with suppress(ValueError):  # no URL that anybody could reach
        parts = urlsplit(place)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{parts.port}{parts.path}" if parts.port else f"{host}{parts.path}"
    return host

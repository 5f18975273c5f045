"""The three services of one configuration, ready to be called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.integrations.mail_client import MailClient
from guarantee_email_agent.integrations.mcp_session import MAX_ANSWER_BYTES, McpSession
from guarantee_email_agent.integrations.server_launch import mail_launch, ticketing_launch, warranty_launch
from guarantee_email_agent.integrations.ticketing_client import TicketingClient
from guarantee_email_agent.integrations.warranty_client import WarrantyClient
from guarantee_email_agent.utils.clock import Clock


@dataclass(frozen=True, slots=True)
class Services:
    """Mailbox, warranty system and ticketing, each with a server and a circuit of its own."""

    mail: MailClient
    warranty: WarrantyClient
    ticketing: TicketingClient

    async def close(self) -> None:
        """Stop all servers; returns once they are gone."""
        await asyncio.gather(self.mail.close(), self.warranty.close(), self.ticketing.close())


def create_services(config: Config, clock: Clock, environ: Mapping[str, str], key: bytes = b"") -> Services:
    """Nothing is started yet: the first call does that, or `test_connection`.

    environ: where PATH, HOME and the like come from. key: see `mail_launch`.

    Raises ConfigurationError for what is missing.
    """
    return Services(
        create_mail_client(config, clock, environ, key),
        create_warranty_client(config, clock, environ),
        create_ticketing_client(config, clock, environ),
    )


def create_mail_client(config: Config, clock: Clock, environ: Mapping[str, str], key: bytes = b"") -> MailClient:
    """As `create_services`."""
    # A mail travels as base64, four bytes for three, in a message with some more about it.
    answer_bytes = max(MAX_ANSWER_BYTES, config.agent.max_mail_bytes * 4 // 3 + 1_000_000)
    session = McpSession("mail", mail_launch(config, environ, key), clock, max_answer_bytes=answer_bytes)
    return MailClient(session, clock, config.mcp.gmail.timeout_s)


def create_warranty_client(config: Config, clock: Clock, environ: Mapping[str, str]) -> WarrantyClient:
    """As `create_services`."""
    session = McpSession("warranty_api", warranty_launch(config, environ), clock)
    return WarrantyClient(session, clock, config.mcp.warranty_api.timeout_s)


def create_ticketing_client(config: Config, clock: Clock, environ: Mapping[str, str]) -> TicketingClient:
    """As `create_services`."""
    session = McpSession("ticketing", ticketing_launch(config, environ), clock)
    return TicketingClient(session, clock, config.mcp.ticketing_system.timeout_s)

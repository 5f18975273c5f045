"""The services of one configuration, ready to be called, each with a circuit of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.config.mcp_server import LOOK_UP_TOOL, TICKETING_TOOLS, WARRANTY_TOOLS, OwnTool
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services.blocking import BlockingService, interrupted
from guarantee_email_agent.services.clients import LookUpClient, MailClient, TicketingClient
from guarantee_email_agent.services.look_ups import configured_look_ups, tool_of
from guarantee_email_agent.services.mail.mail_store import LocalMailbox
from guarantee_email_agent.services.mail.open_store import check_mailbox, open_configured_store
from guarantee_email_agent.services.table.local_look_ups import table_look_up, warranty_look_up
from guarantee_email_agent.services.ticket_store import LocalTickets
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError, IntegrationError

if TYPE_CHECKING:
    from guarantee_email_agent.config.mcp_server import McpServer
    from guarantee_email_agent.services.mcp.mcp_session import McpSession

MAX_MAPPED_ANSWER_BYTES: Final = 8 * 1024 * 1024
_CONNECT_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Services:
    mail: MailClient
    ticketing: TicketingClient
    look_ups: Mapping[str, LookUpClient]
    """By name, the warranty system first."""

    async def close(self) -> None:
        """Returns once servers that were started are gone, and calls in progress have ended, unless it is cancelled."""
        task = asyncio.current_task()
        interrupted.set(task is not None and task.cancelling() > 0)
        look_ups = (client.close() for client in self.look_ups.values())
        await asyncio.gather(self.mail.close(), self.ticketing.close(), *look_ups)


async def connection_problem(test: Awaitable[object]) -> AgentError | None:
    """Why a service cannot be used; None if it can. test: its `test_connection`."""
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            await test
    except TimeoutError:
        return IntegrationError(
            f"A service did not answer within {_CONNECT_TIMEOUT_S:g} s. Check its server", "mcp_timeout"
        )
    except AgentError as error:
        return error
    return None


def create_services(config: Config, clock: Clock, key: bytes = b"") -> Services:
    """Nothing is opened yet: the first call does that, or `test_connection`.

    key: what makes the names of mails unguessable, the same for all agents of one inbox. Raises ConfigurationError for
    what is missing.
    """
    return Services(
        create_mail_client(config, clock, key),
        create_ticketing_client(config, clock),
        {name: create_look_up_client(name, config, clock) for name in (WARRANTY.name, *config.look_ups)},
    )


def create_mail_client(config: Config, clock: Clock, key: bytes = b"") -> MailClient:
    """As `create_services`."""
    server, read_only = config.mailbox.server, config.agent.mode == "observe"
    timeout_s = config.agent.mail_timeout_s
    if server.built_in:
        check_mailbox(config)
        setting = "mailbox.maildir" if config.mailbox.imap.host is None else "mailbox"
        service = BlockingService("mail", setting, lambda: open_configured_store(config, key), timeout_s)
        return LocalMailbox(service, clock, config.mailbox.copy_wait_s, read_only=read_only)
    from guarantee_email_agent.services.mcp.mcp_services import McpMailbox

    session = _session("mail", "mailbox.server", server, {}, config)
    return McpMailbox(session, clock, timeout_s, read_only=read_only)


def create_look_up_client(name: str, config: Config, clock: Clock) -> LookUpClient:
    """As `create_services`. name: of the look-up."""
    return _warranty_client(config, clock) if name == WARRANTY.name else _configured_look_up(name, config, clock)


def _warranty_client(config: Config, clock: Clock) -> LookUpClient:
    server = config.mcp.warranty_api
    if server.built_in:
        return warranty_look_up(config.warranties.file, config.agent.call_timeout_s, clock)
    from guarantee_email_agent.services.mcp.mcp_services import McpLookUp

    session = _session(WARRANTY.name, "mcp.warranty_api", server, WARRANTY_TOOLS, config)
    return McpLookUp(session, config.agent.call_timeout_s, "check_warranty", "serial_number", clock, WARRANTY)


def _configured_look_up(name: str, config: Config, clock: Clock) -> LookUpClient:
    settings = config.look_ups[name]
    (look_up,) = (look_up for look_up in configured_look_ups(config) if look_up.name == name)
    server = settings.server
    if settings.table is not None:
        key = settings.key or settings.number
        return table_look_up(settings.table, key, config.agent.call_timeout_s, clock, look_up)
    from guarantee_email_agent.services.mcp.mcp_services import McpLookUp

    own_tools = {LOOK_UP_TOOL: settings.own_tool()}
    session = _session(name, f"look_ups.{name}.server", server, own_tools, config)
    tool, argument = (LOOK_UP_TOOL, settings.number) if server.tools else tool_of(settings)
    return McpLookUp(session, config.agent.call_timeout_s, tool, argument, clock, look_up)


def create_ticketing_client(config: Config, clock: Clock) -> TicketingClient:
    """As `create_services`."""
    server = config.mcp.ticketing_system
    if server.built_in:
        return LocalTickets(config.tickets.database, config.agent.call_timeout_s, clock)
    from guarantee_email_agent.services.mcp.mapped_session import MappedSession
    from guarantee_email_agent.services.mcp.mcp_services import MappedTickets, McpTickets

    session = _session("ticketing", "mcp.ticketing_system", server, TICKETING_TOOLS, config)
    if isinstance(session, MappedSession):
        return MappedTickets(session, config.agent.call_timeout_s, clock, server.tools)
    return McpTickets(session, config.agent.call_timeout_s, clock)


def _session(
    name: str,
    setting: str,
    server: McpServer,
    own_tools: Mapping[str, OwnTool],
    config: Config,
) -> McpSession:
    from guarantee_email_agent.services.mcp.mapped_session import MappedSession
    from guarantee_email_agent.services.mcp.mcp_session import McpSession
    from guarantee_email_agent.services.mcp.server_launch import configured_launch

    launch = configured_launch(setting, server, config.secrets.mcp_environment, os.environ)
    if not server.tools:
        return McpSession(name, launch)
    most = MAX_MAPPED_ANSWER_BYTES
    return MappedSession(name, launch, server.tools, own_tools, config.source, max_answer_bytes=most)

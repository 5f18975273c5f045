"""The services of one configuration, ready to be called, each with a circuit of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from guarantee_email_agent.config.own_tools import LOOK_UP_TOOL, MAIL_TOOLS, TICKETING_TOOLS, WARRANTY_TOOLS, OwnTool
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.services.blocking import BlockingService, interrupted
from guarantee_email_agent.services.call_errors import readable
from guarantee_email_agent.services.local_tickets import LocalTickets
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.services.look_ups import configured_look_ups, tool_of
from guarantee_email_agent.services.mail.local_mailbox import LocalMailbox
from guarantee_email_agent.services.mail.open_store import check_mailbox, open_configured_store
from guarantee_email_agent.services.mail_client import MailClient
from guarantee_email_agent.services.ports import parse_ticket_id
from guarantee_email_agent.services.table.local_look_ups import table_look_up, warranty_look_up
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock

if TYPE_CHECKING:
    from guarantee_email_agent.config.mcp_server import McpServer
    from guarantee_email_agent.services.mcp.mcp_session import McpSession

MAX_MAPPED_ANSWER_BYTES: Final = 8 * 1024 * 1024


class LookUpSource(Protocol):
    """What answers a look-up. name: as error codes begin. tool: what errors call it."""

    name: str
    tool: str

    async def look_up(self, number: str) -> Mapping[str, Any]: ...

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError; IntegrationError where what is reached does not work."""

    async def test_answer(self, ask: Callable[[str], Awaitable[Mapping[str, Any]]]) -> str:
        """What a sample call told, or why there was none: it might have had an effect. Empty where nothing is to tell.

        ask: looks a number up. Raises IntegrationError for an answer that cannot be read.
        """

    async def close(self) -> None: ...


class TicketSource(Protocol):
    """What keeps tickets. name, tool, test_connection and close: as of a LookUpSource."""

    name: str
    tool: str

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]: ...

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool: ...

    async def test_connection(self) -> bool: ...

    async def test_answer(self) -> str: ...

    async def close(self) -> None: ...


class LookUpClient:
    """A LookUpService and a WarrantyApi, whose answers can be read by `look_up`."""

    def __init__(self, source: LookUpSource, clock: Clock, look_up: LookUp) -> None:
        self._source = source
        self._look_up = look_up
        self._circuit = CircuitBreaker(source.name, clock)

    async def test_connection(self) -> bool:
        return await self._source.test_connection()

    async def test_answer(self) -> str:
        return await self._source.test_answer(self.look_up)

    async def look_up(self, number: str) -> Mapping[str, Any]:
        """Raises `{name}_malformed` for what cannot be read."""
        return await self._circuit.call(
            lambda: readable(
                self._source.name,
                self._source.tool,
                lambda: self._source.look_up(number),
                lambda raw: parse_look_up_answer(raw, self._look_up),
            )
        )

    async def check_warranty(self, serial_number: str) -> Mapping[str, Any]:
        """As `look_up`."""
        return await self.look_up(serial_number)

    async def close(self) -> None:
        await self._source.close()


class TicketingClient:
    """A TicketingSystem."""

    def __init__(self, source: TicketSource, clock: Clock) -> None:
        self._source = source
        self._circuit = CircuitBreaker(source.name, clock)

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """`{"ticket_id", "status": "created"|"existing"}`. Harmless to repeat: the key in the data sees to that.

        Raises `ticketing_malformed` for an answer without a usable number.
        """
        return await self._circuit.call(
            lambda: readable(
                self._source.name,
                self._source.tool,
                lambda: self._source.create_ticket(ticket_data),
                parse_ticket_id,
            )
        )

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """False, and nothing happens, where the service takes no notes."""
        return await self._circuit.call(lambda: self._source.add_note(ticket_id, note, idempotency_key))

    async def test_connection(self) -> bool:
        return await self._source.test_connection()

    async def test_answer(self) -> str:
        return await self._circuit.call(self._source.test_answer)

    async def close(self) -> None:
        await self._source.close()


@dataclass(frozen=True, slots=True)
class Services:
    mail: MailClient
    warranty: LookUpClient
    ticketing: TicketingClient
    look_ups: Mapping[str, LookUpClient] = field(default_factory=dict)
    """The configured ones, by name."""

    async def close(self) -> None:
        """Returns once servers that were started are gone, and calls in progress have ended, unless it is cancelled."""
        task = asyncio.current_task()
        interrupted.set(task is not None and task.cancelling() > 0)
        look_ups = (client.close() for client in self.look_ups.values())
        await asyncio.gather(self.mail.close(), self.warranty.close(), self.ticketing.close(), *look_ups)


def create_services(config: Config, clock: Clock, environ: Mapping[str, str], key: bytes = b"") -> Services:
    """Nothing is opened yet: the first call does that, or `test_connection`.

    environ: where the programs of others' servers have PATH, HOME and the like from. key: what makes the names of mails
    unguessable, the same for all agents of one inbox. Raises ConfigurationError for what is missing.
    """
    return Services(
        create_mail_client(config, clock, environ, key),
        create_warranty_client(config, clock, environ),
        create_ticketing_client(config, clock, environ),
        {name: create_look_up_client(name, config, clock, environ) for name in config.look_ups},
    )


def create_mail_client(config: Config, clock: Clock, environ: Mapping[str, str], key: bytes = b"") -> MailClient:
    """As `create_services`."""
    server, read_only = config.mailbox.server, config.agent.mode == "observe"
    timeout_s = config.agent.mail_timeout_s
    if server.built_in:
        check_mailbox(config)
        setting = "mailbox.maildir" if config.mailbox.imap.host is None else "mailbox"
        service = BlockingService("mail", setting, lambda: open_configured_store(config, key), timeout_s)
        mailbox = LocalMailbox(service, clock, config.mailbox.copy_wait_s, read_only=read_only)
        return MailClient("mail", mailbox, clock)
    from guarantee_email_agent.services.mcp.mcp_mailbox import McpMailbox
    from guarantee_email_agent.services.mcp.mcp_session import MAX_ANSWER_BYTES

    session = _session("mail", config.mailbox_server_key, server, MAIL_TOOLS, config, clock, environ, MAX_ANSWER_BYTES)
    return MailClient("mail", McpMailbox(session, clock, timeout_s, read_only=read_only), clock)


def create_warranty_client(config: Config, clock: Clock, environ: Mapping[str, str]) -> LookUpClient:
    """As `create_services`."""
    server = config.mcp.warranty_api
    if server.built_in:
        return LookUpClient(warranty_look_up(config.warranties.file, config.agent.call_timeout_s), clock, WARRANTY)
    from guarantee_email_agent.services.mcp.mcp_look_up import warranty_over_mcp

    session = _session("warranty_api", "mcp.warranty_api", server, WARRANTY_TOOLS, config, clock, environ)
    return LookUpClient(warranty_over_mcp(session, config.agent.call_timeout_s), clock, WARRANTY)


def create_look_up_client(name: str, config: Config, clock: Clock, environ: Mapping[str, str]) -> LookUpClient:
    """As `create_services`. name: of the look-up."""
    settings = config.look_ups[name]
    (look_up,) = (look_up for look_up in configured_look_ups(config) if look_up.name == name)
    server = settings.server
    if settings.table is not None:
        source = table_look_up(name, settings.table, settings.key or settings.number, config.agent.call_timeout_s)
        return LookUpClient(source, clock, look_up)
    from guarantee_email_agent.services.mcp.mcp_look_up import McpLookUp

    own_tools = {LOOK_UP_TOOL: settings.own_tool()}
    session = _session(name, f"look_ups.{name}.server", server, own_tools, config, clock, environ)
    tool, argument = (LOOK_UP_TOOL, settings.number) if server.tools else tool_of(settings)
    return LookUpClient(McpLookUp(session, config.agent.call_timeout_s, tool, argument, look_up), clock, look_up)


def create_ticketing_client(config: Config, clock: Clock, environ: Mapping[str, str]) -> TicketingClient:
    """As `create_services`."""
    server = config.mcp.ticketing_system
    if server.built_in:
        return TicketingClient(LocalTickets(config.tickets.database, config.agent.call_timeout_s), clock)
    from guarantee_email_agent.services.mcp.mapped_session import MappedSession
    from guarantee_email_agent.services.mcp.mcp_tickets import MappedTickets, McpTickets

    session = _session("ticketing", "mcp.ticketing_system", server, TICKETING_TOOLS, config, clock, environ)
    if isinstance(session, MappedSession):
        return TicketingClient(MappedTickets(session, config.agent.call_timeout_s, server.tools), clock)
    return TicketingClient(McpTickets(session, config.agent.call_timeout_s), clock)


def _session(
    name: str,
    setting: str,
    server: McpServer,
    own_tools: Mapping[str, OwnTool],
    config: Config,
    clock: Clock,
    environ: Mapping[str, str],
    answer_bytes: int | None = None,
) -> McpSession:
    """answer_bytes: the most that an answer may have, if not what is usual."""
    from guarantee_email_agent.services.mcp.mapped_session import MappedSession
    from guarantee_email_agent.services.mcp.mcp_session import MAX_ANSWER_BYTES, McpSession
    from guarantee_email_agent.services.mcp.server_launch import configured_launch

    launch = configured_launch(setting, server, config.secrets.mcp_environment, environ)
    if not server.tools:
        return McpSession(name, launch, clock, max_answer_bytes=answer_bytes or MAX_ANSWER_BYTES)
    return MappedSession(
        name,
        launch,
        clock,
        server.tools,
        own_tools,
        config.source,
        max_answer_bytes=answer_bytes or MAX_MAPPED_ANSWER_BYTES,
    )

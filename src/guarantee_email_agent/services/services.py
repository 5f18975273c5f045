"""The three services of one configuration, ready to be called, each with a server and a circuit of its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from guarantee_email_agent.config.mcp_server import ToolMapping
from guarantee_email_agent.config.own_tools import (
    LOOK_UP_TOOL,
    MAIL_TOOLS,
    TICKETING_TOOLS,
    WARRANTY_TOOLS,
    OwnTool,
)
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.services.call_errors import MALFORMED_SUFFIX, BadAnswers, forbid_repeat
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.services.look_ups import configured_look_ups, tool_of
from guarantee_email_agent.services.mail_client import MailClient
from guarantee_email_agent.services.mcp.mapped_session import MappedSession
from guarantee_email_agent.services.mcp.mcp_session import MAX_ANSWER_BYTES, AnswerTypes, McpSession
from guarantee_email_agent.services.mcp.server_launch import (
    ServerLaunch,
    look_up_launch,
    mail_launch,
    ticketing_launch,
    warranty_launch,
)
from guarantee_email_agent.services.ports import parse_ticket_id
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

MAX_MAPPED_ANSWER_BYTES: Final = 8 * 1024 * 1024
SAMPLE_NUMBER: Final = "CHECK-00000000"
SAMPLE_DIGITS: Final = "00000000"
"""Where the numbers of a service are whole ones."""

_TEXT: Final = frozenset({"string"})
_NUMBER_OR_TEXT: Final = frozenset({"string", "number", "integer"})


class _Client:
    """timeout_s: seconds for one call."""

    calls: Mapping[str, frozenset[str]]
    """The tools that the server has to offer, each with the arguments that we pass."""

    answer_types: Mapping[str, AnswerTypes]
    """For each tool the fields of its answer, with the types that we can read."""

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._circuit = CircuitBreaker(session.name, clock)

    @property
    def circuits(self) -> dict[str, CircuitBreaker]:
        return {self._session.name: self._circuit}

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError."""
        await self._session.require(self.calls)
        self._session.require_answers(self.answer_types)
        return True

    async def test_answer(self) -> str:
        """What a sample call told, or why there was none: it might have had an effect. Empty where nothing is to tell.

        Raises IntegrationError for an answer that cannot be read.
        """
        return ""

    async def close(self) -> None:
        await self._session.close()

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await self._circuit.call(lambda: self._session.call(tool, arguments, self._timeout_s))


class LookUpClient(_Client):
    """A LookUpService, whose answers can be read by `look_up`.

    Its connection test looks nothing up: not every service takes a made-up number kindly.
    """

    def __init__(
        self, session: McpSession, clock: Clock, timeout_s: float, tool: str, argument: str, look_up: LookUp
    ) -> None:
        super().__init__(session, clock, timeout_s)
        self._tool = tool
        self._argument = argument
        self._look_up = look_up
        self._bad_answers = BadAnswers(session.name, session.name_of(tool))
        self.calls = {tool: frozenset({argument})}
        forms = {fact.name: _NUMBER_OR_TEXT if fact.form == "amount" else _TEXT for fact in look_up.facts}
        self.answer_types = {tool: {look_up.status_key: _TEXT, **forms}}

    async def test_answer(self) -> str:
        if not isinstance(self._session, MappedSession):
            return ""
        if not self._session.may_sample(self._tool):
            return _not_tried(self._session, self._tool)
        given = self._session.sample(self._tool).get(self._argument)
        numbers = (SAMPLE_NUMBER, SAMPLE_DIGITS) if given is None else (given,)
        number = next((each for each in numbers if self._session.asks_for(self._tool, {self._argument: each})), None)
        if number is None:
            return f"{self._session.name_of(self._tool)} was not tried: the sample is no whole number"
        answer = parse_look_up_answer(await self.look_up(number), self._look_up)
        known = "".join(f", {name}" for name in answer.facts)
        return f"{self._session.name_of(self._tool)} answered a sample call: {answer.status}{known}"

    async def look_up(self, number: str) -> dict[str, Any]:
        """Raises `{name}_malformed` for what cannot be read, an `outage` where that is no fault of this number."""
        arguments = {self._argument: number}
        return await self._circuit.call(
            lambda: self._bad_answers.check(
                arguments,
                lambda: self._session.call(self._tool, arguments, self._timeout_s),
                lambda raw: parse_look_up_answer(raw, self._look_up),
            )
        )


class WarrantyClient(LookUpClient):
    """A WarrantyApi."""

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        super().__init__(session, clock, timeout_s, "check_warranty", "serial_number", WARRANTY)

    async def check_warranty(self, serial_number: str) -> dict[str, Any]:
        """As `look_up`."""
        return await self.look_up(serial_number)

    async def test_answer(self) -> str:
        """Asks for a number that nobody has; a service that refuses it has its reasons, and is not to blame."""
        if isinstance(self._session, MappedSession):
            return await super().test_answer()
        try:
            await self.look_up(SAMPLE_NUMBER)
        except IntegrationError as error:
            if error.code.endswith(MALFORMED_SUFFIX):
                raise
        return ""


class TicketingClient(_Client):
    """A TicketingSystem."""

    # Without an idempotency key a call repeated after a lost answer opens a second ticket: such a server is refused.
    calls: Mapping[str, frozenset[str]] = {
        "create_ticket": frozenset(
            {"serial_number", "warranty_status", "customer_email", "priority", "category", "idempotency_key"}
        )
    }

    answer_types: Mapping[str, AnswerTypes] = {"create_ticket": {"ticket_id": _TEXT}}

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        super().__init__(session, clock, timeout_s)
        self._bad_answers = BadAnswers(session.name, session.name_of("create_ticket"))

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        """`{"ticket_id", "status": "created"|"existing"}`. Harmless to repeat: the key in the data sees to that.

        Raises `ticketing_malformed` for an answer without a usable number, an `outage` where others have the same.
        """
        return await self._circuit.call(
            lambda: self._bad_answers.check(ticket_data, lambda: self._create(ticket_data), parse_ticket_id)
        )

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        known = self.calls["create_ticket"]
        fields: dict[str, Any] = dict(ticket_data)
        if not await self._session.offers("create_ticket", fields.keys(), self._timeout_s):
            # Ours has a place for what it does not know by name.
            further = {name: value for name, value in fields.items() if name not in known}
            fields = {name: value for name, value in fields.items() if name in known} | {"details": further}
        return await self._session.call("create_ticket", fields, self._timeout_s)

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """False, and nothing happens, where the server's `add_note` takes other arguments, or it has none."""
        arguments = {"ticket_id": ticket_id, "note": note, "idempotency_key": idempotency_key}

        async def add_if_offered() -> bool:
            if not await self._session.offers("add_note", arguments.keys(), self._timeout_s):
                return False
            await self._session.call("add_note", arguments, self._timeout_s)
            return True

        return await self._circuit.call(add_if_offered)

    async def list_tickets(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest tickets, of the built-in server only."""
        answer = await self._call("list_tickets", {"limit": limit})
        return [ticket for ticket in answer.get("tickets", ()) if isinstance(ticket, dict)]

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError; IntegrationError where the server answers but its database does not."""
        await super().test_connection()
        if "find_ticket" in self._session.tools:
            await self._call("find_ticket", {"idempotency_key": "connection-test"})
        return True


class MappedTicketingClient(TicketingClient):
    """A TicketingSystem on somebody else's server. Its mapping says what keeps a ticket from being opened twice."""

    def __init__(
        self, session: MappedSession, clock: Clock, timeout_s: float, mappings: Mapping[str, ToolMapping]
    ) -> None:
        super().__init__(session, clock, timeout_s)
        self.calls = {"create_ticket": frozenset()}
        self._mapped = session
        self._mappings = mappings

    async def test_answer(self) -> str:
        if "find_ticket" not in self._mappings:
            return ""
        theirs = self._mapped.name_of("find_ticket")
        if not self._mapped.may_sample("find_ticket"):
            return _not_tried(self._mapped, "find_ticket")
        key = self._mapped.sample("find_ticket").get("idempotency_key", "connection-test")
        found = await self._circuit.call(lambda: self._find(key))
        return f"{theirs} answered a sample call: {found or 'no such ticket'}"

    async def test_connection(self) -> bool:
        await self._session.require(self.calls)
        return True

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        if "find_ticket" in self._mappings:
            found = await self._find(str(ticket_data["idempotency_key"]))
            if found is not None:
                return {"ticket_id": found, "status": "existing"}
        if self._mappings["create_ticket"].may_duplicate:
            with forbid_repeat():
                return await self._mapped.call("create_ticket", ticket_data, self._timeout_s)
        return await self._mapped.call("create_ticket", ticket_data, self._timeout_s)

    async def _find(self, key: str) -> str | None:
        """The ticket that holds the key: a search may find others that resemble it."""
        found = await self._mapped.call("find_ticket", {"idempotency_key": key}, self._timeout_s)
        holds_key = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
        return next(
            (ticket["ticket_id"] for ticket in found["tickets"] if holds_key.search(ticket["idempotency_key"])), None
        )


@dataclass(frozen=True, slots=True)
class Services:
    mail: MailClient
    warranty: WarrantyClient
    ticketing: TicketingClient
    look_ups: Mapping[str, LookUpClient] = field(default_factory=dict)
    """The configured ones, by name."""

    @property
    def circuits(self) -> dict[str, CircuitBreaker]:
        """By the name of the service."""
        circuits = self.mail.circuits | self.warranty.circuits | self.ticketing.circuits
        for client in self.look_ups.values():
            circuits |= client.circuits
        return circuits

    async def close(self) -> None:
        """Stop all servers; returns once they are gone."""
        look_ups = (client.close() for client in self.look_ups.values())
        await asyncio.gather(self.mail.close(), self.warranty.close(), self.ticketing.close(), *look_ups)


def create_services(config: Config, clock: Clock, environ: Mapping[str, str], key: bytes = b"") -> Services:
    """Nothing is started yet: the first call does that, or `test_connection`.

    environ: where PATH, HOME and the like come from. key: see `mail_launch`.
    Raises ConfigurationError for what is missing.
    """
    return Services(
        create_mail_client(config, clock, environ, key),
        create_warranty_client(config, clock, environ),
        create_ticketing_client(config, clock, environ),
        {name: create_look_up_client(name, config, clock, environ) for name in config.look_ups},
    )


def create_mail_client(config: Config, clock: Clock, environ: Mapping[str, str], key: bytes = b"") -> MailClient:
    """As `create_services`."""
    # A mail travels as base64, four bytes for three, in a message with some more about it.
    answer_bytes = max(MAX_ANSWER_BYTES, config.agent.max_mail_bytes * 4 // 3 + 1_000_000)
    launch, mappings = mail_launch(config, environ, key), config.mcp.gmail.tools
    session = _session("mail", launch, clock, config, mappings, MAIL_TOOLS, answer_bytes)
    read_only = config.agent.mode == "observe"
    return MailClient(session, clock, config.mcp.gmail.timeout_s, read_only=read_only)


def create_warranty_client(config: Config, clock: Clock, environ: Mapping[str, str]) -> WarrantyClient:
    """As `create_services`."""
    launch, mappings = warranty_launch(config, environ), config.mcp.warranty_api.tools
    session = _session("warranty_api", launch, clock, config, mappings, WARRANTY_TOOLS)
    return WarrantyClient(session, clock, config.mcp.warranty_api.timeout_s)


def create_look_up_client(name: str, config: Config, clock: Clock, environ: Mapping[str, str]) -> LookUpClient:
    """As `create_services`. name: of the look-up."""
    settings = config.look_ups[name]
    own_tools = {LOOK_UP_TOOL: settings.own_tool()}
    session = _session(name, look_up_launch(name, config, environ), clock, config, settings.server.tools, own_tools)
    (look_up,) = (look_up for look_up in configured_look_ups(config) if look_up.name == name)
    tool, argument = (LOOK_UP_TOOL, settings.number) if settings.server.tools else tool_of(settings)
    return LookUpClient(session, clock, settings.server.timeout_s, tool, argument, look_up)


def create_ticketing_client(config: Config, clock: Clock, environ: Mapping[str, str]) -> TicketingClient:
    """As `create_services`."""
    mappings = config.mcp.ticketing_system.tools
    session = _session("ticketing", ticketing_launch(config, environ), clock, config, mappings, TICKETING_TOOLS)
    timeout_s = config.mcp.ticketing_system.timeout_s
    if isinstance(session, MappedSession):
        return MappedTicketingClient(session, clock, timeout_s, mappings)
    return TicketingClient(session, clock, timeout_s)


def _not_tried(session: MappedSession, tool: str) -> str:
    return (
        f"{session.name_of(tool)} was not tried, since it does not say that it only reads (readOnlyHint). "
        f"{session.launch.setting}.tools.{tool}.sample may give a call to try"
    )


def _session(
    name: str,
    launch: ServerLaunch,
    clock: Clock,
    config: Config,
    mappings: Mapping[str, ToolMapping],
    own_tools: Mapping[str, OwnTool],
    answer_bytes: int | None = None,
) -> McpSession:
    """answer_bytes: the most that an answer may have, if not what is usual."""
    if not mappings:
        return McpSession(name, launch, clock, max_answer_bytes=answer_bytes or MAX_ANSWER_BYTES)
    return MappedSession(
        name,
        launch,
        clock,
        mappings,
        own_tools,
        config.source,
        max_answer_bytes=answer_bytes or MAX_MAPPED_ANSWER_BYTES,
    )

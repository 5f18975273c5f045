"""The mocks of one scenario as MCP servers: `mail`, `warranty`, `ticketing`, and every other that the scenario names.

Names and arguments of the first three are those of our own servers, whose declarations stand here again. What reaches
them is kept where the checks look for it, and every call in `tools.calls`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import mcp_types as types
from pydantic import ConfigDict

from guarantee_email_agent.eval.mock_mail import raw_mail
from guarantee_email_agent.eval.mocks import create_mock_clients, send_email_arguments
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.tool_mocks import MALFORMED_ANSWER, ToolMocks, UnknownCallError
from guarantee_email_agent.integrations.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    MailMark,
    Reply,
    SentState,
)
from guarantee_email_agent.mcp_servers.dispatcher import (
    Dispatcher,
    ServerTool,
    ToolOutput,
    error_result,
    structured_result,
)
from guarantee_email_agent.mcp_servers.loopback import ServedTools
from guarantee_email_agent.mcp_servers.mail.compose import compose
from guarantee_email_agent.mcp_servers.mail.mail_store import INBOX_STATES, MailListing, check_size, mail_not_found
from guarantee_email_agent.mcp_servers.mail.mailbox_tools import MailboxTools
from guarantee_email_agent.mcp_servers.ticketing.ticketing_tools import (
    AddedNote,
    CreatedTicket,
    FindTicket,
    FoundTicket,
    LatestTickets,
    ListTickets,
    NewNote,
    StoredTicket,
    TicketFields,
    TicketingTools,
)
from guarantee_email_agent.mcp_servers.tool_error import ToolError
from guarantee_email_agent.mcp_servers.warranty.warranty_tools import CheckWarranty, WarrantyTools

MAX_CALLS: Final = 1000
"""Of one scenario; an agent that makes more runs in a circle."""

MAX_REQUEST_BYTES: Final = 8_000_000
MAX_ARGUMENT_CHARS: Final = 32_000_000  # of all calls of one scenario together
SLOW_S: Final = 3.0  # that a slow tool takes to answer

_SENDER: Final = "support@example.com"
_CREATED_AT: Final = "2026-01-01T00:00:00Z"
_SERVICES: Final = {"mail": "gmail", "warranty": "warranty_api", "ticketing": "ticketing"}


class ServedMocks:
    """tools: captures the calls. clients: hold what was sent and created, as those of a run in process do.

    stopped_by: why the agent has to stop at once; None as long as it need not.
    """

    def __init__(self, test_case: EvalTestCase, on_silence: Callable[[], None] = lambda: None) -> None:
        """on_silence: is called on the server's event loop for each call that is never answered, as it comes in."""
        self.tools = ToolMocks(test_case.input.mock_responses)
        self.clients = create_mock_clients(test_case)
        self.stopped_by: str | None = None
        self._left = MAX_ARGUMENT_CHARS
        self._on_silence = on_silence
        mocks = test_case.input.mock_responses
        own = {
            "mail": MailboxTools(MockMailStore(test_case, self.clients["gmail"]), 0).tools(),
            "warranty": _WarrantyTools(mocks.get("warranty_api", {})).tools(),
            "ticketing": _TicketingTools(self.clients["ticketing"]).tools(),
        }
        self.servers: dict[str, ServedTools] = {
            name: _OwnServer(self, name, tools, mocks.get(_SERVICES[name], {}).get("error"))
            for name, tools in own.items()
        }
        self.servers |= {name: _MockedServer(self, name) for name in self.tools.servers}

    def admit(self, arguments: Mapping[str, Any]) -> None:
        """Count a call. Raises ToolError where the agent has made too many, or too large ones."""
        self._left -= len(repr(arguments))
        if len(self.tools.calls) >= MAX_CALLS:
            self.stop(f"the agent made more than {MAX_CALLS} calls")
        elif self._left < 0:
            self.stop(f"the arguments of all calls are over {MAX_ARGUMENT_CHARS // 1_000_000} MB")
        if self.stopped_by is not None:
            raise ToolError("mock_stopped", self.stopped_by)

    def stop(self, reason: str) -> None:
        self.stopped_by = self.stopped_by or reason

    async def fail(self, server: str, error: object) -> None:
        """A time-out lasts until the scenario is over."""
        if error == "timeout":
            self._on_silence()
            await asyncio.Event().wait()
        raise ToolError(f"{_SERVICES.get(server, server)}_unavailable", "the service is not available", retryable=True)


class _Server:
    """What the servers of a scenario share: counting, capturing, and what a client is answered."""

    def __init__(self, mocks: ServedMocks, name: str) -> None:
        self._mocks = mocks
        self._name = name

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        try:
            self._mocks.admit(arguments)
            result = await self._answer(tool_name, arguments)
        except ToolError as error:
            result = error_result(error)
        return result

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        raise NotImplementedError

    def refused_too_large(self) -> None:
        self._mocks.stop(f"a request to {self._name} was over {MAX_REQUEST_BYTES // 1_000_000} MB")

    async def drain(self) -> None:
        """Nothing goes on without its caller."""


class _OwnServer(_Server):
    """One of ours, with the fault that the scenario gives it."""

    def __init__(self, mocks: ServedMocks, name: str, tools: list[ServerTool], error: object) -> None:
        super().__init__(mocks, name)
        self._dispatcher = Dispatcher(name, tools)
        self._error = error

    def declarations(self) -> list[types.Tool]:
        return self._dispatcher.declarations()

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        self._mocks.tools.capture(self._name, tool_name, arguments, known=tool_name in self._dispatcher.tools)
        if self._error is not None and tool_name in self._dispatcher.tools:
            # A note is taken where tickets come back malformed, as in a run in process.
            if self._error != "malformed":
                await self._mocks.fail(self._name, self._error)
            elif self._name == "mail":
                return types.CallToolResult(content=[types.TextContent(type="text", text="unexpected answer")])
            elif tool_name != "add_note":
                return structured_result(MALFORMED_ANSWER)
        return await self._dispatcher.dispatch(tool_name, arguments)

    async def drain(self) -> None:
        self._dispatcher.stop()
        await self._dispatcher.drain()


class _MockedServer(_Server):
    """A server that only the scenario knows."""

    def declarations(self) -> list[types.Tool]:
        """Which arguments a tool takes only its calls tell, so any are accepted."""
        tools = []
        for tool, mock in self._mocks.tools.servers[self._name].items():
            names: dict[str, Any] = {name: {} for entry in mock.entries for name in entry.when or ()}
            schema = {"type": "object", "properties": names, "additionalProperties": True}
            tools.append(types.Tool(name=tool, description=f"{tool} of {self._name}, mocked.", input_schema=schema))
        return tools

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        try:
            answer, error = self._mocks.tools.answer(self._name, tool_name, arguments)
        except UnknownCallError as unknown:
            raise ToolError("mock_unknown_call", str(unknown)) from None
        if error == "slow":
            await asyncio.sleep(SLOW_S)
        elif error is not None and error != "malformed":
            await self._mocks.fail(self._name, error)
        if isinstance(answer, str):
            return types.CallToolResult(content=[types.TextContent(type="text", text=answer)])
        return structured_result(answer)


# Our own servers ------------------------------------------------------------------------------------------------------


class MockMailStore:
    """A MailStore with the scenario's one mail; what is sent and stored is kept in `client`."""

    proof_lags = False

    def __init__(self, test_case: EvalTestCase, client: Any) -> None:
        self._id = f"eval-{test_case.scenario_id}"
        self._client = client
        self._raw = raw_mail(test_case)
        self._mark: MailMark | None = None
        self._lock = threading.Lock()
        received = test_case.input.email.received
        try:
            self._received = datetime.fromisoformat(received).timestamp()
        except ValueError:
            self._received = 0.0

    def list_unprocessed(self, limit: int, inbox_filter: InboxFilter = ANY_MAIL) -> MailListing:
        waiting = self._mark is None and not self._is_too_old(inbox_filter)
        entries = (InboxEntry(self._id, len(self._raw), self._received),) if waiting else ()
        return MailListing(entries[:limit], len(entries))

    def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        self._check(mail_id)
        check_size(mail_id, len(self._raw), max_bytes)
        return self._raw

    def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:  # noqa: ARG002 - nobody has read it
        return mail_id == self._id and self._mark is None

    def send(self, reply: Reply) -> Literal["sent", "already_sent"]:
        return "sent" if self._keep(reply, self._client.sent_emails) else "already_sent"

    def find_sent(self, message_id: str) -> SentState:
        return "sent" if _is_among(message_id, self._client.sent_emails) else "not_sent"

    def save_draft(self, reply: Reply) -> Literal["saved", "already_saved"]:
        return "saved" if self._keep(reply, self._client.drafts) else "already_saved"

    def find_draft(self, message_id: str) -> DraftState:
        return "saved" if _is_among(message_id, self._client.drafts) else "not_saved"

    def mark(self, mail_id: str, outcome: MailMark) -> None:
        self._check(mail_id)
        self._mark = outcome

    def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> Mapping[str, int]:
        state = self._mark or ("too_old" if self._is_too_old(inbox_filter) else "unprocessed")
        return {name: int(name == state) for name in INBOX_STATES}

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        stop.wait(timeout_s)
        return False

    def test_connection(self, drafts: bool = False) -> str:  # noqa: ARG002 - both work
        return "the mail of one scenario"

    def close(self) -> None:
        """Nothing is open."""

    def _keep(self, reply: Reply, kept: list[dict[str, Any]]) -> bool:
        """Whether it is the first with its Message-ID. Refuses what cannot be sent, as our own server does."""
        compose(reply, _SENDER, datetime(2026, 1, 1, tzinfo=UTC))
        with self._lock:
            if _is_among(reply.message_id, kept):
                return False
            kept.append(send_email_arguments(reply))
        return True

    def _check(self, mail_id: str) -> None:
        if mail_id != self._id:
            raise mail_not_found(mail_id)

    def _is_too_old(self, inbox_filter: InboxFilter) -> bool:
        return self._received < inbox_filter.received_since


def _is_among(message_id: str, kept: list[dict[str, Any]]) -> bool:
    return any(reply["message_id"] == message_id for reply in kept)


class _AnyAnswer(ToolOutput):
    """Whatever the scenario says, without the limits of our own server."""

    model_config = ConfigDict(frozen=True, extra="allow")


class _WarrantyTools:
    def __init__(self, answer: Mapping[str, object]) -> None:
        self._answer = {key: value for key, value in answer.items() if key != "error"} or {"status": "not_found"}

    def tools(self) -> list[ServerTool]:
        return [ServerTool(self.check_warranty, read_only=True)]

    async def check_warranty(self, arguments: CheckWarranty) -> _AnyAnswer:  # noqa: ARG002 - one answer for any number
        return _AnyAnswer(**self._answer)

    check_warranty.__doc__ = WarrantyTools.check_warranty.__doc__


class _TicketingTools:
    def __init__(self, client: Any) -> None:
        self._client = client

    def tools(self) -> list[ServerTool]:
        return [
            ServerTool(self.create_ticket),
            ServerTool(self.add_note),
            ServerTool(self.find_ticket, read_only=True),
            ServerTool(self.list_tickets, read_only=True),
        ]

    async def create_ticket(self, arguments: TicketFields) -> CreatedTicket:
        created = await self._client.create_ticket(arguments.model_dump(exclude_unset=True))
        return CreatedTicket(ticket_id=created["ticket_id"], status=created["status"])

    async def add_note(self, arguments: NewNote) -> AddedNote:
        new = arguments.idempotency_key not in self._client.notes
        await self._client.add_note(arguments.ticket_id, arguments.note, arguments.idempotency_key)
        return AddedNote(status="added" if new else "existing")

    async def find_ticket(self, arguments: FindTicket) -> FoundTicket:
        for ticket in self._client.created_tickets:
            if ticket["idempotency_key"] == arguments.idempotency_key:
                return FoundTicket(ticket_id=ticket["ticket_id"])
        return FoundTicket(ticket_id=None)

    async def list_tickets(self, arguments: ListTickets) -> LatestTickets:
        notes = [ticket_id for ticket_id, _ in self._client.notes.values()]
        tickets = [
            StoredTicket(**ticket, created_at=_CREATED_AT, notes=notes.count(ticket["ticket_id"]))
            for ticket in reversed(self._client.created_tickets[-arguments.limit :])
        ]
        return LatestTickets(tickets=tickets, total=len(self._client.created_tickets))

    create_ticket.__doc__ = TicketingTools.create_ticket.__doc__
    add_note.__doc__ = TicketingTools.add_note.__doc__
    find_ticket.__doc__ = TicketingTools.find_ticket.__doc__
    list_tickets.__doc__ = TicketingTools.list_tickets.__doc__

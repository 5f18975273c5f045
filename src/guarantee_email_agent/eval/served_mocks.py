"""The mocks of one scenario as MCP servers: `mail`, `warranty`, `ticketing`, and every other that the scenario names.

Names and arguments of the first three are those of our own servers, over stores that have the scenario's one mail and
the tickets created. What reaches them is kept where the checks look for it, and every call with its answer in
`tools.calls`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, Final, Literal

from mcp_types import CallToolResult, ContentBlock, TextContent, Tool
from pydantic import ConfigDict

from guarantee_email_agent.eval.mocks import Mocks, MockTicketingClient, arrival_of, send_email_arguments
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import run_without_event_loop
from guarantee_email_agent.eval.tool_mocks import (
    MALFORMED_ANSWER,
    RefusedCallError,
    ToolAnswer,
    ToolMocks,
    UnknownCallError,
)
from guarantee_email_agent.eval.world import World
from guarantee_email_agent.mcp_servers.loopback import PublishedTools
from guarantee_email_agent.mcp_servers.mailbox_tools import MailboxTools
from guarantee_email_agent.mcp_servers.server import (
    Dispatcher,
    ServerTool,
    ToolOutput,
    error_result,
    structured_result,
    text_result,
)
from guarantee_email_agent.mcp_servers.ticketing import TicketingTools
from guarantee_email_agent.mcp_servers.warranty import CheckWarranty, WarrantyTools
from guarantee_email_agent.services.call_errors import ERROR_META_KEY, ToolError
from guarantee_email_agent.services.mail.compose import compose
from guarantee_email_agent.services.mail.mail_store import INBOX_STATES, MailListing, check_size, mail_not_found
from guarantee_email_agent.services.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    MailMark,
    Reply,
    SentState,
)
from guarantee_email_agent.utils.text import head_and_tail

_WRITTEN_HERE: Final = frozenset({"from", "to", "subject", "date", "message-id", "mime-version"})
_SENDER: Final = "support@example.com"
_CREATED_AT: Final = "2026-01-01T00:00:00Z"


def raw_mail(test_case: EvalTestCase) -> bytes:
    """RFC 5322: the scenario's own, else made of its keys, with empty attachments.

    Headers of the scenario stand as they are; line breaks in them are folded.
    """
    email = test_case.input.email
    if email.raw is not None:
        return email.raw
    content = EmailMessage(policy=SMTP)
    content.set_content(email.body, cte="quoted-printable")
    for name in email.attachments:
        content.add_attachment(b"", maintype="application", subtype="octet-stream", filename=name)
    headers = {
        "From": email.from_address,
        "To": email.to or "support@example.com",
        "Subject": email.subject,
        "Date": _date(email.received),
        **{name: value for name, value in email.headers.items() if name.lower() not in _WRITTEN_HERE},
    }
    own_id = next((value for name, value in email.headers.items() if name.lower() == "message-id"), None)
    headers["Message-ID"] = own_id or f"<eval-{test_case.scenario_id}@example.com>"
    lines = [f"{name}: {' '.join(value.split())}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n" + content.as_bytes()


def _date(received: str) -> str:
    """As a header has it; as the scenario has it where that is no date."""
    try:
        return format_datetime(datetime.fromisoformat(received))
    except ValueError:
        return received


class MockMailStore:
    """A MailStore with the scenario's one mail; what is sent and stored is kept in `client`."""

    proof_lags = False

    def __init__(self, test_case: EvalTestCase, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.deliver(test_case)

    def deliver(self, test_case: EvalTestCase) -> None:
        """The mail of the next turn, in place of the one before."""
        self._id = f"eval-{test_case.scenario_id}"
        self._raw, self._has_mail = raw_mail(test_case), test_case.input.has_email
        self._mark: MailMark | None = None
        self._received = arrival_of(test_case.input.email) or 0.0

    def list_unprocessed(self, limit: int, inbox_filter: InboxFilter = ANY_MAIL) -> MailListing:
        waiting = self._has_mail and self._mark is None and not self._is_too_old(inbox_filter)
        entries = (InboxEntry(self._id, len(self._raw), self._received),) if waiting else ()
        return MailListing(entries[:limit], len(entries))

    def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        self._check(mail_id)
        check_size(mail_id, len(self._raw), max_bytes)
        return self._raw

    def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:  # noqa: ARG002 - nobody has read it
        return self._has_mail and mail_id == self._id and self._mark is None

    def send(self, reply: Reply) -> Literal["sent", "already_sent"]:
        return "sent" if self._keep(reply, self._client.sent_emails) else "already_sent"

    def find_sent(self, message_id: str, everywhere: bool = False) -> SentState:  # noqa: ARG002 - one place has all
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
        return {name: int(self._has_mail and name == state) for name in INBOX_STATES}

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
        if not self._has_mail or mail_id != self._id:
            raise mail_not_found(mail_id)

    def _is_too_old(self, inbox_filter: InboxFilter) -> bool:
        return self._received < inbox_filter.received_since


def _is_among(message_id: str, kept: list[dict[str, Any]]) -> bool:
    return any(reply["message_id"] == message_id for reply in kept)


class MockTicketStore:
    """A TicketKeeper whose tickets and notes are kept in `client`, which numbers them."""

    def __init__(self, client: MockTicketingClient) -> None:
        self._client = client
        self._lock = threading.Lock()

    def create(self, ticket: Mapping[str, str], created_at: str) -> tuple[str, bool]:  # noqa: ARG002 - no clock here
        given: dict[str, Any] = dict(ticket)
        if "details" in given:
            given["details"] = json.loads(given["details"])
        with self._lock:
            created = run_without_event_loop(self._client.create_ticket(given))
        return created["ticket_id"], created["status"] == "created"

    def find(self, idempotency_key: str) -> str | None:
        with self._lock:
            found = (t["ticket_id"] for t in self._client.created_tickets if t["idempotency_key"] == idempotency_key)
            return next(found, None)

    def add_note(self, ticket_id: str, note: str, idempotency_key: str, created_at: str) -> bool:  # noqa: ARG002
        with self._lock:
            new = idempotency_key not in self._client.notes
            run_without_event_loop(self._client.add_note(ticket_id, note, idempotency_key))
        return new

    def latest(self, limit: int) -> tuple[list[dict[str, Any]], int]:
        with self._lock:
            noted = [ticket_id for ticket_id, _ in self._client.notes.values()]
            created = self._client.created_tickets
            tickets = [
                {
                    **ticket,
                    "details": json.dumps(ticket.get("details", {})),
                    "created_at": _CREATED_AT,
                    "notes": noted.count(ticket["ticket_id"]),
                }
                for ticket in reversed(created[-limit:])
            ]
            return tickets, len(created)


MAX_CALLS: Final = 1000
"""Of one scenario; an agent that makes more runs in a circle."""

MAX_REQUEST_BYTES: Final = 8_000_000
MAX_ARGUMENT_CHARS: Final = 32_000_000  # of all calls of one scenario together
MAX_ANSWER_CHARS: Final = 65_536  # of one answer that are kept
SLOW_S: Final = 3.0  # that a slow tool takes to answer

_PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
"""A picture (PNG) where a scenario has none of its own."""

_SERVICES: Final = {"mail": "gmail", "warranty": "warranty_api", "ticketing": "ticketing"}


class ServedMocks:
    """mocks: hold what was sent, created and called, as those of a run in process do. world: the tables.

    stopped_by: why the agent has to stop at once; None as long as it need not.
    """

    def __init__(self, test_case: EvalTestCase) -> None:
        self.world = World(test_case.input.world)
        self.tools = ToolMocks(test_case.input.mock_responses, test_case.servers, self.world.apply)
        # Each call is noted once, as it comes in.
        self.mocks = replace(Mocks.of(test_case, ToolMocks({})), tools=self.tools)
        self.stopped_by: str | None = None
        self._left = MAX_ARGUMENT_CHARS
        answers = test_case.input.mock_responses
        self.mailbox = MockMailStore(test_case, self.mocks.mail)
        own = {
            "mail": MailboxTools(self.mailbox, 0).tools(),
            "warranty": [_warranty_tool(answers.get("warranty_api", {}))],
            "ticketing": TicketingTools(MockTicketStore(self.mocks.ticketing)).tools(),
        }
        self.servers: dict[str, PublishedTools] = {
            name: _OwnServer(self, name, tools, answers.get(_SERVICES[name], {}).get("error"))
            for name, tools in own.items()
            if _is_named(test_case, name)
        }
        self.servers |= {name: _MockedServer(self, name) for name in self.tools.servers}

    def admit(self, size: int) -> None:
        """Count a call. size: of its arguments. Raises ToolError where the agent made too many, or too large ones."""
        self._left -= size
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
            await asyncio.Event().wait()
        raise ToolError(f"{_SERVICES.get(server, server)}_unavailable", "the service is not available", retryable=True)


def _is_named(case: EvalTestCase, server: str) -> bool:
    """Whether an agent is given this server of ours: each for a mail, for a task those that the scenario names."""
    named = set[str]()
    for expected in (case.expected_output, *(turn.expected_output for turn in case.turns)):
        named |= {call.server for call in expected.calls} | {call.server for call in expected.never_called}
        if any(value is not None for value in (expected.email_sent, expected.draft_stored)):
            named.add("mail")
        if any(value is not None for value in (expected.ticket_created, expected.note_added)):
            named.add("ticketing")
    return case.input.has_email or server in named or _SERVICES[server] in case.input.mock_responses


class _Server(ABC):
    """What the servers of a scenario share: counting, capturing, and what a client is answered."""

    def __init__(self, mocks: ServedMocks, name: str) -> None:
        self._mocks = mocks
        self._name = name

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        text = json.dumps(arguments, ensure_ascii=False)
        try:
            self._mocks.admit(len(text))
        except ToolError as error:
            return error_result(error)
        plain = json.loads(text, parse_constant=str)  # a report cannot hold a number that JSON lacks
        with self._mocks.tools.noting(self._name, tool_name, plain) as call:
            try:
                if plain != arguments:
                    raise ToolError("mock_invalid_argument", "NaN and infinity are no JSON")
                result = await self._answer(tool_name, arguments)
            except ToolError as error:
                result = error_result(error)
            content = result.structured_content
            text = "".join(map(_as_text, result.content))
            answer = text if content is None else json.dumps(content, ensure_ascii=False)
            call.answered(head_and_tail(answer, MAX_ANSWER_CHARS))
            call.is_error = result.is_error
            error_data = (result.meta or {}).get(ERROR_META_KEY)
            call.refused = error_data is not None and not (error_data["retryable"] or error_data["uncertain"])
        return result

    @abstractmethod
    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Raises ToolError."""

    def refused_too_large(self) -> None:
        self._mocks.stop(f"a request to {self._name} was over {MAX_REQUEST_BYTES // 1_000_000} MB")


class _OwnServer(_Server):
    """One of ours, with the fault that the scenario gives it."""

    def __init__(self, mocks: ServedMocks, name: str, tools: list[ServerTool], error: object) -> None:
        super().__init__(mocks, name)
        self._dispatcher = Dispatcher(name, tools)
        self._error = error

    def declarations(self) -> list[Tool]:
        return self._dispatcher.declarations()

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        if tool_name not in self._dispatcher.tools:
            self._mocks.tools.note_unknown_tool(self._name, tool_name)
        elif self._error is not None:
            # A note is taken where tickets come back malformed, as in a run in process.
            if self._error != "malformed":
                await self._mocks.fail(self._name, self._error)
            elif self._name == "mail":
                return text_result("unexpected answer")
            elif tool_name != "add_note":
                return structured_result(MALFORMED_ANSWER)
        return await self._dispatcher.dispatch(tool_name, arguments)

    async def drain(self) -> None:
        await self._dispatcher.drain()


class _MockedServer(_Server):
    """A server that only the scenario knows."""

    async def drain(self) -> None:
        """Nothing goes on without its caller."""

    def declarations(self) -> list[Tool]:
        """Where it is not declared, which arguments a tool takes only its calls tell, so any are accepted."""
        if declared := self._mocks.tools.declared.get(self._name):
            return [Tool.model_validate(asdict(each), by_name=True) for each in declared.tools]
        tools = []
        for tool, entries in self._mocks.tools.servers[self._name].items():
            names: dict[str, Any] = {name: {} for entry in entries for name in entry.when or ()}
            schema = {"type": "object", "properties": names, "additionalProperties": True}
            tools.append(Tool(name=tool, description=f"{tool} of {self._name}, mocked.", input_schema=schema))
        return tools

    async def _answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        try:
            given = self._mocks.tools.answer(self._name, tool_name, arguments)
        except UnknownCallError as unknown:
            raise ToolError("mock_unknown_call", str(unknown)) from None
        except RefusedCallError as refused:
            raise ToolError("mock_invalid_argument", str(refused)) from None
        if given.error == "slow":
            await asyncio.sleep(SLOW_S)
        elif given.error is not None and given.error != "malformed":
            await self._mocks.fail(self._name, given.error)
        result = _result_of(given)
        result.is_error = given.is_error
        return result


def _result_of(given: ToolAnswer) -> CallToolResult:
    """What is neither text nor a mapping is wrapped as the SDK's own servers do, since clients take nothing else."""
    if given.content is not None:
        picture = {"mime_type": "image/png", "data": _PIXEL}
        said = [{name: value for name, value in asdict(each).items() if value is not None} for each in given.content]
        blocks = [picture | block if block["type"] == "image" else block for block in said]
        return CallToolResult.model_validate({"content": blocks}, by_alias=True, by_name=True)
    if isinstance(given.answer, str):
        return text_result(given.answer)
    if isinstance(given.answer, Mapping):
        return structured_result(given.answer)
    text = json.dumps(given.answer, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], structured_content={"result": given.answer})


def _as_text(block: ContentBlock) -> str:
    """As the record keeps it: of a picture its type."""
    if isinstance(block, TextContent):
        return block.text
    return f"[{block.type} {getattr(block, 'mime_type', None) or ''}]".replace(" ]", "]")


class _AnyAnswer(ToolOutput):
    """Whatever the scenario says, without the limits of our own server."""

    model_config = ConfigDict(frozen=True, extra="allow")


def _warranty_tool(answer: Mapping[str, object]) -> ServerTool:
    said = {key: value for key, value in answer.items() if key != "error"} or {"status": "not_found"}

    async def check_warranty(arguments: CheckWarranty) -> _AnyAnswer:  # noqa: ARG001 - one answer for any number
        return _AnyAnswer(**said)

    check_warranty.__doc__ = WarrantyTools.check_warranty.__doc__
    return ServerTool(check_warranty, read_only=True)

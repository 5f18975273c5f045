"""Stand-ins for the four clients at the network's edge; everything behind them is the production code.

They answer from one scenario's `mock_responses`, capture what reaches them, and open no connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

from guarantee_email_agent.config.built_in_files import built_in_path
from guarantee_email_agent.eval.models import EvalEmail, EvalTestCase, PreviousReply
from guarantee_email_agent.eval.tool_mocks import (
    MALFORMED_ANSWER,
    RefusedCallError,
    ToolCall,
    ToolMocks,
    UnknownCallError,
)
from guarantee_email_agent.instructions.lexicon import Lexicon, LexiconSource, load_lexicon
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.llm.port import LanguageModel, Message, ModelClient, ToolUseBlock
from guarantee_email_agent.llm.prompts import TRIAGE_TOOL
from guarantee_email_agent.services.call_errors import classify_message, service_error
from guarantee_email_agent.services.ports import Admission, Reply, Thread
from guarantee_email_agent.utils.errors import IntegrationError

_RETRYABLE_FAILURES = frozenset({"timeout", "unavailable"})
ARRIVED_AT = 0.0
"""When an answer to a reply arrives of which nobody knows when: the zero of the clock of that `previous_reply`."""


def mail_as_json(test_case: EvalTestCase) -> dict[str, Any]:
    """The scenario's mail. Every key is there; `to` is None where the scenario names none."""
    email = test_case.input.email
    return {
        "subject": email.subject,
        "body": email.body,
        "from": email.from_address,
        "received": email.received,
        "to": email.to,
        "headers": dict(email.headers),
        "attachments": list(email.attachments),
        "message_id": f"eval-{test_case.scenario_id}",
    }


def build_raw_email(test_case: EvalTestCase) -> dict[str, Any]:
    """The same as it enters `EmailProcessor.process_email`, without what the scenario leaves out."""
    mail = mail_as_json(test_case)
    for name in ("to", "headers", "attachments"):
        if not mail[name]:
            del mail[name]
    return mail


def arrival_of(email: EvalEmail) -> float | None:
    """When the mailbox takes the scenario's mail, in seconds since 1970; in UTC where no zone is written.

    None where `received` is no time, as only a scenario made in Python may have it.
    """
    try:
        moment = datetime.fromisoformat(email.received)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def says_date(email: EvalEmail) -> bool:
    """Whether the scenario's mail says when it was written, which may be long before it arrives."""
    return email.raw is not None or any(name.lower() == "date" for name in email.headers)


def send_email_arguments(reply: Reply) -> dict[str, Any]:
    """The reply as `MockGmailClient.send_email` takes and captures it; absent ids are None."""
    return {
        "to": reply.to,
        "subject": reply.subject,
        "body": reply.body,
        "thread_id": reply.thread_id,
        "message_id": reply.message_id,
        "in_reply_to": reply.in_reply_to or None,
        "references": reply.references,
        "headers": reply.headers,
    }


def _reply_arguments(captured: Mapping[str, Any]) -> dict[str, Any]:
    """A reply as our mail server's tools take it: without the mailbox's own id, and empty where there is nothing."""
    return {name: "" if value is None else value for name, value in captured.items() if name != "thread_id"}


class _MockService:
    """What the mocked services share: the scenario's answer, and failing as the scenario says."""

    def __init__(self, service: str, test_case: EvalTestCase | None, tools: ToolMocks | None) -> None:
        self._service = service
        self.tools = tools or ToolMocks({})
        self._answer = dict(test_case.input.mock_responses.get(service, {})) if test_case else {}
        self._failure = self._answer.pop("error", None)

    async def test_connection(self) -> bool:
        if self._failure:
            raise self._error()
        return True

    async def close(self) -> None:
        """Nothing is open."""

    def _raise_if_down(self) -> None:
        if self._failure in _RETRYABLE_FAILURES:
            raise self._error()

    def _error(self, retryable: bool | None = None) -> IntegrationError:
        return IntegrationError(
            f"The mocked {self._service} fails as the scenario says: {self._failure}",
            f"{self._service}_{self._failure}",
            retryable=self._failure in _RETRYABLE_FAILURES if retryable is None else retryable,
        )


class MockGmailClient(_MockService):
    """A mailbox with one unread mail; `sent_emails` holds what was sent, each as a mapping of the call's arguments."""

    def __init__(self, test_case: EvalTestCase, tools: ToolMocks | None = None) -> None:
        super().__init__("gmail", test_case, tools)
        self.test_case = test_case
        self.sent_emails: list[dict[str, Any]] = []
        self.drafts: list[dict[str, Any]] = []

    async def get_unread_emails(self) -> list[dict[str, Any]]:
        if self._failure:
            raise self._error()
        return [build_raw_email(self.test_case)]

    async def send(self, reply: Reply) -> dict[str, Any]:
        return await self.send_email(**send_email_arguments(reply))

    async def save_draft(self, reply: Reply) -> dict[str, Any]:
        """`drafts` holds what was stored for a person to send."""
        with self.tools.noting("mail", "save_draft", _reply_arguments(send_email_arguments(reply))) as call:
            if self._failure:
                raise self._error()
            self.drafts.append(send_email_arguments(reply))
            return call.answered({"message_id": reply.message_id, "status": "saved"})

    async def send_email(
        self, to: str, subject: str, body: str, thread_id: str | None = None, **headers: Any
    ) -> dict[str, Any]:
        arguments = {"to": to, "subject": subject, "body": body, **_reply_arguments(headers)}
        with self.tools.noting("mail", "send_reply", arguments) as call:
            if self._failure:
                # After a time-out nobody knows whether the mail went out, so sending is not for a retry to repeat.
                raise self._error(retryable=self._failure == "unavailable")
            self.sent_emails.append({"to": to, "subject": subject, "body": body, "thread_id": thread_id, **headers})
            return call.answered({"message_id": f"mock-message-{len(self.sent_emails):03d}"})


class MockWarrantyAPIClient(_MockService):
    """Answers the scenario's facts for whatever serial number; without any it knows none. `calls` holds the numbers."""

    def __init__(self, test_case: EvalTestCase, tools: ToolMocks | None = None) -> None:
        super().__init__(WARRANTY.name, test_case, tools)
        self.calls: list[str] = []

    async def check_warranty(self, serial_number: str) -> dict[str, Any]:
        self.calls.append(serial_number)
        with self.tools.noting("warranty", "check_warranty", {"serial_number": serial_number}) as call:
            self._raise_if_down()
            return call.answered(dict(MALFORMED_ANSWER if self._failure else self._answer or {"status": "not_found"}))

    async def look_up(self, number: str) -> dict[str, Any]:
        return await self.check_warranty(number)


class MockLookUpClient:
    """A configured look-up: answers as `mock_responses.<name>.<tool>` says. Without any it knows no number."""

    def __init__(self, name: str, tool: str, argument: str, tools: ToolMocks) -> None:
        self._name, self._tool, self._argument, self._tools = name, tool, argument, tools

    async def look_up(self, number: str) -> dict[str, Any]:
        arguments = {self._argument: number}
        with self._tools.noting(self._name, self._tool, arguments) as call:
            if self._name not in self._tools.servers:
                return call.answered({"status": "not_found"})
            try:
                given = self._tools.answer(self._name, self._tool, arguments)
            except (RefusedCallError, UnknownCallError) as error:
                call.refused = True
                kind = "invalid_argument" if isinstance(error, RefusedCallError) else "unavailable"
                raise IntegrationError(str(error), f"{self._name}_{kind}") from None
            if given.error in _RETRYABLE_FAILURES:
                message = f"The mocked {self._name} fails as the scenario says: {given.error}"
                raise IntegrationError(message, f"{self._name}_{given.error}", retryable=True)
            if given.is_error:
                raise service_error(self._name, self._tool, classify_message(str(given.answer)))
            if not isinstance(given.answer, Mapping):
                raise IntegrationError(f"The answer of {self._name} is no JSON object", f"{self._name}_malformed")
            return call.answered(dict(given.answer))


class CapturedTicket(dict[str, Any]):
    """The fields of a ticket with its `ticket_id`; `["data"]` has those that were given."""

    def __missing__(self, key: str) -> dict[str, Any]:
        if key != "data":
            raise KeyError(key)
        return {name: value for name, value in self.items() if name != "ticket_id"}


class MockTicketingClient(_MockService):
    """Numbers its tickets MOCK-TICKET-001, -002, …; `created_tickets` holds each as a `CapturedTicket`."""

    def __init__(self, test_case: EvalTestCase | None = None, tools: ToolMocks | None = None) -> None:
        super().__init__("ticketing", test_case, tools)
        self._by_key: dict[str, str] = {}
        self.created_tickets: list[CapturedTicket] = []
        self.notes: dict[str, tuple[str, str]] = {}

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        with self.tools.noting("ticketing", "create_ticket", ticket_data) as call:
            self._raise_if_down()
            return call.answered(dict(MALFORMED_ANSWER) if self._failure else self._create(ticket_data))

    def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        key = str(ticket_data.get("idempotency_key") or "")
        if key in self._by_key:
            return {"ticket_id": self._by_key[key], "status": "existing"}
        ticket_id = f"MOCK-TICKET-{len(self.created_tickets) + 1:03d}"
        self.created_tickets.append(CapturedTicket(ticket_data, ticket_id=ticket_id))
        if key:
            self._by_key[key] = ticket_id
        return {"ticket_id": ticket_id, "status": "created"}

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """`notes` holds ticket and text by idempotency key."""
        arguments = {"ticket_id": ticket_id, "note": note, "idempotency_key": idempotency_key}
        with self.tools.noting("ticketing", "add_note", arguments) as call:
            self._raise_if_down()
            self.notes.setdefault(idempotency_key, (ticket_id, note))
            return call.answered(True)


class MockReplyHistory:
    """Knows the one reply that the scenario's `previous_reply` tells of, and forbids nothing. A ReplyHistory."""

    def __init__(self, previous: PreviousReply, arrived_at: float = ARRIVED_AT) -> None:
        """arrived_at: when the mail comes that answers it, in seconds since 1970."""
        self._previous, self._arrived_at = previous, arrived_at

    async def find_thread(self, reply_message_ids: Sequence[str]) -> Thread | None:
        reply = self._previous
        if reply.message_id not in reply_message_ids:
            return None
        return Thread(
            key="previous",
            scenario=reply.scenario,
            ticket_id=reply.ticket_id,
            replied_at=self._arrived_at - reply.seconds_before,
            replies=1 + reply.follow_ups,
            follow_ups=reply.follow_ups,
            reply_message_id=reply.message_id,
        )

    async def admit(self, admission: Admission) -> None:
        """No scenario reaches a limit."""


class MockAnthropicClient(ModelClient):
    """The deterministic model behind the Messages API's shape; `requests` holds what it was asked."""

    def __init__(self, *, lexicon: LexiconSource | None = None, triage: Mapping[str, object] | None = None) -> None:
        """lexicon: the shipped one, where none is given. triage: what it says of a mail, whatever stands in it."""
        self._interpreter = InstructionInterpreter(lexicon or _shipped_lexicon)
        self._triage = triage or {}
        self.requests: list[dict[str, Any]] = []

    async def create(self, **request: Any) -> Message:
        """The answer follows from `request` and the lexicon alone, but for what a scenario has it say."""
        self.requests.append(request)
        message = await self._interpreter.create(**request)
        (block,) = message.content
        if self._triage and isinstance(block, ToolUseBlock) and block.name == TRIAGE_TOOL:
            return replace(message, content=(replace(block, input={**block.input, **self._triage}),))
        return message

    async def close(self) -> None:
        """Nothing is open."""


class Captured(NamedTuple):
    """What reached the mocks. noted: the ticket of each note. unknown: what is wrong with calls that no mock knows."""

    sent: Sequence[Mapping[str, Any]]
    drafts: Sequence[Mapping[str, Any]]
    tickets: Sequence[CapturedTicket]
    noted: Sequence[str]
    calls: Sequence[ToolCall]
    unknown: Sequence[str]


@dataclass(frozen=True, slots=True)
class Mocks:
    """Those of one scenario, which keep what reached them. tools: notes their calls. turn: what is of this one."""

    tools: ToolMocks
    mail: MockGmailClient
    warranty: MockWarrantyAPIClient
    ticketing: MockTicketingClient
    turn: tuple[slice, ...] = (slice(None),) * len(Captured._fields)

    @property
    def in_all(self) -> Captured:
        """In all turns."""
        mail, tools, tickets = self.mail, self.tools, self.ticketing
        noted = [ticket_id for ticket_id, _ in tickets.notes.values()]
        return Captured(mail.sent_emails, mail.drafts, tickets.created_tickets, noted, tools.calls, tools.unknown)

    @property
    def captured(self) -> Captured:
        """In this turn."""
        return Captured._make(map(getitem, self.in_all, self.turn))

    def next_turn(self) -> Mocks:
        """The same, for which all until now was before."""
        return replace(self, turn=tuple([slice(len(each), None) for each in self.in_all]))

    def model(self, lexicon: LexiconSource) -> LanguageModel:
        """Our agent's model, which says of a mail what the scenario has it say."""
        triage = self.mail.test_case.input.triage
        return MockAnthropicClient(lexicon=lexicon, triage=triage) if triage else InstructionInterpreter(lexicon)

    @classmethod
    def of(cls, test_case: EvalTestCase, tools: ToolMocks | None = None) -> Mocks:
        """Fresh ones."""
        tools = tools or ToolMocks(test_case.input.mock_responses, test_case.servers)
        mail, warranty = MockGmailClient(test_case, tools), MockWarrantyAPIClient(test_case, tools)
        return cls(tools, mail, warranty, MockTicketingClient(test_case, tools))

    @classmethod
    def of_clients(cls, clients: Mapping[str, Any]) -> Mocks:
        """As `create_mock_clients` names them, on which somebody has run a scenario; each may have noted its calls."""
        tools = ToolMocks({})
        for noted in dict.fromkeys(client.tools for client in clients.values() if isinstance(client, _MockService)):
            tools.calls += noted.calls
            tools.unknown += noted.unknown
        return cls(tools, clients["gmail"], clients["warranty"], clients["ticketing"])


def _shipped_lexicon() -> Lexicon:
    return load_lexicon(built_in_path("instructions/lexicon") or Path("instructions/lexicon"))


def create_mock_clients(test_case: EvalTestCase) -> dict[str, Any]:
    """Fresh clients for one scenario: `gmail`, `warranty`, `ticketing`, `anthropic`."""
    mocks = Mocks.of(test_case)
    return {
        "gmail": mocks.mail,
        "warranty": mocks.warranty,
        "ticketing": mocks.ticketing,
        "anthropic": MockAnthropicClient(triage=test_case.input.triage),
    }

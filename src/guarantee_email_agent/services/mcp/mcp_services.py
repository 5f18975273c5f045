"""Look-ups, tickets and the mailbox behind the MCP servers of somebody else."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, Final, get_args

from guarantee_email_agent.config.mcp_server import ToolMapping
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.services.call_errors import MALFORMED_SUFFIX, MalformedAnswerError, forbid_repeat
from guarantee_email_agent.services.clients import LookUpClient, MailClient, TicketingClient
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.services.mcp.mapped_session import MappedSession, not_tried
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    MailMark,
    MarkedMail,
    Reply,
    SentState,
)
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError

SAMPLE_NUMBER: Final = "CHECK-00000000"
SAMPLE_DIGITS: Final = "00000000"
"""Where the numbers of a service are whole ones."""


class McpLookUp(LookUpClient):
    """timeout_s: seconds for one call.

    Its connection test looks nothing up: not every service takes a made-up number kindly.
    """

    def __init__(
        self,
        session: McpSession,
        timeout_s: float,
        tool: str,
        argument: str,
        clock: Clock,
        look_up: LookUp,
    ) -> None:
        super().__init__(session.name, session.name_of(tool), clock, look_up)
        self._session = session
        self._timeout_s = timeout_s
        self._own_tool = tool
        self._argument = argument

    async def _ask(self, number: str) -> dict[str, Any]:
        return await self._session.call(self._own_tool, {self._argument: number}, self._timeout_s)

    async def test_connection(self) -> bool:
        """Raises MCPConnectionError for a tool that is missing, or does not take the number."""
        await self._session.require({self._own_tool: frozenset({self._argument})})
        return True

    async def test_answer(self) -> str:
        if isinstance(self._session, MappedSession):
            return await self._test_mapped_answer(self._session)
        if self._look_up.is_of_warranties:  # the warranty system takes any number
            try:
                await self.look_up(SAMPLE_NUMBER)
            except IntegrationError as error:  # a service that refuses a number has its reasons, and is not to blame
                if error.code.endswith(MALFORMED_SUFFIX):
                    raise
        return ""

    async def _test_mapped_answer(self, session: MappedSession) -> str:
        tool = self._own_tool
        if not session.may_sample(tool):
            return not_tried(session, tool)
        given = session.sample(tool).get(self._argument)
        numbers = (SAMPLE_NUMBER, SAMPLE_DIGITS) if given is None else (given,)
        number = next((each for each in numbers if session.asks_for(tool, {self._argument: each})), None)
        if number is None:
            return f"{self.tool} was not tried: the sample is no whole number"
        answer = parse_look_up_answer(await self.look_up(number), self._look_up)
        known = "".join(f", {name}" for name in answer.facts)
        return f"{self.tool} answered a sample call: {answer.status}{known}"

    async def close(self) -> None:
        await self._session.close()


# Without an idempotency key a call repeated after a lost answer opens a second ticket: such a server is refused.
_TICKET_ARGUMENTS: Final = frozenset(
    {"serial_number", "warranty_status", "customer_email", "priority", "category", "idempotency_key"}
)


class McpTickets(TicketingClient):
    """timeout_s: seconds for one call."""

    def __init__(self, session: McpSession, timeout_s: float, clock: Clock) -> None:
        super().__init__(session.name, session.name_of("create_ticket"), clock)
        self._session = session
        self._timeout_s = timeout_s

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = dict(ticket_data)
        if not await self._session.offers("create_ticket", fields.keys(), self._timeout_s):
            # Ours has a place for what it does not know by name.
            further = {name: value for name, value in fields.items() if name not in _TICKET_ARGUMENTS}
            fields = {name: value for name, value in fields.items() if name in _TICKET_ARGUMENTS} | {"details": further}
        return await self._session.call("create_ticket", fields, self._timeout_s)

    async def _add_note(self, ticket_id: str, note: str, idempotency_key: str) -> bool:
        """False, and nothing happens, where the server's `add_note` takes other arguments, or it has none."""
        arguments = {"ticket_id": ticket_id, "note": note, "idempotency_key": idempotency_key}
        if not await self._session.offers("add_note", arguments.keys(), self._timeout_s):
            return False
        await self._session.call("add_note", arguments, self._timeout_s)
        return True

    async def test_connection(self) -> bool:
        """Raises MCPConnectionError, and IntegrationError where the server answers but its database does not."""
        await self._session.require({"create_ticket": _TICKET_ARGUMENTS})
        if "find_ticket" in self._session.tools:
            await self._session.call("find_ticket", {"idempotency_key": "connection-test"}, self._timeout_s)
        return True

    async def close(self) -> None:
        await self._session.close()


class MappedTickets(McpTickets):
    """On a server whose tools are mapped. The mapping says what keeps a ticket from being opened twice."""

    def __init__(
        self, session: MappedSession, timeout_s: float, clock: Clock, mappings: Mapping[str, ToolMapping]
    ) -> None:
        super().__init__(session, timeout_s, clock)
        self._mapped = session
        self._mappings = mappings

    async def _create(self, ticket_data: Mapping[str, Any]) -> dict[str, Any]:
        if "find_ticket" in self._mappings:
            found = await self._find(str(ticket_data["idempotency_key"]))
            if found is not None:
                return {"ticket_id": found, "status": "existing"}
        if self._mappings["create_ticket"].may_duplicate:
            with forbid_repeat():
                return await self._mapped.call("create_ticket", ticket_data, self._timeout_s)
        return await self._mapped.call("create_ticket", ticket_data, self._timeout_s)

    async def test_connection(self) -> bool:
        await self._session.require({"create_ticket": frozenset()})
        return True

    async def test_answer(self) -> str:
        if "find_ticket" not in self._mappings:
            return ""
        if not self._mapped.may_sample("find_ticket"):
            return not_tried(self._mapped, "find_ticket")
        found = await self._find(self._mapped.sample("find_ticket").get("idempotency_key", "connection-test"))
        return f"{self._mapped.name_of('find_ticket')} answered a sample call: {found or 'no such ticket'}"

    async def _find(self, key: str) -> str | None:
        """The ticket that holds the key: a search may find others that resemble it."""
        found = await self._mapped.call("find_ticket", {"idempotency_key": key}, self._timeout_s)
        holds_key = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
        return next(
            (ticket["ticket_id"] for ticket in found["tickets"] if holds_key.search(ticket["idempotency_key"])), None
        )


_REPLY_ARGUMENTS: Final = frozenset({"to", "subject", "body", "message_id", "in_reply_to", "references", "headers"})
READ_CALLS: Final = {
    "list_unprocessed": frozenset({"limit", "received_since", "skip_seen"}),
    "read_raw": frozenset({"id", "max_bytes"}),
    "tally": frozenset({"received_since", "skip_seen"}),
    "wait_for_mail": frozenset({"timeout_s"}),
}
CALLS: Final = {
    **READ_CALLS,
    "send_reply": _REPLY_ARGUMENTS,
    "find_sent": frozenset({"message_id", "wait_s"}),
    "mark": frozenset({"id", "outcome"}),
}
DRAFT_CALLS: Final = {"save_draft": _REPLY_ARGUMENTS, "find_draft": frozenset({"message_id"})}


class McpMailbox(MailClient):
    """timeout_s: seconds for one call, beyond what the call is to wait.

    read_only: the connection test only counts the mails, since a server's own test may make folders. A server that is
    only read from need not offer more.
    """

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float, *, read_only: bool = False) -> None:
        super().__init__(session.name, clock)
        self._session = session
        self._timeout_s = timeout_s
        self._read_only = read_only
        self._is_connected = False

    async def _connect(self) -> None:
        """Raises MCPConnectionError where the server lacks a tool, or an argument of one."""
        if not self._is_connected:
            await self._session.require(READ_CALLS if self._read_only else CALLS)
            self._is_connected = True

    async def close(self) -> None:
        await self._session.close()

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        return [
            self._entry(each) for each in await self._messages("list_unprocessed", limit=limit, **asdict(inbox_filter))
        ]

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        raw = (await self._call("read_raw", {"id": mail_id, "max_bytes": max_bytes})).get("raw")
        try:
            return base64.b64decode(raw if isinstance(raw, str) else "?", validate=True)
        except (binascii.Error, ValueError):
            raise self._malformed("read_raw", "raw") from None

    async def find_mail(self, message_id: str) -> str | None:
        await self._need("find_mail", {"message_id"}, "find a mail by its Message-ID. Save the mail as a file")
        found = (await self._call("find_mail", {"message_id": message_id})).get("id")
        if found is not None and not isinstance(found, str):
            raise self._malformed("find_mail", "id")
        return found

    async def _list_mails(self) -> list[MarkedMail]:
        await self._need("list_mails", (), "list every mail of its inbox. Do it in the mailbox itself")
        return [self._marked(each) for each in await self._messages("list_mails")]

    async def unmark(self, mail_id: str) -> None:
        await self._need("unmark", {"id"}, "take a mark off. Do it in the mailbox itself")
        await self._call("unmark", {"id": mail_id})

    async def list_sent(self, *_: object) -> list[Any]:  # no server has it
        raise self._unsupported("list what was sent. Do it in the mailbox itself")

    async def find_owner(self) -> str | None:
        await self._connect()
        if not await self._session.offers("find_owner", frozenset(), self._timeout_s):
            return None
        return self._owner("find_owner", await self._session.call("find_owner", {}, self._timeout_s))

    async def claim(self, ledger: str, *, take_over: bool = False) -> str | None:
        await self._connect()
        arguments = {"ledger": ledger, "take_over": take_over}
        if not await self._session.offers("claim_mailbox", arguments.keys(), self._timeout_s):
            return None
        return self._owner("claim_mailbox", await self._session.call("claim_mailbox", arguments, self._timeout_s))

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        """True for a server without this tool."""
        if not await self._session.offers("is_waiting", frozenset(), self._timeout_s):
            return True
        waiting = (await self._call("is_waiting", {"id": mail_id, "skip_seen": skip_seen})).get("waiting")
        if not isinstance(waiting, bool):
            raise self._malformed("is_waiting", "waiting")
        return waiting

    async def send(self, reply: Reply) -> dict[str, Any]:
        """`{"message_id", "status": "sent"|"already_sent"}`."""
        with self._sending() as circuit:
            return await self._call("send_reply", _arguments(reply), circuit=circuit)

    async def save_draft(self, reply: Reply) -> dict[str, Any]:
        """`{"message_id", "status": "saved"|"already_saved"}`."""
        with forbid_repeat():
            return await self._call("save_draft", _arguments(reply))

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        answer = await self._call("find_sent", {"message_id": message_id, "wait_s": wait_s}, wait_s)
        state: SentState = self._state("find_sent", answer, get_args(SentState))
        return state

    async def find_draft(self, message_id: str) -> DraftState:
        answer = await self._call("find_draft", {"message_id": message_id})
        state: DraftState = self._state("find_draft", answer, get_args(DraftState))
        return state

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        await self._call("mark", {"id": mail_id, "outcome": outcome})

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        answer = await self._call("tally", asdict(inbox_filter))
        for kind in ("unprocessed", "too_old", "left_alone"):  # what is not counted is not none
            if type(answer.get(kind)) is not int:
                raise self._malformed("tally", kind)
        return {name: count for name, count in answer.items() if isinstance(count, int)}

    async def wait_for_mail(self, timeout_s: float) -> bool:
        """Not through the circuit: as the one probe of a service that was down it would hold up all the others."""
        await self._connect()
        answer = await self._session.call("wait_for_mail", {"timeout_s": timeout_s}, self._timeout_s + timeout_s)
        return answer.get("changed") is True

    async def test_connection(self, drafts: bool = False) -> bool:
        """Inbox, and sending or drafts where the server can try them; else the inbox.

        Raises MCPConnectionError where there have to be drafts and the server lacks a tool for them.
        """
        await self._connect()
        if drafts:
            await self._session.require(DRAFT_CALLS)
        if "test_connection" in self._session.tools and not self._read_only:
            await self._session.call("test_connection", {"drafts": True} if drafts else {}, self._timeout_s)
        else:
            await self._session.call("tally", asdict(ANY_MAIL), self._timeout_s)
        return True

    async def _call(
        self, tool: str, arguments: Mapping[str, Any], wait_s: float = 0.0, circuit: CircuitBreaker | None = None
    ) -> dict[str, Any]:
        async def call() -> dict[str, Any]:
            await self._connect()
            return await self._session.call(tool, arguments, self._timeout_s + wait_s)

        return await self._guarded(call, circuit)

    async def _messages(self, tool: str, **arguments: Any) -> list[object]:
        messages = (await self._call(tool, arguments)).get("messages")
        if not isinstance(messages, list):
            raise self._malformed(tool, "messages")
        return messages

    def _state(self, tool: str, answer: Mapping[str, Any], known: tuple[Any, ...]) -> Any:
        if (state := answer.get("state")) not in known:
            raise self._malformed(tool, "state")
        return state

    async def _need(self, tool: str, arguments: Collection[str], what: str) -> None:
        """Raises IntegrationError `mail_unsupported` where the server lacks a tool. what: that it is for."""
        if not await self._session.offers(tool, frozenset(arguments), self._timeout_s):
            raise self._unsupported(what)

    def _unsupported(self, what: str) -> IntegrationError:
        return IntegrationError(f"{self._name}: this server cannot {what}", f"{self._name}_unsupported")

    def _entry(self, message: object) -> InboxEntry:
        match message:
            case {"id": str(mail_id), "size": int(size), **others}:
                received = others.get("received")
                return InboxEntry(mail_id, size, float(received) if isinstance(received, int | float) else 0.0)
        raise self._malformed("list_unprocessed", "message")

    def _marked(self, message: object) -> MarkedMail:
        match message:
            case {"id": str(mail_id), **others}:
                mark: MailMark | None = next((each for each in get_args(MailMark) if each == others.get("mark")), None)
                wrong = others.get("wrong")
                return MarkedMail(mail_id, mark, wrong if isinstance(wrong, bool) else None)
        raise self._malformed("list_mails", "message")

    def _owner(self, tool: str, answer: Mapping[str, Any]) -> str | None:
        owner = answer.get("ledger")
        if owner is not None and not isinstance(owner, str):
            raise self._malformed(tool, "ledger")
        return owner

    def _malformed(self, tool: str, field: str) -> IntegrationError:
        return MalformedAnswerError(self._session.name, tool, f"has no usable {field}")


def _arguments(reply: Reply) -> dict[str, Any]:
    """Without the id of the thread, which the headers say."""
    return {name: value for name, value in asdict(reply).items() if name != "thread_id"}

"""The mailbox behind an MCP server that has the tools of ours: raw mails, and proof of what was sent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, Final, get_args

from guarantee_email_agent.services.call_errors import MalformedAnswerError, forbid_repeat
from guarantee_email_agent.services.clients import MailClient
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
        messages = (await self._call("list_unprocessed", {"limit": limit, **asdict(inbox_filter)})).get("messages")
        if not isinstance(messages, list):
            raise self._malformed("list_unprocessed", "messages")
        return [self._entry(message) for message in messages]

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
        messages = (await self._call("list_mails", {})).get("messages")
        if not isinstance(messages, list):
            raise self._malformed("list_mails", "messages")
        return [self._marked(message) for message in messages]

    async def unmark(self, mail_id: str) -> None:
        await self._need("unmark", {"id"}, "take a mark off. Do it in the mailbox itself")
        await self._call("unmark", {"id": mail_id})

    async def list_sent(self, since: float, most_bytes: int) -> list[bytes]:  # noqa: ARG002 - no server has it
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
        known: SentState | None = next((state for state in get_args(SentState) if state == answer.get("state")), None)
        if known is None:
            raise self._malformed("find_sent", "state")
        return known

    async def find_draft(self, message_id: str) -> DraftState:
        answer = await self._call("find_draft", {"message_id": message_id})
        known: DraftState | None = next((state for state in get_args(DraftState) if state == answer.get("state")), None)
        if known is None:
            raise self._malformed("find_draft", "state")
        return known

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        await self._call("mark", {"id": mail_id, "outcome": outcome})

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        answer = await self._call("tally", asdict(inbox_filter))
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

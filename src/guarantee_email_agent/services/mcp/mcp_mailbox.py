"""The mailbox behind an MCP server that has the tools of ours: raw mails, and proof of what was sent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, get_args

from guarantee_email_agent.services.call_errors import MalformedAnswerError, forbid_repeat
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


class McpMailbox:
    """An AgentMailbox, and a MailboxConnection. timeout_s: seconds for one call, beyond what the call is to wait.

    read_only: the connection test only counts the mails, since a server's own test may make folders. A server that is
    only read from need not offer more.
    """

    def __init__(self, session: McpSession, timeout_s: float, *, read_only: bool = False) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._read_only = read_only
        self._is_connected = False

    async def connected(self) -> McpMailbox:
        """Raises MCPConnectionError where the server lacks a tool, or an argument of one."""
        if not self._is_connected:
            await self._session.require(READ_CALLS if self._read_only else CALLS)
            self._is_connected = True
        return self

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
        if not await self._session.offers("find_mail", {"message_id"}, self._timeout_s):
            raise IntegrationError(
                f"{self._session.name}: this server cannot find a mail by its Message-ID. Save the mail as a file",
                f"{self._session.name}_unsupported",
            )
        found = (await self._call("find_mail", {"message_id": message_id})).get("id")
        if found is not None and not isinstance(found, str):
            raise self._malformed("find_mail", "id")
        return found

    async def list_mails(self) -> list[MarkedMail] | None:
        """Every mail of the inbox with its mark; None for a server that cannot tell."""
        if not await self._session.offers("list_mails", frozenset(), self._timeout_s):
            return None
        messages = (await self._call("list_mails", {})).get("messages")
        if not isinstance(messages, list):
            raise self._malformed("list_mails", "messages")
        return [self._marked(message) for message in messages]

    async def unmark(self, mail_id: str) -> bool:
        """Take the mark off a mail, so that it is listed again. False for a server that cannot."""
        if not await self._session.offers("unmark", {"id"}, self._timeout_s):
            return False
        await self._call("unmark", {"id": mail_id})
        return True

    async def list_sent(self, since: float, most_bytes: int) -> None:  # noqa: ARG002 - no server of others has it
        return None

    async def find_owner(self) -> str | None:
        """The ledger that the mailbox is served with; None where it has none, or the server cannot tell."""
        if not await self._session.offers("find_owner", frozenset(), self._timeout_s):
            return None
        return self._owner("find_owner", await self._call("find_owner", {}))

    async def claim(self, ledger: str, *, take_over: bool = False) -> str | None:
        """Mark the mailbox as served with a ledger, unless another has it; whose it is then. None: as `find_owner`."""
        arguments = {"ledger": ledger, "take_over": take_over}
        if not await self._session.offers("claim_mailbox", arguments.keys(), self._timeout_s):
            return None
        return self._owner("claim_mailbox", await self._call("claim_mailbox", arguments))

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
        return await self._call_with_reply("send_reply", reply)

    async def save_draft(self, reply: Reply) -> dict[str, Any]:
        """`{"message_id", "status": "saved"|"already_saved"}`."""
        return await self._call_with_reply("save_draft", reply)

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
        return (await self._call("wait_for_mail", {"timeout_s": timeout_s}, timeout_s)).get("changed") is True

    async def test_connection(self, drafts: bool = False) -> bool:
        """Inbox, and sending or drafts where the server can try them; else the inbox.

        Raises MCPConnectionError where there have to be drafts and the server lacks a tool for them.
        """
        if drafts:
            await self._session.require(DRAFT_CALLS)
        if "test_connection" in self._session.tools and not self._read_only:
            await self._call("test_connection", {"drafts": True} if drafts else {})
        else:
            await self.count_by_outcome()
        return True

    async def _call_with_reply(self, tool: str, reply: Reply) -> dict[str, Any]:
        arguments = asdict(reply)
        del arguments["thread_id"]  # the headers say it
        with forbid_repeat():
            return await self._call(tool, arguments)

    async def _call(self, tool: str, arguments: Mapping[str, Any], wait_s: float = 0.0) -> dict[str, Any]:
        return await self._session.call(tool, arguments, self._timeout_s + wait_s)

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
                return MarkedMail(mail_id, mark)
        raise self._malformed("list_mails", "message")

    def _owner(self, tool: str, answer: Mapping[str, Any]) -> str | None:
        owner = answer.get("ledger")
        if owner is not None and not isinstance(owner, str):
            raise self._malformed(tool, "ledger")
        return owner

    def _malformed(self, tool: str, field: str) -> IntegrationError:
        return MalformedAnswerError(self._session.name, tool, f"has no usable {field}")

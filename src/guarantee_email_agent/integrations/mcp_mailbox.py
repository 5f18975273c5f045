"""The mailbox by the tools of our own mail server: raw mails, replies with our headers, proof of what was sent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, get_args

from guarantee_email_agent.integrations.call_errors import forbid_repeat, malformed_error
from guarantee_email_agent.integrations.mcp_session import McpSession
from guarantee_email_agent.integrations.ports import InboxEntry, MailMark, Reply, SentState
from guarantee_email_agent.utils.errors import IntegrationError

CALLS: Final = {
    "list_unprocessed": frozenset({"limit"}),
    "read_raw": frozenset({"id", "max_bytes"}),
    "send_reply": frozenset({"to", "subject", "body", "message_id", "in_reply_to", "references", "headers"}),
    "find_sent": frozenset({"message_id", "wait_s"}),
    "mark": frozenset({"id", "outcome"}),
    "tally": frozenset[str](),
    "wait_for_mail": frozenset({"timeout_s"}),
}


class McpMailbox:
    """A Mailbox. timeout_s: seconds for one call, beyond what the call itself is to wait."""

    def __init__(self, session: McpSession, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    async def list_unprocessed(self, limit: int = 100) -> list[InboxEntry]:
        messages = (await self._call("list_unprocessed", {"limit": limit})).get("messages")
        if not isinstance(messages, list):
            raise self._malformed("list_unprocessed", "messages")
        return [self._entry(message) for message in messages]

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        raw = (await self._call("read_raw", {"id": mail_id, "max_bytes": max_bytes})).get("raw")
        try:
            return base64.b64decode(raw if isinstance(raw, str) else "?", validate=True)
        except (binascii.Error, ValueError):
            raise self._malformed("read_raw", "raw") from None

    async def send(self, reply: Reply) -> dict[str, Any]:
        """`{"message_id", "status": "sent"|"already_sent"}`."""
        arguments = asdict(reply)
        del arguments["thread_id"]  # the headers say it
        with forbid_repeat():
            return await self._call("send_reply", arguments)

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        answer = await self._call("find_sent", {"message_id": message_id, "wait_s": wait_s}, wait_s)
        known: SentState | None = next((state for state in get_args(SentState) if state == answer.get("state")), None)
        if known is None:
            raise self._malformed("find_sent", "state")
        return known

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        await self._call("mark", {"id": mail_id, "outcome": outcome})

    async def count_by_outcome(self) -> dict[str, int]:
        answer = await self._call("tally", {})
        return {name: count for name, count in answer.items() if isinstance(count, int)}

    async def wait_for_mail(self, timeout_s: float) -> bool:
        return (await self._call("wait_for_mail", {"timeout_s": timeout_s}, timeout_s)).get("changed") is True

    async def test_connection(self) -> bool:
        """Inbox and sending where the server can try both; else the inbox."""
        await self._call("test_connection" if "test_connection" in self._session.tools else "tally", {})
        return True

    async def _call(self, tool: str, arguments: Mapping[str, Any], wait_s: float = 0.0) -> dict[str, Any]:
        return await self._session.call(tool, arguments, self._timeout_s + wait_s)

    def _entry(self, message: object) -> InboxEntry:
        match message:
            case {"id": str(mail_id), "size": int(size)}:
                return InboxEntry(mail_id, size)
        raise self._malformed("list_unprocessed", "message")

    def _malformed(self, tool: str, field: str) -> IntegrationError:
        return malformed_error(self._session.name, tool, f"has no usable {field}")

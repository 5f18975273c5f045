"""The mailbox behind its MCP server, whichever of two kinds that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guarantee_email_agent.integrations.gmail_dialect import GMAIL_CALLS, GmailDialect
from guarantee_email_agent.integrations.mail_tools import CALLS, MailDialect, MailTools
from guarantee_email_agent.integrations.mcp_session import McpSession
from guarantee_email_agent.integrations.ports import InboxEntry, Outcome, SentState
from guarantee_email_agent.integrations.service_circuit import ServiceCircuit
from guarantee_email_agent.utils.clock import Clock


class MailClient:
    """A MailPort and an InboxPort. timeout_s: seconds for one call, beyond what the call itself is to wait.

    Inbox and sending have a circuit each: an SMTP server that is down says nothing about the inbox.
    """

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        self._session = session
        self._clock = clock
        self._timeout_s = timeout_s
        self._spoken: MailDialect | None = None
        self._inbox_circuit = ServiceCircuit(session.name, clock)
        self._sending_circuit = ServiceCircuit(session.name, clock)

    async def list_unprocessed(self, limit: int = 100) -> list[InboxEntry]:
        async def call() -> list[InboxEntry]:
            return await (await self._dialect()).list_unprocessed(limit)

        return await self._inbox_circuit.call(call)

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        async def call() -> bytes:
            return await (await self._dialect()).read_raw(mail_id, max_bytes)

        return await self._inbox_circuit.call(call)

    async def send_email(
        self,
        to: str,
        subject: str,
        body: str,
        thread_id: str | None = None,
        *,
        message_id: str | None = None,
        in_reply_to: str | None = None,
        references: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """`{"message_id", "status": "sent"|"already_sent"}`. An `uncertain` error is not `retryable`."""

        async def call() -> dict[str, Any]:
            return await (await self._dialect()).send_email(
                to,
                subject,
                body,
                thread_id,
                message_id=message_id,
                in_reply_to=in_reply_to,
                references=references,
                headers=headers,
            )

        return await self._sending_circuit.call(call)

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:
        async def call() -> SentState:
            return await (await self._dialect()).find_sent(message_id, wait_s)

        return await self._inbox_circuit.call(call)

    async def mark(self, mail_id: str, outcome: Outcome) -> None:
        async def call() -> None:
            await (await self._dialect()).mark(mail_id, outcome)

        await self._inbox_circuit.call(call)

    async def tally(self) -> dict[str, int]:
        async def call() -> dict[str, int]:
            return await (await self._dialect()).tally()

        return await self._inbox_circuit.call(call)

    async def wait_for_mail(self, timeout_s: float) -> bool:
        """Not through the circuit: as the one probe of a service that was down it would hold up all the others."""
        return await (await self._dialect()).wait_for_mail(timeout_s)

    async def test_connection(self) -> bool:
        """True, or MCPConnectionError; IntegrationError where the server answers but the mailbox behind it does not."""
        await (await self._dialect()).test_connection()
        return True

    async def close(self) -> None:
        await self._session.close()

    async def _dialect(self) -> MailDialect:
        """By the tools that the server offers. Raises MCPConnectionError where they are neither kind's."""
        if self._spoken is None:
            await self._session.start()
            if self._session.tools.issuperset(GMAIL_CALLS):
                self._session.require(GMAIL_CALLS)
                self._spoken = GmailDialect(self._session, self._clock, self._timeout_s)
            else:
                self._session.require(CALLS)
                self._spoken = MailTools(self._session, self._timeout_s)
        return self._spoken

"""The stores behind our own MCP servers where a scenario takes their place: its one mail, and the tickets created."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, Final, Literal

from guarantee_email_agent.eval.mocks import MockTicketingClient, send_email_arguments
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import run_without_event_loop
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

_WRITTEN_HERE: Final = frozenset({"from", "to", "subject", "date", "message-id", "mime-version"})
_SENDER: Final = "support@example.com"
_CREATED_AT: Final = "2026-01-01T00:00:00Z"


def mail_as_json(test_case: EvalTestCase) -> dict[str, Any]:
    """Every key is there; `to` is None where the scenario names none."""
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
        received = test_case.input.email.received
        try:
            self._received = datetime.fromisoformat(received).timestamp()
        except ValueError:
            self._received = 0.0

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

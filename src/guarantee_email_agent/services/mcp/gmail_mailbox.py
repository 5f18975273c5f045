"""The mailbox as the Gmail server of npm, `@gongrzhe/server-gmail-autoauth-mcp`, offers it. Second choice.

It answers in prose, gives no raw mail (so no Message-ID, and no header that marks an automatic mail), and sets neither
Message-ID nor Auto-Submitted on what it sends: a reply cannot be proved after a crash. docs/mcp-servers.md has what
follows from that. Facts about it: version 1.1.11.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

from guarantee_email_agent.services.call_errors import (
    MalformedAnswerError,
    classify_message,
    forbid_repeat,
    service_error,
)
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    MailMark,
    Reply,
    SentState,
)
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError

GMAIL_CALLS: Final = {
    "search_emails": frozenset({"query", "maxResults"}),
    "read_email": frozenset({"messageId"}),
    "send_email": frozenset({"to", "subject", "body", "threadId"}),
    "modify_email": frozenset({"messageId", "addLabelIds"}),
    "get_or_create_label": frozenset({"name"}),
}

MAX_LISTED: Final = 50  # it fetches every mail found at the same time, which Gmail allows to some number only
LABELS: Final[Mapping[MailMark, str]] = {
    outcome: f"warranty-agent-{outcome.replace('_', '-')}" for outcome in get_args(MailMark)
}
DOMAIN: Final = "gmail-mcp-server.invalid"
"""Of the Message-IDs that stand in for the real ones, which the server leaves out (RFC 2606)."""

_UNMARKED: Final = " ".join(["in:inbox", *(f"-label:{label}" for label in LABELS.values())])
_FAILURE: Final = "Error: "  # an answer like any other, not marked as an error
_ID: Final = r"[0-9A-Za-z_-]{1,64}"
_FOUND: Final = re.compile(rf"^ID: ({_ID})\nSubject: .*\nFrom: .*\nDate: .*$", re.MULTILINE)
_LABEL_ID: Final = re.compile(rf"^ID: ({_ID})$", re.MULTILINE)
_MAIL: Final = re.compile(
    rf"Thread ID: (?P<thread>{_ID})\nSubject: (?P<subject>.*)\nFrom: (?P<sender>.*)\nTo: (?P<to>.*)\n"
    r"Date: (?P<date>.*)\n\n(?P<body>(?s:.*))"
)
_HTML_NOTE: Final = "[Note: This email is HTML-formatted. Plain text version not available.]\n\n"
_ATTACHMENTS: Final = "\n\nAttachments ("
_ATTACHMENT: Final = re.compile(r"- (?P<name>.*) \((?P<type>[^\s,;()]*), \d+ KB, ID: \S+\)")
_MIME_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+")
_OCTETS: Final = "application/octet-stream"
_STAND_IN: Final = re.compile(rf"<({_ID})\.({_ID})@{re.escape(DOMAIN)}>")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]+")


class GmailMailbox:
    """A Mailbox. timeout_s: seconds for one call."""

    def __init__(self, session: McpSession, clock: Clock, timeout_s: float) -> None:
        self._session = session
        self._clock = clock
        self._timeout_s = timeout_s
        self._label_ids: dict[MailMark, str] = {}

    async def list_unprocessed(self, limit: int = 100, inbox_filter: InboxFilter = ANY_MAIL) -> list[InboxEntry]:
        """The latest ones, since the server cannot turn a page; the oldest of them first."""
        found = await self._search(_to_answer("after", inbox_filter), min(limit, MAX_LISTED))
        return [InboxEntry(mail_id, 0) for mail_id in reversed(found)]

    async def find_mail(self, message_id: str) -> str | None:
        return next(iter(await self._search(f'rfc822msgid:"{message_id.strip("<>")}"', 1)), None)

    async def list_mails(self) -> None:
        """There is no tool for it."""

    async def unmark(self, mail_id: str) -> bool:  # noqa: ARG002 - no way to do it
        return False

    async def find_owner(self) -> None:
        """There is no place for it."""

    async def claim(self, ledger: str, *, take_over: bool = False) -> None:
        """As `find_owner`."""

    async def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:  # noqa: ARG002 - no way to ask
        return True

    async def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        """A mail rebuilt from the server's answer, with a Message-ID that stands in for the real one."""
        found = _MAIL.fullmatch(await self._call("read_email", {"messageId": mail_id}))
        if found is None or not re.fullmatch(_ID, mail_id):
            raise MalformedAnswerError(self._session.name, "read_email", "is not as expected")
        raw = _rebuild_mail(mail_id, found)
        if len(raw) > max_bytes:
            raise self._error("too_large", f"the mail has {len(raw)} bytes; agent.max_mail_bytes allows {max_bytes}")
        return raw

    async def send(self, reply: Reply) -> dict[str, Any]:
        """Gmail puts the reply into its thread. The server takes no headers; a stand-in for a Message-ID stays here."""
        if any(map(_CONTROL.search, (reply.to, reply.subject))):  # the server would make headers of it
            raise self._error("invalid_argument", "recipient or subject holds a control character")
        arguments: dict[str, Any] = {"to": [reply.to], "subject": reply.subject, "body": reply.body}
        stand_in = _STAND_IN.fullmatch(reply.in_reply_to)
        if thread := reply.thread_id or (stand_in[2] if stand_in else None):
            arguments["threadId"] = thread
        with forbid_repeat():
            sent = await self._call("send_email", arguments)
        return {"message_id": sent.rpartition("ID: ")[2].strip(), "status": "sent"}

    async def find_sent(self, message_id: str, wait_s: float = 0.0) -> SentState:  # noqa: ARG002 - nothing to look for
        return "unknown"

    async def save_draft(self, reply: Reply) -> dict[str, Any]:  # noqa: ARG002 - refused at the connection test
        raise self._no_drafts()

    async def find_draft(self, message_id: str) -> DraftState:  # noqa: ARG002 - nothing to look for
        return "unknown"

    async def mark(self, mail_id: str, outcome: MailMark) -> None:
        label = await self._label_id(outcome)
        try:
            await self._call("modify_email", {"messageId": mail_id, "addLabelIds": [label]})
        except IntegrationError:
            self._label_ids.pop(outcome, None)  # the label may have been deleted
            raise

    async def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> dict[str, int]:
        """Counts up to MAX_LISTED; that number means so many or more."""
        queries: dict[str, str] = {
            "unprocessed": _to_answer("after", inbox_filter),
            "left_alone": f"{_UNMARKED} {'{is:starred is:read}' if inbox_filter.skip_seen else 'is:starred'}",
            **{mark: f"in:inbox label:{label}" for mark, label in LABELS.items()},
        }
        if inbox_filter.received_since:
            queries["too_old"] = _to_answer("before", inbox_filter)
        return {name: len(await self._search(query, MAX_LISTED)) for name, query in queries.items()}

    async def wait_for_mail(self, timeout_s: float) -> bool:
        """The server sends no notices, so the inbox counts as changed once the time is over."""
        await self._clock.sleep(timeout_s)
        return True

    async def test_connection(self, drafts: bool = False) -> bool:
        if drafts:
            raise self._no_drafts()
        await self._search("in:inbox", 1)
        return True

    async def _search(self, query: str, limit: int) -> list[str]:
        text = await self._call("search_emails", {"query": query, "maxResults": limit})
        if not (found := _FOUND.findall(text)) and text.strip():
            raise MalformedAnswerError(self._session.name, "search_emails", "is not as expected")
        return list(dict.fromkeys(found))

    async def _label_id(self, outcome: MailMark) -> str:
        if outcome not in self._label_ids:
            found = _LABEL_ID.search(await self._call("get_or_create_label", {"name": LABELS[outcome]}))
            if found is None:
                raise MalformedAnswerError(self._session.name, "get_or_create_label", "has no ID")
            self._label_ids[outcome] = found[1]
        return self._label_ids[outcome]

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        text = await self._session.call_for_text(tool, arguments, self._timeout_s)
        if not text.startswith(_FAILURE):
            return text
        self._session.log_response(tool, text)
        message = text.removeprefix(_FAILURE)
        if re.search(r"not found\b", message, re.IGNORECASE):
            raise self._error("not_found", f"{tool}: Gmail has no such mail or label (any more)")
        if "address is invalid" in message:
            raise self._error("rejected", f"{tool}: the recipient's address is invalid")
        raise service_error(self._session.name, tool, classify_message(message))

    def _no_drafts(self) -> MCPConnectionError:
        name = self._session.name
        return MCPConnectionError(
            f"{name}: this server writes drafts without our headers, and none can be found again. Reach the mailbox by "
            "IMAP for drafts (docs/mcp-servers.md), or set agent.mode to observe or answer",
            f"{name}_tools_missing",
        )

    def _error(self, kind: str, message: str) -> IntegrationError:
        name = self._session.name
        return IntegrationError(f"{name}: {message}", f"{name}_{kind}")


def _to_answer(side: Literal["after", "before"], inbox_filter: InboxFilter) -> str:
    """The query for mails that nothing but their age keeps from being answered, on one side of `received_since`."""
    terms = [_UNMARKED, "-is:starred"]
    if inbox_filter.skip_seen:
        terms.append("is:unread")
    if inbox_filter.received_since:
        terms.append(f"{side}:{int(inbox_filter.received_since)}")
    return " ".join(terms)


def _rebuild_mail(mail_id: str, found: re.Match[str]) -> bytes:
    """RFC 5322 with headers in UTF-8 (RFC 6532), since the server hands them out decoded."""
    body, attachments = _split_attachments(found["body"])
    headers = {
        "Message-ID": f"<{mail_id}.{found['thread']}@{DOMAIN}>",
        "Date": found["date"],
        "From": found["sender"],
        "To": found["to"],
        "Subject": found["subject"],
        "MIME-Version": "1.0",
    }
    lines = [f"{name}: {_CONTROL.sub(' ', value).strip()}" for name, value in headers.items() if value.strip()]
    kind = "plain"
    if body.startswith(_HTML_NOTE):
        kind, body = "html", body.removeprefix(_HTML_NOTE)
    text = [f"Content-Type: text/{kind}; charset=utf-8", "Content-Transfer-Encoding: 8bit", "", body]
    if attachments:
        boundary = hashlib.sha256(found[0].encode("utf-8", "surrogatepass")).hexdigest()
        lines.append(f'Content-Type: multipart/mixed; boundary="{boundary}"')
        lines += ["", f"--{boundary}", *text]
        for name, mime_type in attachments:
            disposition = f"attachment; filename*=utf-8''{quote(name, safe='', errors='replace')}"
            lines += [f"--{boundary}", f"Content-Type: {mime_type}", f"Content-Disposition: {disposition}", "", ""]
        text = [f"--{boundary}--", ""]
    return "\r\n".join([*lines, *text]).encode("utf-8", "replace")


def _split_attachments(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The body, and name and type of each attachment: the server lists them below, with ids like serial numbers."""
    body, _, listed = text.rpartition(_ATTACHMENTS)
    count, _, lines = listed.partition("):\n")
    found = [_ATTACHMENT.fullmatch(line) for line in lines.split("\n")]
    if not body or count != str(len(found)) or None in found:
        return text, []  # what looks like a list is the customer's own text
    return body, [(one["name"], one["type"] if _MIME_TYPE.fullmatch(one["type"]) else _OCTETS) for one in found if one]

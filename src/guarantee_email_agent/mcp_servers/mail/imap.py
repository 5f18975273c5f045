"""An IMAP folder as the mailbox, and a Sent folder with the proof of what was sent; replies leave over SMTP.

How a reply is proved to have been sent (`sent_copy`):

- `self`: one SMTP transaction with two recipients, the customer and our own address. The server takes both or none, so
  the copy in our inbox proves the customer's. A copy is filed into Sent as soon as it is seen, and never listed.
- `server`: the server files what it sends itself, as Gmail and Exchange do.
- `append`: we put a copy into Sent after the server took the reply. Between the two a crash leaves no proof, so an
  absent copy is `unknown`.

What is believed of a copy in the inbox, where anybody can put anything: it is filed into Sent, unseen by people, only
if it has our address in From and a proof under our key over its Message-ID, recipient and text (see `compose.py`). As
the proof that a reply was sent, a mail from our address with exactly the reply's Message-ID is enough: that id is keyed
and unguessable, nobody but us knows it before the reply leaves, and the customer, who learns it then, can only confirm
what is true. So a copy that a gateway rewrote still counts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import inf
from typing import Any, Final, Literal, NamedTuple

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, IMAPClientReadOnlyError

from guarantee_email_agent.integrations.ports import (
    ANY_MAIL,
    DraftState,
    InboxEntry,
    InboxFilter,
    MailMark,
    MarkedMail,
    Reply,
    SentState,
)
from guarantee_email_agent.mcp_servers.command_line import log_diagnostic
from guarantee_email_agent.mcp_servers.mail.compose import compose, envelope_address
from guarantee_email_agent.mcp_servers.mail.imap_idle import ImapIdle
from guarantee_email_agent.mcp_servers.mail.imap_owner import ImapOwner
from guarantee_email_agent.mcp_servers.mail.imap_session import ImapSession
from guarantee_email_agent.mcp_servers.mail.mail_server import MailServer, format_response
from guarantee_email_agent.mcp_servers.mail.mail_store import KEYWORDS, MailListing, check_size, mail_not_found
from guarantee_email_agent.mcp_servers.mail.send_attempts import SendAttempts
from guarantee_email_agent.mcp_servers.mail.sent_copies import find_copies, find_own_copies, has_copy, move_to_folder
from guarantee_email_agent.mcp_servers.mail.smtp import SmtpSender
from guarantee_email_agent.mcp_servers.mail.special_folder import DraftsFolder, SentFolder
from guarantee_email_agent.mcp_servers.tool_error import ToolError

_UNMARKED: Final = [part for name in KEYWORDS.values() for part in (b"UNKEYWORD", name.encode())]
_UNTOUCHED: Final = [*_UNMARKED, b"UNANSWERED", b"UNDRAFT", b"UNDELETED", b"UNFLAGGED"]
_ID: Final = re.compile(r"(\d{1,10})-(\d{1,10})", re.ASCII)
_PAGE: Final = 500  # UIDs in one command, whose line servers limit
_FACTS_KEPT: Final = 200_000
_DAY: Final = timedelta(days=1)


class _MailFacts(NamedTuple):
    """Size in bytes; time of delivery in seconds since 1970, 0 where the server does not say."""

    size: int
    received: float


@dataclass(frozen=True, slots=True)
class ImapSettings:
    """address: what replies come from. key: of the proofs, any length. copy_wait_s: after it no copy will come.

    read_only: the inbox is only looked at, so that not even our own copies are filed.
    """

    server: MailServer
    folder: str
    sent_folder: str | None
    drafts_folder: str | None
    address: str
    sent_copy: Literal["self", "server", "append"]
    copy_wait_s: float
    key: bytes
    read_only: bool = False


class ImapMailbox:
    """A mailbox on an IMAP server. Connects when it is first used, and again whenever a connection is lost."""

    def __init__(self, settings: ImapSettings, sender: SmtpSender) -> None:
        self._settings = settings
        self._sender = sender
        self._inbox = ImapSession(settings.server, self._open_inbox)
        self._sent = SentFolder(settings.server, settings.sent_folder)
        self._drafts = DraftsFolder(settings.server, settings.drafts_folder)
        self._owner = ImapOwner(settings.server, settings.folder, settings.address)
        self._idle = ImapIdle(settings.server, self._select)
        self._attempts = SendAttempts()
        self._warned = False
        self._validity = 0
        self._checked_below = 1  # every UID below has been checked for copies
        self._listed_from = 1  # the UID that the last list began with
        self._old_below: tuple[float, int] = (0.0, 1)  # every UID below this one came before that moment's day
        self._facts: dict[int, _MailFacts] = {}
        self.proof_lags = settings.sent_copy != "append"

    def list_unprocessed(self, limit: int, inbox_filter: InboxFilter = ANY_MAIL) -> MailListing:
        def work(client: IMAPClient) -> MailListing:
            uids = self._unprocessed(client, inbox_filter)
            entries: list[InboxEntry] = []
            for start in range(0, len(uids), _PAGE):
                page = uids[start : min(start + _PAGE, start + limit - len(entries))]
                facts = self._fetch_facts(client, page)
                entries += [InboxEntry(f"{self._validity}-{uid}", *facts[uid]) for uid in page if uid in facts]
                if len(entries) >= limit:
                    break
            return MailListing(tuple(entries), len(uids))

        listing = self._inbox.run(work)
        self._warn_of_missing_copies()
        return listing

    def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        def work(client: IMAPClient) -> bytes:
            uid = self._uid(mail_id)
            facts = self._fetch_facts(client, [uid]).get(uid)
            if facts is None:
                raise mail_not_found(mail_id)
            check_size(mail_id, facts.size, max_bytes)
            raw: bytes | None = client.fetch([uid], [b"BODY.PEEK[]"]).get(uid, {}).get(b"BODY[]")
            if raw is None:
                raise mail_not_found(mail_id)
            return raw

        return self._inbox.run(work)

    def find_mail(self, message_id: str) -> str | None:
        def work(client: IMAPClient) -> str | None:
            uids = find_copies(client, message_id)
            return f"{self._validity}-{uids[-1]}" if uids else None

        return self._inbox.run(work)

    def mark(self, mail_id: str, outcome: MailMark) -> None:
        def work(client: IMAPClient) -> None:
            uid = self._uid(mail_id)
            flags = client.add_flags([uid], [KEYWORDS[outcome]]).get(uid)
            if flags is None:  # the server tells the flags of mails that it changed, and does not mind a missing one
                flags = client.get_flags([uid]).get(uid)
            if flags is None:
                raise mail_not_found(mail_id)
            lowered = {flag.decode("ascii", "replace").lower() for flag in flags}
            if KEYWORDS[outcome].lower() not in lowered:
                raise ToolError("mail_unsupported", "the IMAP server did not keep the keyword that was set")
            if others := [name for kind, name in KEYWORDS.items() if kind != outcome and name.lower() in lowered]:
                client.remove_flags([uid], others, silent=True)
            self._facts.pop(uid, None)

        self._inbox.run(work)

    def list_mails(self) -> list[MarkedMail]:
        def work(client: IMAPClient) -> list[MarkedMail]:
            client.noop()  # makes the server look for what others changed
            marks: dict[int, MailMark] = {}
            for outcome, keyword in KEYWORDS.items():
                marks.update(dict.fromkeys(client.search([b"KEYWORD", keyword.encode()]), outcome))
            uids = client.search([b"UNDELETED"])
            return [MarkedMail(f"{self._validity}-{uid}", marks.get(uid)) for uid in uids]

        return self._inbox.run(work)

    def unmark(self, mail_id: str) -> None:
        def work(client: IMAPClient) -> None:
            uid = self._uid(mail_id)
            client.noop()  # makes the server tell of mails that others removed
            if client.get_flags([uid]).get(uid) is None:
                raise mail_not_found(mail_id)
            client.remove_flags([uid], list(KEYWORDS.values()), silent=True)
            self._facts.pop(uid, None)

        self._inbox.run(work)

    def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        def work(client: IMAPClient) -> bool:
            try:
                uid = self._uid(mail_id)
            except ToolError:
                return False
            client.noop()  # makes the server look for what others changed
            return uid in client.search([b"UID", str(uid).encode(), *_untouched(skip_seen)])

        return self._inbox.run(work)

    def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> Mapping[str, int]:
        def work(client: IMAPClient) -> dict[str, int]:
            unprocessed = set(self._unprocessed(client, inbox_filter))
            left = set(client.search([b"ALL"]))
            counts = {"unprocessed": 0, "too_old": 0, "left_alone": 0}
            for outcome, keyword in KEYWORDS.items():
                # Each mail once, also one that is marked meanwhile or has two keywords.
                marked = left.intersection(client.search([b"KEYWORD", keyword.encode()]))
                counts[outcome] = len(marked)
                left -= marked
            untouched = left.intersection(client.search(_untouched(inbox_filter.skip_seen)))
            counts["left_alone"] = len(left - untouched)
            counts["unprocessed"] = len(untouched & unprocessed)
            counts["too_old"] = len(untouched - unprocessed)
            return counts

        return self._inbox.run(work)

    def send(self, reply: Reply) -> Literal["sent", "already_sent"]:
        settings = self._settings
        own_copy = settings.sent_copy == "self"
        raw = compose(reply, settings.address, datetime.now(UTC), settings.key if own_copy else None)
        recipients = [envelope_address(reply.to)]
        if own_copy and recipients[0].casefold() != settings.address.casefold():
            recipients.append(settings.address)
        with self._attempts.exclusive(reply.message_id):
            if self._was_sent(reply.message_id):
                return "already_sent"
            if self._is_pending(reply.message_id):
                text = "an earlier try may have sent this reply, and its copy has not come yet; ask find_sent later"
                raise ToolError("mail_uncertain", text, uncertain=True)
            try:
                self._sender.send(settings.address, recipients, raw)
            except ToolError as error:
                self._attempts.record(reply.message_id, "uncertain" if error.uncertain else "refused")
                raise
            self._attempts.record(reply.message_id, "accepted")
            if settings.sent_copy == "append":
                self._append(raw)
        return "sent"

    def find_sent(self, message_id: str, everywhere: bool = False) -> SentState:
        if self._was_sent(message_id) or self._has_unfiled_copy(message_id):
            return "sent"
        if everywhere and not self._is_pending(message_id):
            found = self._sent.is_elsewhere(message_id, self._settings.address)
            if found is not False:
                return "sent" if found else "unknown"
        if self._settings.sent_copy == "append":
            return "not_sent" if self._attempts.state(message_id) == "refused" else "unknown"
        return "unknown" if self._is_pending(message_id) else "not_sent"

    def save_draft(self, reply: Reply) -> Literal["saved", "already_saved"]:
        raw = compose(reply, self._settings.address, datetime.now(UTC), automatic=False)
        with self._attempts.exclusive(reply.message_id):
            if self._sent.contains(reply.message_id):
                return "already_saved"
            return "saved" if self._drafts.add(raw, reply.message_id) else "already_saved"

    def find_draft(self, message_id: str) -> DraftState:
        is_there = self._drafts.contains(message_id) or self._sent.contains(message_id)
        return "saved" if is_there else "not_saved"

    def find_owner(self) -> str | None:
        return self._owner.find()

    def claim_mailbox(self, ledger: str, take_over: bool = False) -> str:
        return self._owner.claim(ledger, take_over=take_over)

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        return self._idle.wait(timeout_s, stop)

    def test_connection(self, drafts: bool = False) -> str:
        self._inbox.run(lambda client: client.noop())
        if drafts:
            self._drafts.test()
        elif not self._settings.read_only:
            self._sent.test()
            self._sender.test()
        return f"folder {self._settings.folder} on the {self._settings.server.name}"

    def close(self) -> None:
        for part in (self._idle, self._inbox, self._sent, self._drafts, self._owner, self._sender):
            part.close()

    def _unprocessed(self, client: IMAPClient, inbox_filter: InboxFilter) -> list[int]:
        """UIDs in order of arrival, without our own copies, which are filed."""
        client.noop()  # makes the server look for new mail
        since = inbox_filter.received_since
        first = self._first_recent(client, since) if since else 1
        if first < self._listed_from:  # the agent's settings now let older mails count: copies may be among them
            self._checked_below = min(self._checked_below, first)
        self._listed_from = first
        self._checked_below = max(self._checked_below, first)  # an old copy would not be listed either
        self._file_new_copies(client)
        criteria: list[bytes | date] = [*_untouched(inbox_filter.skip_seen)]
        if not since:
            return sorted(client.search(criteria))
        # A server compares days, in its own time zone: the instant decides only for mails of the days around it.
        criteria += [b"UID", f"{first}:*".encode(), b"SINCE", _day_before(since)]
        uids = sorted(client.search(criteria))
        doubtful = uids
        if len(uids) > _PAGE:
            doubtful = client.search([*criteria, b"BEFORE", _day_before(since) + 3 * _DAY])
        too_old: set[int] = set()
        for start in range(0, len(doubtful), _PAGE):
            facts = self._fetch_facts(client, doubtful[start : start + _PAGE])
            too_old.update(uid for uid, known in facts.items() if known.received < since)
        return [uid for uid in uids if uid not in too_old]

    def _first_recent(self, client: IMAPClient, since: float) -> int:
        """The UID that the days that count begin with, so that a hundred thousand older mails cost nothing but once."""
        asked, first = self._old_below
        if not asked <= since <= asked + _DAY.total_seconds():
            last = max(client.search([b"UID", b"*"]), default=0)  # first, since a mail may come between the two
            first = min(client.search([b"SINCE", _day_before(since)]), default=last + 1)
            self._old_below = (since, first)
        return first

    def _fetch_facts(self, client: IMAPClient, uids: Sequence[int]) -> dict[int, _MailFacts]:
        """Of those mails that are there, which may be fewer where they were looked at before."""
        if len(self._facts) >= _FACTS_KEPT:
            self._facts.clear()
        if unknown := [uid for uid in uids if uid not in self._facts]:
            for uid, parts in client.fetch(unknown, [b"RFC822.SIZE", b"INTERNALDATE"]).items():
                if (size := parts.get(b"RFC822.SIZE")) is None:  # another session moved it, or only flags came
                    continue
                delivered = parts.get(b"INTERNALDATE")
                self._facts[uid] = _MailFacts(size, delivered.timestamp() if delivered else 0.0)
        return {uid: self._facts[uid] for uid in uids if uid in self._facts}

    def _file_copies(self, client: IMAPClient, uids: Sequence[int]) -> None:
        """File our own copies among these mails; `uids` in order."""
        for start in range(0, len(uids), _PAGE):  # so that what was done stays done where a later page takes too long
            page = uids[start : start + _PAGE]
            if copies := find_own_copies(client, page, self._settings.address, self._settings.key):
                move_to_folder(client, list(copies), self._sent.name(client))
                for message_id in copies.values():
                    self._attempts.record(message_id, "filed")
            self._checked_below = page[-1] + 1

    def _was_sent(self, message_id: str) -> bool:
        """Whether the server took it from this process, or a copy of it is where copies belong."""
        if self._was_accepted(message_id):
            return True
        if self._settings.sent_copy == "self":
            self._inbox.run(self._look_for_copies)
        return self._was_accepted(message_id) or self._sent.contains(message_id)

    def _was_accepted(self, message_id: str) -> bool:
        return self._attempts.state(message_id) in ("accepted", "filed")

    def _has_unfiled_copy(self, message_id: str) -> bool:
        """Whether a copy is where it came in, not filed: rewritten on its way, of another key, or taken for junk."""
        address = self._settings.address
        return self._settings.sent_copy == "self" and (
            self._inbox.run(lambda client: has_copy(client, message_id, address))
            or self._sent.is_in_junk(message_id, address)
        )

    def _file_new_copies(self, client: IMAPClient) -> None:
        """File our own copies among the mails that came since the last look."""
        if self._settings.sent_copy != "self" or self._settings.read_only:
            return
        # "n:*" names the last mail even where it is older than n (RFC 3501 §6.4.8).
        new = [b"UID", f"{self._checked_below}:*".encode(), b"UNDELETED", *_UNMARKED]
        self._file_copies(client, sorted(uid for uid in client.search(new) if uid >= self._checked_below))

    def _look_for_copies(self, client: IMAPClient) -> None:
        client.noop()
        self._file_new_copies(client)

    def _warn_of_missing_copies(self) -> None:
        """Once, where copies to ourselves do not come: then a crash could have a reply sent twice."""
        settings = self._settings
        if settings.sent_copy != "self" or self._warned:
            return
        missing = self._attempts.accepted_before(settings.copy_wait_s)
        if missing is None:
            return
        if self._sent.contains(missing):  # another process filed it
            self._attempts.record(missing, "filed")
            return
        self._warned = True
        log_diagnostic(
            f"mail: no copy of a reply came to {settings.folder} within {settings.copy_wait_s:g} s, so after a crash a "
            f"reply could be sent twice. Have mail to {settings.address} arrive there, or use --sent-copy append"
        )

    def _is_pending(self, message_id: str) -> bool:
        """Whether an attempt of this process may have succeeded, and it is too early for its copy to be missing."""
        settings = self._settings
        return self._attempts.is_uncertain(message_id, inf if settings.sent_copy == "append" else settings.copy_wait_s)

    def _append(self, raw: bytes) -> None:
        try:
            self._sent.append(raw)
        except ToolError as error:  # the reply is on its way; without its copy, only this process knows
            log_diagnostic(f"mail: a reply was sent, and its copy could not be put into the Sent folder: {error}")

    def _open_inbox(self, client: IMAPClient) -> None:
        selected = self._select(client)
        allowed = {flag.decode("ascii", "replace").lower() for flag in selected.get(b"PERMANENTFLAGS", ())}
        if (
            not self._settings.read_only
            and "\\*" not in allowed
            and not allowed.issuperset(name.lower() for name in KEYWORDS.values())
        ):
            text = f"the {self._settings.server.name} keeps no keywords in folder {self._settings.folder}"
            remedy = "Allow custom keywords there, or use another server"
            raise ToolError("mail_unsupported", f"{text}, which the agent marks mails with. {remedy}")
        validity = int(selected.get(b"UIDVALIDITY", 0))
        if validity != self._validity:  # all UIDs have a new meaning (RFC 3501 §2.3.1.1)
            self._validity, self._checked_below, self._old_below = validity, 1, (0.0, 1)
            self._listed_from = 1
            self._facts.clear()

    def _select(self, client: IMAPClient) -> Mapping[bytes, Any]:
        folder = self._settings.folder
        try:
            selected: Mapping[bytes, Any] = client.select_folder(folder, readonly=self._settings.read_only)
        except IMAPClientReadOnlyError:
            text = f"the folder {folder} may only be read, and the agent has to mark mails in it. Allow that user to"
            raise ToolError("mail_unsupported", text) from None
        except IMAPClientAbortError:
            raise
        except IMAPClientError as error:
            text = f"the {self._settings.server.name} has no folder {folder}: {format_response(error)}"
            raise ToolError("mail_folder_missing", f"{text}. Check --imap-folder") from None
        return selected

    def _uid(self, mail_id: str) -> int:
        match = _ID.fullmatch(mail_id)
        if match is None or int(match[1]) != self._validity:
            raise mail_not_found(mail_id)
        return int(match[2])


def _untouched(skip_seen: bool) -> list[bytes]:
    """The criteria of mails that bear no mark, and that people did not take care of."""
    return [*_UNTOUCHED, b"UNSEEN"] if skip_seen else _UNTOUCHED


def _day_before(moment: float) -> date:
    """So early that no time zone's calendar has an earlier day at that moment (seconds since 1970)."""
    return datetime.fromtimestamp(moment, UTC).date() - _DAY

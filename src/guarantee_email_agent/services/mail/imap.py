"""An IMAP folder as the mailbox, and a Sent folder with the proof of what was sent; replies leave over SMTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError, IMAPClientReadOnlyError

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.imap_mark_folders import FolderMarks
from guarantee_email_agent.services.mail.imap_marks import UNTOUCHED, ImapMarks, KeywordMarks, fetch_body, uid_set
from guarantee_email_agent.services.mail.imap_owner import ImapOwner
from guarantee_email_agent.services.mail.imap_replies import ImapReplies, ImapSettings
from guarantee_email_agent.services.mail.imap_session import Breaks, FolderClient, ImapSession, fetch_each, is_passing
from guarantee_email_agent.services.mail.mail_server import MailServer, format_response
from guarantee_email_agent.services.mail.mail_store import MailListing, mail_not_found
from guarantee_email_agent.services.ports import ANY_MAIL, InboxEntry, InboxFilter, MailMark, MarkedMail

_PAGE: Final = 500  # UIDs in one command, whose line servers limit
_FACTS_KEPT: Final = 200_000
_DAY: Final = timedelta(days=1)


class _MailFacts(NamedTuple):
    """Size in bytes; time of delivery in seconds since 1970. Both 0 where the server does not say."""

    size: int
    received: float


class ImapMailbox(ImapReplies):
    """A mailbox on an IMAP server. Connects when it is first used, and again whenever a connection is lost."""

    def __init__(self, settings: ImapSettings) -> None:
        super().__init__(settings, ImapSession(settings.server, self._open_inbox), lambda: self._marks.unmarked())
        imap = settings.mailbox.imap
        self._keywords = KeywordMarks()
        self._folders = FolderMarks(settings.server, imap.folder, imap.mark_folder)
        self._marks: ImapMarks = self._keywords
        self._owner = ImapOwner(settings.server, imap.folder, settings.address)
        self._idle = ImapIdle(settings.server, self._select)
        self._validity = 0
        self._old_below: tuple[float, int] = (0.0, 1)  # every UID below this one came before that moment's day
        self._facts: dict[int, _MailFacts] = {}
        self._breaks = Breaks()
        self.proof_lags = settings.mailbox.sent_copy != "append"

    def list_unprocessed(self, limit: int, inbox_filter: InboxFilter = ANY_MAIL) -> MailListing:
        def work(client: IMAPClient) -> MailListing:
            # A copy of ours may have come since copies were filed: the next list has what came with it.
            uids = [uid for uid in self._unprocessed(client, inbox_filter) if self._is_checked(uid)]
            entries: dict[str, InboxEntry] = {}
            start = 0
            while start < len(uids) and len(entries) < limit:  # copies of a mail are one entry
                page = uids[start : start + min(_PAGE, limit - len(entries))]
                start += len(page)
                facts = self._fetch_facts(client, page)
                for uid, mail_id in self._marks.ids(client, list(facts)).items():
                    entries.setdefault(mail_id, InboxEntry(mail_id, *facts[uid]))
            return MailListing(tuple(entries.values()), len(uids))

        listing = self._inbox.run(work)
        self._warn_of_missing_copies()
        return listing

    def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        is_first = True

        def work(client: IMAPClient) -> bytes | None:
            nonlocal is_first
            uids = self._marks.uids(client, mail_id)[:1]
            if is_first:  # it may be well today
                self._breaks.mails.difference_update(uids)
                is_first = False
            facts = self._fetch_facts(client, uids)
            return fetch_body(client, uids[0], mail_id, facts[uids[0]].size, max_bytes) if facts else None

        raw = self._inbox.run(work)
        if raw is None:
            raw = self._marks.read_moved(mail_id, max_bytes)
        if raw is None:
            raise mail_not_found(mail_id)
        return raw

    def find_mail(self, message_id: str) -> str | None:
        return self._inbox.run(lambda client: self._marks.find(client, message_id))

    def mark(self, mail_id: str, outcome: MailMark) -> None:
        def work(client: IMAPClient) -> None:
            for uid in self._marks.mark(client, mail_id, outcome):
                self._facts.pop(uid, None)

        self._inbox.run(work)

    def list_mails(self) -> list[MarkedMail]:
        return self._inbox.run(lambda client: self._marks.list_mails(client))

    def unmark(self, mail_id: str) -> None:
        self._inbox.run(lambda client: self._marks.unmark(client, mail_id))

    def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        def work(client: IMAPClient) -> bool:
            client.noop()  # makes the server look for what others changed
            uids = self._marks.uids(client, mail_id)
            return bool(uids and client.search([b"UID", uid_set(uids), *self._untouched(skip_seen)]))

        return self._inbox.run(work)

    def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> Mapping[str, int]:
        def work(client: IMAPClient) -> dict[str, int]:
            client.noop()
            last = max(client.search([b"UID", b"*"]), default=0)  # what comes later waits for the next count
            unprocessed = set(self._unprocessed(client, inbox_filter))
            left = {uid for uid in client.search([b"ALL"]) if uid <= last}
            marked = self._marks.count(client, left)
            untouched = left.intersection(client.search(self._untouched(inbox_filter.skip_seen)))
            return {
                "unprocessed": len(untouched & unprocessed),
                "too_old": len(untouched - unprocessed),
                "left_alone": len(left - untouched),
                **{str(outcome): number for outcome, number in marked.items()},
            }

        return self._inbox.run(work)

    def find_owner(self) -> str | None:
        return self._owner.find()

    def claim_mailbox(self, ledger: str, take_over: bool = False) -> str:
        return self._owner.claim(ledger, take_over=take_over)

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        return self._idle.wait(timeout_s, stop)

    def test_connection(self, drafts: bool = False) -> str:
        self._inbox.run(lambda client: client.noop())
        if not self._settings.read_only:
            self._inbox.run(lambda client: self._marks.test(client))
            self._test_replies(drafts=drafts)
        return (
            f"folder {self._settings.mailbox.imap.folder} on the {self._settings.server.name}{self._marks.describe()}"
        )

    def close(self) -> None:
        for part in (self._idle, self._inbox, self._folders, self._owner, self._sent, self._drafts):
            part.close()
        if (tokens := self._settings.server.tokens) is not None:
            tokens.close()

    def _unprocessed(self, client: IMAPClient, inbox_filter: InboxFilter) -> list[int]:
        """UIDs in order of arrival, without our own copies, which are filed."""
        client.noop()  # makes the server look for new mail
        since = inbox_filter.received_since
        first = self._first_recent(client, since) if since else 1
        self._file_copies_from(client, first)
        criteria: list[bytes | date] = [*self._untouched(inbox_filter.skip_seen)]
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
            too_old.update(uid for uid, known in facts.items() if 0 < known.received < since)
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
        """Of those mails that are there, which may be fewer where they were looked at before.

        Raises mail_unavailable where the server tells nothing of several, and of no other: it is at fault, not they.
        """
        withheld: dict[int, _MailFacts] = {}
        if len(self._facts) >= _FACTS_KEPT:
            self._facts.clear()
        if unknown := [uid for uid in uids if uid not in self._facts]:
            for uid, parts in fetch_each(client, unknown, [b"RFC822.SIZE", b"INTERNALDATE"]).items():
                delivered = parts.get(b"INTERNALDATE")
                facts = _MailFacts(parts.get(b"RFC822.SIZE", 0), delivered.timestamp() if delivered else 0.0)
                if facts.size:
                    self._facts[uid] = facts
                else:  # asked again the next time
                    withheld[uid] = facts
        if len(withheld) > 1 and not self._facts:
            raise self._settings.server.unavailable("tells nothing about any mail")
        return {uid: known for uid in uids if (known := self._facts.get(uid) or withheld.get(uid))}

    def _open_inbox(self, client: FolderClient) -> None:
        client.breaks = self._breaks
        selected = self._select(client)
        self._marks = self._choose_marks(client, selected)
        self._marks.opened(selected)
        validity = int(selected.get(b"UIDVALIDITY", 0))
        if validity != self._validity:  # all UIDs have a new meaning (RFC 3501 §2.3.1.1)
            self._validity, self._old_below = validity, (0.0, 1)
            self._checked_below = 1
            self._facts.clear()
            self._breaks.mails.clear()

    def _choose_marks(self, client: IMAPClient, selected: Mapping[bytes, Any]) -> ImapMarks:
        """As it was set, or by what the server says that it keeps. Raises mail_unsupported."""
        kind = self._settings.mailbox.imap.marks
        if kind == "auto" and self._settings.read_only:  # of a folder that is only looked at, no server says so
            is_moved = not KeywordMarks.are_known(selected) and self._folders.exist(client)
            kind = "folders" if is_moved else "keywords"
        elif kind == "auto":
            kind = "keywords" if KeywordMarks.are_kept(selected) else "folders"
        if kind == "folders":
            if not self._settings.read_only and not client.has_capability("MOVE"):
                text = f"the {self._settings.server.name} cannot move mails (RFC 6851) into the folder of their mark"
                raise ToolError("mail_unsupported", f"{text}. Take a server that can, or that keeps custom keywords")
            return self._folders
        if not self._settings.read_only and not KeywordMarks.are_kept(selected):
            text = f"the {self._settings.server.name} keeps no keywords in folder {self._settings.mailbox.imap.folder}"
            remedy = "Allow custom keywords there, or set --marks to folders"
            raise ToolError("mail_unsupported", f"{text}, which the agent is to mark mails with. {remedy}")
        return self._keywords

    def _select(self, client: IMAPClient) -> Mapping[bytes, Any]:
        folder = self._settings.mailbox.imap.folder
        try:
            selected: Mapping[bytes, Any] = client.select_folder(folder, readonly=self._settings.read_only)
        except IMAPClientReadOnlyError:
            text = f"the folder {folder} may only be read, and the agent has to mark mails in it. Allow that user to"
            raise ToolError("mail_unsupported", text) from None
        except IMAPClientError as error:
            if is_passing(error):
                raise
            text = f"the {self._settings.server.name} has no folder {folder}: {format_response(error)}"
            raise ToolError("mail_folder_missing", f"{text}. Check mailbox.imap.folder") from None
        return selected

    def _untouched(self, skip_seen: bool) -> list[bytes]:
        """The criteria of mails that bear no mark, and that people did not take care of."""
        return [*self._marks.unmarked(), *UNTOUCHED, *([b"UNSEEN"] if skip_seen else [])]


def _day_before(moment: float) -> date:
    """So early that no time zone's calendar has an earlier day at that moment (seconds since 1970)."""
    return datetime.fromtimestamp(moment, UTC).date() - _DAY


_SLICE_S: Final = 2.0  # of one wait: how long a call that is cancelled holds the connection
_RENEW_S: Final = 300.0  # of one IDLE; servers drop it after 30 minutes, and some firewalls much sooner
_POLL_S: Final = 5.0  # where there is no IDLE


class ImapIdle:
    """Tells when the inbox may have grown: by IDLE (RFC 2177) where the server knows it, else by polling.

    On a connection of its own, since one that idles can do nothing else. What is new is for the listing to tell.
    """

    def __init__(self, server: MailServer, select: Callable[[IMAPClient], Mapping[bytes, Any]]) -> None:
        """`select` selects the folder and returns the server's response to that."""
        self._select = select
        self._session = ImapSession(server, self._prepare, self._on_untagged)
        self._arrived = False  # a mail, or it cannot be known; since the last wait ended
        self._mails = -1  # in the folder, as far as the server has told
        self._uid_state: tuple[Any, Any] = (None, None)  # UIDVALIDITY and UIDNEXT when this connection began
        self._waiting = threading.Lock()

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        """Whether a mail arrived since the last wait ended. Raises ToolError."""
        deadline = time.monotonic() + timeout_s
        while not self._waiting.acquire(timeout=min(_SLICE_S, max(deadline - time.monotonic(), 0))):
            if stop.is_set() or time.monotonic() >= deadline:
                return False
        try:
            return self._session.run(lambda client: self._wait(client, deadline, stop))
        finally:
            self._waiting.release()

    def close(self) -> None:
        self._session.close()

    def _prepare(self, client: IMAPClient) -> None:
        selected = self._select(client)
        mails = int(selected.get(b"EXISTS", 0))
        uid_state = (selected.get(b"UIDVALIDITY"), selected.get(b"UIDNEXT"))
        if (mails, uid_state) != (self._mails, self._uid_state):
            self._arrived = True  # perhaps, while there was no connection: as many may have left
        self._mails, self._uid_state = mails, uid_state

    def _wait(self, client: IMAPClient, deadline: float, stop: threading.Event) -> bool:
        has_idle = client.has_capability("IDLE")
        while True:
            # First what came since the last wait: the response to IDLE may bring it in one piece, and go unread.
            if not self._arrived:
                self._on_untagged(client.noop()[1])
            if not self._arrived and has_idle:
                self._on_untagged(_idle(client, deadline, stop))
            if self._arrived:
                self._arrived = False
                return True
            left = deadline - time.monotonic()
            if left <= 0 or stop.is_set():
                return False
            if not has_idle and stop.wait(min(_POLL_S, left)):
                return False

    def _on_untagged(self, responses: Iterable[object]) -> None:
        """A mail arrived where the server counts more than before. What leaves the folder makes it smaller."""
        for response in responses:
            match response:
                case (int() as count, b"EXISTS", *_):
                    self._arrived = self._arrived or count > self._mails
                    self._mails = count
                case (int(), b"EXPUNGE", *_):
                    self._mails -= 1


def _idle(client: IMAPClient, deadline: float, stop: threading.Event) -> list[object]:
    """The untagged responses while idling, as soon as there is a mail among them."""
    end = min(deadline, time.monotonic() + _RENEW_S)
    responses: list[object] = []
    client.idle()
    try:
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            began, slice_s = time.monotonic(), min(_SLICE_S, left)
            responses += client.idle_check(timeout=slice_s)
            if any(isinstance(response, tuple) and b"EXISTS" in response for response in responses):
                break
            if not responses and time.monotonic() - began < slice_s / 2:
                break  # a closed connection returns at once with nothing; the end of the IDLE will tell
    finally:
        responses += client.idle_done()[1]
    return responses

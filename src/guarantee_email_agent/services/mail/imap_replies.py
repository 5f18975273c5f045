"""Replies of an IMAP mailbox: they leave over SMTP, and a copy of each is the proof that it left.

How a reply is proved to have been sent (`sent_copy`):

- `self`: one SMTP transaction with two recipients, the customer and our own address. The server takes both or none, so
  the copy in our inbox proves the customer's. A copy is filed into Sent as soon as it is seen, and never listed.
- `server`: the server files what it sends itself, as Gmail and Exchange do.
- `append`: we put a copy into Sent after the server took the reply. Between the two a crash leaves no proof, so an
  absent copy is `unknown` for good, and only a person who looked for the reply can have it sent again.

What is believed of a copy in the inbox, where anybody can put anything: it is filed into Sent, unseen by people, only
if it has our address in From and a proof under our key over its Message-ID, recipient and text (see `compose.py`). As
the proof that a reply was sent, a mail from our address with exactly the reply's Message-ID is enough: that id is keyed
and unguessable, nobody but us knows it before the reply leaves, and the customer, who learns it then, can only confirm
what is true. So a copy that a gateway rewrote still counts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal, TypeVar

from imapclient import IMAPClient

from guarantee_email_agent.config.settings import MailboxSettings
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.compose import compose, envelope_address
from guarantee_email_agent.services.mail.imap_session import ImapSession, in_pages
from guarantee_email_agent.services.mail.mail_server import MailServer
from guarantee_email_agent.services.mail.smtp import send_mail, try_login
from guarantee_email_agent.services.mail.special_folder import DraftsFolder, SentFolder, find_copies, find_own_copies
from guarantee_email_agent.services.ports import DraftState, Reply, SentState

_Read = TypeVar("_Read")

logger = logging.getLogger(__name__)

AttemptState = Literal["accepted", "filed", "refused", "uncertain"]
_MAX_REMEMBERED: Final = 10_000
_PAGE: Final = 500  # UIDs in one command, whose line servers limit


class SendAttempts:
    """What this process knows of its own, by Message-ID.

    `accepted` by the server, `filed` (its copy was seen), `refused` (never taken), or `uncertain`.
    """

    def __init__(self) -> None:
        self._attempts: dict[str, tuple[AttemptState, float]] = {}  # the latest last
        self._sending: set[str] = set()
        self._changed = threading.Condition()

    def state(self, message_id: str) -> AttemptState | None:
        """None for a Message-ID that was never tried here."""
        with self._changed:
            return self._attempts.get(message_id, (None, 0))[0]

    def is_uncertain(self, message_id: str, within_s: float) -> bool:
        """Whether an attempt not longer ago than this may have succeeded."""
        with self._changed:
            state, at = self._attempts.get(message_id, (None, 0.0))
        return state == "uncertain" and time.monotonic() - at < within_s

    def record(self, message_id: str, state: AttemptState) -> None:
        with self._changed:
            self._attempts.pop(message_id, None)
            self._attempts[message_id] = (state, time.monotonic())
            if len(self._attempts) > _MAX_REMEMBERED:
                del self._attempts[next(iter(self._attempts))]

    def accepted_before(self, seconds: float) -> str | None:
        """A reply accepted longer ago than this, the copy of which was not seen yet."""
        before = time.monotonic() - seconds
        with self._changed:
            attempts = self._attempts.items()
            return next((found for found, (state, at) in attempts if state == "accepted" and at < before), None)

    @contextmanager
    def exclusive(self, message_id: str) -> Iterator[None]:
        """Only one attempt with a Message-ID at a time."""
        with self._changed:
            self._changed.wait_for(lambda: message_id not in self._sending)
            self._sending.add(message_id)
        try:
            yield
        finally:
            with self._changed:
                self._sending.remove(message_id)
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class ImapSettings:
    """server: where the inbox is. key: of the proofs, any length.

    read_only: the inbox is only looked at, so that not even our own copies are filed. replaces_ids: the
    SMTP server gives a reply a Message-ID of its own: so the reply names ours in References, for answers to be known
    by, and that no copy is found proves nothing.
    """

    mailbox: MailboxSettings
    server: MailServer
    smtp: MailServer
    key: bytes
    read_only: bool = False
    replaces_ids: bool = False

    @property
    def address(self) -> str:
        """What replies come from."""
        return self.mailbox.from_address or ""


class ImapReplies:
    """The part of an IMAP mailbox that answers. inbox: where copies come in.

    unmarked: the criteria of its mails that bear no mark.
    """

    def __init__(self, settings: ImapSettings, inbox: ImapSession, unmarked: Callable[[], Sequence[bytes]]) -> None:
        self._settings = settings
        self._inbox = inbox
        self._sent = SentFolder(settings.server, settings.mailbox.imap.sent_folder)
        self._drafts = DraftsFolder(settings.server, settings.mailbox.imap.drafts_folder)
        self._unmarked = unmarked
        self._attempts = SendAttempts()
        self._warned = False
        self._checked_below = 1  # every UID below has been checked for copies

    def send(self, reply: Reply) -> Literal["sent", "already_sent"]:
        settings = self._settings
        own_copy = settings.mailbox.sent_copy == "self"
        if settings.replaces_ids:
            reply = replace(reply, references=f"{reply.references} {reply.message_id}".strip())
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
                send_mail(settings.smtp, settings.address, recipients, raw)
            except ToolError as error:
                self._attempts.record(reply.message_id, "uncertain" if error.uncertain else "refused")
                raise
            self._attempts.record(reply.message_id, "accepted")
            if settings.mailbox.sent_copy == "append":
                self._append(raw)
        return "sent"

    def list_sent(self, since: float, most_bytes: int, read: Callable[[bytes], _Read]) -> list[_Read]:
        return self._sent.read_since(since, most_bytes, read)

    def find_sent(self, message_id: str, everywhere: bool = False) -> SentState:
        if self._was_sent(message_id) or self._has_unfiled_copy(message_id):
            return "sent"
        if everywhere and not self._is_pending(message_id):
            found = self._sent.is_elsewhere(message_id, self._settings.address)
            if found is not False:
                return "sent" if found else "unknown"
        if self._settings.mailbox.sent_copy == "append" or self._settings.replaces_ids:
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

    def _test_replies(self, *, drafts: bool) -> None:
        """Raises ToolError where what replies need cannot be used. drafts: they are stored, and none is sent."""
        if drafts:
            self._drafts.test()
        else:
            self._sent.test()
            try_login(self._settings.smtp)

    def _file_copies_from(self, client: IMAPClient, first: int) -> None:
        """File our own copies before a list that begins with this UID: an older copy would not be listed either."""
        self._checked_below = max(self._checked_below, first)
        self._file_new_copies(client)

    def _is_checked(self, uid: int) -> bool:
        """Whether this mail is known to be no copy that is to be filed."""
        return not self._are_filed() or uid < self._checked_below

    def _warn_of_missing_copies(self) -> None:
        """Once, where copies to ourselves do not come: then a crash could have a reply sent twice."""
        settings = self._settings
        if settings.mailbox.sent_copy != "self" or self._warned:
            return
        missing = self._attempts.accepted_before(settings.mailbox.copy_wait_s)
        if missing is None:
            return
        if self._sent.contains(missing):  # another process filed it
            self._attempts.record(missing, "filed")
            return
        self._warned = True
        logger.warning(
            "mail: no copy of a reply came to %s within %g s, so after a crash a reply could be sent twice. Have mail "
            "to %s arrive there, or set mailbox.sent_copy to append",
            settings.mailbox.imap.folder,
            settings.mailbox.copy_wait_s,
            settings.address,
        )

    def _file_copies(self, client: IMAPClient, uids: Sequence[int]) -> None:
        """File our own copies among these mails; `uids` in order."""
        for page in in_pages(uids, _PAGE):  # so that what was done stays done where a later page takes too long
            if copies := find_own_copies(client, page, self._settings.address, self._settings.key):
                self._sent.file(client, list(copies))
                for message_id in copies.values():
                    self._attempts.record(message_id, "filed")
            self._checked_below = page[-1] + 1

    def _was_sent(self, message_id: str) -> bool:
        """Whether the server took it from this process, or a copy of it is where copies belong."""
        if self._was_accepted(message_id):
            return True
        if self._settings.mailbox.sent_copy == "self":
            self._inbox.run(self._look_for_copies)
        return self._was_accepted(message_id) or self._sent.contains(message_id)

    def _was_accepted(self, message_id: str) -> bool:
        return self._attempts.state(message_id) in ("accepted", "filed")

    def _has_unfiled_copy(self, message_id: str) -> bool:
        """Whether a copy is where it came in, not filed: rewritten on its way, or of another key."""
        look = partial(find_copies, message_id=message_id, sender=self._settings.address)
        return self._settings.mailbox.sent_copy == "self" and bool(self._inbox.run(look))

    def _file_new_copies(self, client: IMAPClient) -> None:
        """File our own copies among the mails that came since the last look."""
        if not self._are_filed():
            return
        # "n:*" names the last mail even where it is older than n (RFC 3501 §6.4.8).
        new = [b"UID", f"{self._checked_below}:*".encode(), b"UNDELETED", *self._unmarked()]
        self._file_copies(client, sorted(uid for uid in client.search(new) if uid >= self._checked_below))

    def _are_filed(self) -> bool:
        return self._settings.mailbox.sent_copy == "self" and not self._settings.read_only

    def _look_for_copies(self, client: IMAPClient) -> None:
        client.noop()
        self._file_new_copies(client)

    def _is_pending(self, message_id: str) -> bool:
        """Whether an attempt of this process may have succeeded, and it is too early for its copy to be missing."""
        return self._attempts.is_uncertain(message_id, self._settings.mailbox.copy_wait_s)

    def _append(self, raw: bytes) -> None:
        try:
            self._sent.append(raw)
        except ToolError as error:  # the reply is on its way; without its copy, only this process knows
            logger.warning("mail: a reply was sent, and its copy could not be put into the Sent folder: %s", error)

"""Which ledger an IMAP folder is served with: a mail in a folder of our own says so, to programs and to people.

Any server takes a mail into a folder; few keep METADATA (RFC 5464), and a keyword needs a mail to stand on. Of several
such mails the one with the lowest UID counts, so that two that come at once agree whose it is.
"""

from __future__ import annotations

import email
import hashlib
import logging
import re
import time
from contextlib import suppress
from typing import Final

from imapclient import DELETED, SEEN, IMAPClient
from imapclient.exceptions import IMAPClientError

from guarantee_email_agent.services.mail.imap_session import ImapSession, fetch_each, fetched_part, is_passing
from guarantee_email_agent.services.mail.mail_server import MailServer, format_response
from guarantee_email_agent.services.mail.special_folder import folder_prefix, is_there, make_folder

logger = logging.getLogger(__name__)

OWNER_FOLDER: Final = "guarantee-email-agent"
LEDGER_HEADER: Final = "X-Agent-Ledger"
FOLDER_HEADER: Final = "X-Agent-Folder"

_HEADERS: Final = f"BODY.PEEK[HEADER.FIELDS ({LEDGER_HEADER.upper()} {FOLDER_HEADER.upper()})]".encode()
_LOOK_AGAIN_S: Final = 0.5
_MAX_LOOKS: Final = 10
_LEDGER_ID: Final = re.compile(r"[0-9a-f]{16}")
_TEXT: Final = """\
This mail says with which ledger a folder of this mailbox is served by
guarantee-email-agent. Leave it here: without it nothing keeps an agent with
another ledger from answering every mail a second time. To have another ledger
serve the folder, start its agent once with: run --take-over
"""


class ImapOwner:
    """On a connection of its own. folder: the inbox that is served. Methods raise ToolError."""

    def __init__(self, server: MailServer, folder: str, address: str) -> None:
        self._session = ImapSession(server, lambda _: None)
        self._address = address
        # A hash: a header takes no name in every script, and compares none of the spellings.
        self._folder_key = hashlib.sha256(folder.encode()).hexdigest()[:16]

    def find(self) -> str | None:
        """The ledger's id; None where nobody has claimed the inbox."""
        return self._session.run(lambda client: _oldest(self._marks(client)))

    def claim(self, ledger: str, *, take_over: bool) -> str:
        """Claim the inbox for a ledger unless another has it; whose it is then. take_over: from any other, too.

        A server that lets us make no folder keeps no mark: that is told once, and the inbox counts as claimed.
        """
        return self._session.run(lambda client: self._claim(client, ledger, take_over=take_over))

    def close(self) -> None:
        self._session.close()

    def _claim(self, client: IMAPClient, ledger: str, *, take_over: bool) -> str:
        marks = self._marks(client)
        owner = _oldest(marks)
        if owner == ledger or (owner is not None and not take_over):
            return owner
        try:
            name = _folder_name(client)
            make_folder(client, name)
            client.append(name, self._compose(ledger), [SEEN])
        except IMAPClientError as error:
            if is_passing(error):
                raise
            logger.warning(
                "mail: the inbox cannot bear a mark of the ledger that serves it: %s. Allow the folder %s, or make "
                "sure yourself that no agent with another ledger serves it",
                format_response(error),
                OWNER_FOLDER,
            )
            return ledger
        now = self._settled_marks(client, ledger)
        ours = [uid for uid in sorted(now) if now[uid] == ledger]
        # Taking over, every other goes; else our own, where another was there first. Nobody else's: whose it is, each
        # agent sees for itself.
        if take_over and ours:
            losing = [uid for uid in now if uid != ours[0]]
        else:
            losing = ours[1:] if _oldest(now) == ledger else ours
        if losing:
            client.select_folder(name)
            client.add_flags(losing, [DELETED], silent=True)
            if client.has_capability("UIDPLUS"):
                client.uid_expunge(losing)
        return _oldest(self._marks(client)) or ledger

    def _settled_marks(self, client: IMAPClient, ledger: str) -> dict[int, str]:
        """What is seen twice alike, with ours: where several make the folder at once, Dovecot may give UIDs anew."""
        before: dict[int, str] = {}
        for _ in range(_MAX_LOOKS):
            marks = self._marks(client)
            if marks == before and ledger in marks.values():
                break
            before = marks
            time.sleep(_LOOK_AGAIN_S)
        return before

    def _marks(self, client: IMAPClient) -> dict[int, str]:
        """The ledgers that claim this inbox, by UID."""
        with suppress(IMAPClientError):
            client.unselect_folder()  # so that the folder is seen as it is now
        name = _folder_name(client)
        try:
            client.select_folder(name, readonly=True)
        except IMAPClientError as error:
            if is_passing(error):
                raise
            if not is_there(client, name):
                return {}
            client.select_folder(name, readonly=True)  # made just now, or it may say that another ledger has the inbox
        uids = client.search([b"UNDELETED"])
        found: dict[int, str] = {}
        for uid, parts in fetch_each(client, uids, [_HEADERS]).items() if uids else ():
            if (raw := fetched_part(parts, b"BODY[HEADER")) is None:
                raise IMAPClientError(f"mail {uid} in folder {name}, which says whose the inbox is, is not handed out")
            header = email.message_from_bytes(raw)
            ledger = str(header.get(LEDGER_HEADER, "")).strip()
            if str(header.get(FOLDER_HEADER, "")).strip() == self._folder_key and _LEDGER_ID.fullmatch(ledger):
                found[uid] = ledger
        return found

    def _compose(self, ledger: str) -> bytes:
        lines = [
            f"From: {self._address}",
            "Subject: The ledger of guarantee-email-agent",
            f"{LEDGER_HEADER}: {ledger}",
            f"{FOLDER_HEADER}: {self._folder_key}",
            "Auto-Submitted: auto-generated",
            "Content-Type: text/plain; charset=us-ascii",
            "",
            *_TEXT.splitlines(),
            "",
        ]
        return "\r\n".join(lines).encode("ascii")


def _folder_name(client: IMAPClient) -> str:
    return f"{folder_prefix(client)}{OWNER_FOLDER}"


def _oldest(marks: dict[int, str]) -> str | None:
    return marks[min(marks)] if marks else None

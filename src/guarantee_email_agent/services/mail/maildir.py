"""A Maildir as the mailbox (https://cr.yp.to/proto/maildir.html), with replies in its folder `.Sent`
and drafts in `.Drafts` (Maildir++).

Our own reader and not the standard library's `mailbox.Maildir`: that one knows no keywords, keeps no letters that other
programs wrote, and adds a mail to a folder in a way that cannot tell "there already" from "there now".
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from guarantee_email_agent.files.private_file import make_private_folder
from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.compose import compose
from guarantee_email_agent.services.mail.mail_store import (
    INBOX_STATES,
    KEYWORDS,
    WRONG,
    InboxState,
    MailListing,
    check_size,
    mail_not_found,
    mail_unreadable,
)
from guarantee_email_agent.services.mail.maildir_folder import (
    AGENT_DIRECTORY,
    PARTS,
    TRIES,
    MaildirFolder,
    MaildirProofs,
    check_writable,
    make_maildir,
    os_errors_as_tool_errors,
    read_message_id,
    remove_abandoned,
    rename_without_replacing,
    split_name,
    sync_directory,
)
from guarantee_email_agent.services.mail.maildir_listing import KeywordLetters, MaildirListing, MailFile
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

_Result = TypeVar("_Result")
POLL_S: Final = 0.5  # two stat calls each
_TRASHED: Final = "T"
_LEFT_ALONE: Final = frozenset("RDTF")  # replied, draft, trashed, flagged
_SEEN: Final = frozenset("S")
_LEDGER_ID: Final = re.compile(r"[0-9a-f]{16}")
_TIME: Final = re.compile(r"(\d{1,12})\.(?:[^.]*M(\d{1,9}))?")

_Renamed: TypeAlias = list[MailFile]
"""Mails whose file was no longer there under its name, to be added to."""


class MaildirOwner:
    """Which ledger a Maildir is served with: a file says so. Raises OSError, and ToolError for one that names none."""

    def __init__(self, maildir: Path) -> None:
        self._file = maildir / AGENT_DIRECTORY / "ledger"

    def find(self) -> str | None:
        """The ledger's id; None where nobody has claimed the Maildir."""
        try:
            text = read_start(self._file, 1000).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        if not _LEDGER_ID.fullmatch(text):
            raise ToolError(
                "mail_unsupported",
                f"{self._file} does not say which ledger this Maildir is served with. Restore it, or remove it once "
                "all agents but one are stopped",
            )
        return text

    def claim(self, ledger: str, *, take_over: bool) -> str:
        """Claim the Maildir for a ledger unless another has it; whose it is then. take_over: from any other, too."""
        directory = self._file.parent
        make_private_folder(directory)
        temporary = directory / f"ledger.{secrets.token_hex(8)}"
        try:
            with open(temporary, "x", encoding="ascii") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(f"{ledger}\n")
                file.flush()
                os.fsync(file.fileno())
            if take_over:
                os.replace(temporary, self._file)
            else:
                with suppress(FileExistsError):  # of two at once, one makes the link
                    os.link(temporary, self._file)
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(directory)
        return self.find() or ledger


class Maildir:
    """A mailbox in a directory. Sending means putting the reply into `.Sent`, with a proof that never lags."""

    proof_lags = False

    def __init__(self, directory: Path, sender: str, *, create: bool = False, read_only: bool = False) -> None:
        """Check that the Maildir is there, and clean up what writers left behind. Raises ToolError.

        read_only: nothing is cleaned up, and the connection test tries only what reading takes.
        """
        self._directory = directory
        self._sender = sender
        self._read_only = read_only
        proofs = MaildirProofs(directory)
        self._sent = MaildirFolder(directory / ".Sent", "S", proofs)  # seen: what people sent themselves is no news
        self._drafts = MaildirFolder(directory / ".Drafts", "DS", proofs)
        self._owner = MaildirOwner(directory)
        self._letters = KeywordLetters(directory)
        self._listing = MaildirListing(directory)
        self._paths: dict[str, str] = {}  # where each id was last seen
        self._seen_new: tuple[int, frozenset[str]] = (0, frozenset())  # as last listed: when `new` was changed, paths
        with os_errors_as_tool_errors("open", directory):
            if create:
                make_maildir(directory)
            for part in PARTS:
                if not (directory / part).is_dir():
                    raise _folder_missing(directory, part)
            if read_only:
                return
            for folder in (directory, self._sent.directory, self._drafts.directory):
                remove_abandoned(folder / "tmp")

    def list_unprocessed(self, limit: int, inbox_filter: InboxFilter = ANY_MAIL) -> MailListing:
        def look(renamed: _Renamed) -> MailListing:
            changed_at = (self._directory / "new").stat().st_mtime_ns
            mails = self._scan()
            waiting = [mail for mail, state in self._states(mails, inbox_filter, renamed) if state == "unprocessed"]
            self._paths = {mail.id: mail.path for mail in waiting}
            self._seen_new = (changed_at, frozenset(mail.path for mail in mails))
            entries: list[InboxEntry] = []
            for mail in sorted(waiting, key=_arrival)[:limit]:
                try:
                    status = os.stat(self._paths.get(mail.id, mail.path))
                except FileNotFoundError:
                    renamed.append(mail)
                else:
                    entries.append(InboxEntry(mail.id, status.st_size, status.st_mtime))
            return MailListing(tuple(entries), len(waiting))

        with os_errors_as_tool_errors("list", self._directory):
            return _undisturbed(look)

    def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        def read(path: str) -> bytes:
            try:
                with open(path, "rb") as file:
                    check_size(mail_id, os.fstat(file.fileno()).st_size, max_bytes)
                    return file.read()
            except FileNotFoundError:  # renamed meanwhile
                raise
            except OSError as error:  # the folder could be read: it is about this file
                raise mail_unreadable(mail_id, f"{error.strerror}. Look at its file, {path}") from None

        return self._with_file(mail_id, "read", read)

    def find_mail(self, message_id: str) -> str | None:
        with os_errors_as_tool_errors("search", self._directory):
            for mail in self._scan():
                with suppress(FileNotFoundError):  # another program moved it
                    if read_message_id(mail.path) == message_id.encode():
                        return mail.id
        return None

    def list_mails(self) -> list[MarkedMail]:
        with os_errors_as_tool_errors("list", self._directory):
            outcomes = self._outcomes()
            wrong = {letter for keyword, letter in self._letters.load().items() if keyword.lower() == WRONG}
            return [
                MarkedMail(
                    mail.id,
                    next((outcomes[flag] for flag in mail.flags if flag in outcomes), None),
                    not wrong.isdisjoint(mail.flags),
                )
                for mail in self._scan()
            ]

    def mark(self, mail_id: str, outcome: MailMark) -> None:
        self._set_mark(mail_id, "mark", outcome)

    def unmark(self, mail_id: str) -> None:
        self._set_mark(mail_id, "unmark", None)

    def _set_mark(self, mail_id: str, doing: str, outcome: MailMark | None) -> None:
        with os_errors_as_tool_errors(f"{doing} a mail in", self._directory):
            letters = self._letters.allocate(KEYWORDS.values())
        ours = {letters[keyword] for keyword in KEYWORDS.values()}
        set_now = {letters[KEYWORDS[outcome]]} if outcome is not None else set()

        def rename(path: str) -> None:
            flags = split_name(os.path.basename(path))[1]
            marked = "".join(sorted(set(flags) - ours | set_now))
            target = str(self._directory / "cur" / f"{mail_id}:2,{marked}")
            if target != path:
                try:
                    rename_without_replacing(path, target)
                except FileExistsError:  # since the listing: from the next one on, both have ids of their own
                    text = f"{path} cannot be renamed to {target}: that is another mail. List the mails anew"
                    raise ToolError("mail_not_found", text) from None
                self._paths[mail_id] = target

        self._with_file(mail_id, doing, rename)

    def is_waiting(self, mail_id: str, skip_seen: bool = False) -> bool:
        with os_errors_as_tool_errors("look at a mail in", self._directory):
            if not os.path.exists(self._paths.get(mail_id, "")):  # new flags are a new name
                self._find_paths()
            if mail_id not in self._paths:
                return False
            flags = split_name(os.path.basename(self._paths[mail_id]))[1]
            return self._outcomes().keys().isdisjoint(flags) and _left_alone(skip_seen).isdisjoint(flags)

    def count_by_outcome(self, inbox_filter: InboxFilter = ANY_MAIL) -> Mapping[str, int]:
        with os_errors_as_tool_errors("count", self._directory):
            states = _undisturbed(
                lambda renamed: Counter(state for _, state in self._states(self._scan(), inbox_filter, renamed))
            )
            return {state: states[state] for state in INBOX_STATES}

    def send(self, reply: Reply) -> Literal["sent", "already_sent"]:
        raw = compose(reply, self._sender, datetime.now(UTC))
        with os_errors_as_tool_errors("write a reply into", self._sent.directory):
            return "sent" if self._sent.add(reply.message_id, raw) else "already_sent"

    def find_sent(self, message_id: str, everywhere: bool = False) -> SentState:  # noqa: ARG002 - one place has all
        with os_errors_as_tool_errors("look into", self._sent.directory):
            return "sent" if self._sent.was_added(message_id) else "not_sent"

    def save_draft(self, reply: Reply) -> Literal["saved", "already_saved"]:
        raw = compose(reply, self._sender, datetime.now(UTC), automatic=False)
        if self.find_draft(reply.message_id) == "saved":
            return "already_saved"
        with os_errors_as_tool_errors("write a draft into", self._drafts.directory):
            return "saved" if self._drafts.add(reply.message_id, raw) else "already_saved"

    def find_draft(self, message_id: str) -> DraftState:
        for folder in (self._drafts, self._sent):
            with os_errors_as_tool_errors("look into", folder.directory):
                if folder.was_added(message_id) or folder.has_message_id(message_id):
                    return "saved"
        return "not_saved"

    def list_sent(self, since: float, most_bytes: int, read: Callable[[bytes], _Result]) -> list[_Result]:
        with os_errors_as_tool_errors("list", self._sent.directory):
            return list(map(read, self._sent.read_since(since, most_bytes)))

    def find_owner(self) -> str | None:
        with os_errors_as_tool_errors("look at the ledger of", self._directory):
            return self._owner.find()

    def claim_mailbox(self, ledger: str, take_over: bool = False) -> str:
        with os_errors_as_tool_errors("claim", self._directory):
            return self._owner.claim(ledger, take_over=take_over)

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        """Whether there is a file in `new` that the last listing did not see."""
        deadline = time.monotonic() + timeout_s
        while True:
            with os_errors_as_tool_errors("watch", self._directory):
                changed_at, seen = self._seen_new
                new = self._directory / "new"
                found_at = new.stat().st_mtime_ns
                if found_at != changed_at:
                    if any(os.path.join(new, name) not in seen for name in os.listdir(new)):
                        return True
                    self._seen_new = (found_at, seen)  # mails only left
            left = deadline - time.monotonic()
            if left <= 0 or stop.wait(min(POLL_S, left)):
                return False

    def test_connection(self, drafts: bool = False) -> str:
        with os_errors_as_tool_errors("open", self._directory):
            self._scan()
            if not self._read_only:
                check_writable(self._directory)
        if not self._read_only:
            folder = self._drafts if drafts else self._sent
            with os_errors_as_tool_errors("write into", folder.directory):
                folder.check_writable()
        return f"Maildir {self._directory}"

    def close(self) -> None:
        pass

    def _outcomes(self) -> Mapping[str, MailMark]:
        """By the letter of its keyword."""
        letters = self._letters.load()
        return {letters[keyword]: outcome for outcome, keyword in KEYWORDS.items() if keyword in letters}

    def _scan(self) -> list[MailFile]:
        return self._listing.scan(self._outcomes().keys())

    def _states(
        self, mails: Collection[MailFile], inbox_filter: InboxFilter, renamed: _Renamed
    ) -> Iterator[tuple[MailFile, InboxState]]:
        outcomes, left_alone = self._outcomes(), _left_alone(inbox_filter.skip_seen)
        since = inbox_filter.received_since
        for mail in mails:
            outcome = next((outcomes[flag] for flag in mail.flags if flag in outcomes), None)
            if outcome is not None:
                yield mail, outcome
            elif not left_alone.isdisjoint(mail.flags):
                yield mail, "left_alone"
            elif since and _received(mail, renamed) < since:
                yield mail, "too_old"
            else:
                yield mail, "unprocessed"

    def _find_paths(self) -> None:
        self._paths = {mail.id: mail.path for mail in self._scan() if _TRASHED not in mail.flags}

    def _with_file(self, mail_id: str, doing: str, work: Callable[[str], _Result]) -> _Result:
        """`work` with the path of a mail, again where another program renamed the file meanwhile."""
        with os_errors_as_tool_errors(f"{doing} a mail in", self._directory):
            for attempt in range(TRIES):
                if attempt or mail_id not in self._paths:
                    self._find_paths()
                if mail_id not in self._paths:
                    break
                with suppress(FileNotFoundError):
                    return work(self._paths[mail_id])
        raise mail_not_found(mail_id)


def _undisturbed(look: Callable[[_Renamed], _Result]) -> _Result:
    """What a look finds while no other program moves mails from `new` to `cur`, changes their flags or deletes them.

    Where none of them is, the last one, without the mails that it lost sight of.
    """
    for _ in range(TRIES - 1):
        renamed: _Renamed = []
        found = look(renamed)
        if not renamed:
            return found
    return look([])


def _left_alone(skip_seen: bool) -> frozenset[str]:
    """The flags of mails that people took care of."""
    return _LEFT_ALONE | _SEEN if skip_seen else _LEFT_ALONE


def _received(mail: MailFile, renamed: _Renamed) -> float:
    """As Dovecot, by the time of the file; so old that it is left out where the file is `renamed`."""
    try:
        return os.stat(mail.path).st_mtime
    except FileNotFoundError:
        renamed.append(mail)
        return 0.0


def _arrival(mail: MailFile) -> tuple[int, int, str]:
    """Seconds, microseconds and name. Names without a time come last, as they do by name."""
    if match := _TIME.match(mail.id):
        return int(match[1]), int(match[2] or 0), mail.id
    return 2**63, 0, mail.id


def _folder_missing(directory: Path, part: str) -> ToolError:
    if directory.is_dir():
        text = f"{directory} is no Maildir: it has no directory {part}. Make cur, new and tmp in it, or name another"
    else:
        text = f"the Maildir {directory} does not exist. Make it, with directories cur, new and tmp in it"
    return ToolError("mail_folder_missing", text)

"""A Maildir as the mailbox (https://cr.yp.to/proto/maildir.html), with replies in its folder `.Sent` (Maildir++).

Our own reader and not the standard library's `mailbox.Maildir`: that one knows no keywords, keeps no letters that other
programs wrote, and adds a mail to a folder in a way that cannot tell "there already" from "there now".
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

from guarantee_email_agent.integrations.ports import InboxEntry, MailMark, Reply, SentState
from guarantee_email_agent.mcp_servers.command_line import log_diagnostic
from guarantee_email_agent.mcp_servers.mail.compose import compose
from guarantee_email_agent.mcp_servers.mail.mail_store import KEYWORDS, MailListing, check_size, mail_not_found
from guarantee_email_agent.mcp_servers.mail.maildir_keywords import KeywordLetters
from guarantee_email_agent.mcp_servers.tool_error import ToolError

_Result = TypeVar("_Result")
POLL_S: Final = 0.5  # two stat calls each
_PARTS: Final = ("new", "cur", "tmp")
_ABANDONED_S: Final = 36 * 3600  # files in tmp, by the Maildir specification
_TRASHED: Final = "T"
_TRIES: Final = 5  # of finding a mail that another program renames at the same time
_TIME: Final = re.compile(r"(\d{1,12})\.(?:[^.]*M(\d{1,9}))?")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class _MaildirFile(NamedTuple):
    """A file in `new` or `cur`. base: its name without flags, which is its id."""

    base: str
    flags: str
    path: str


class Maildir:
    """A mailbox in a directory. Sending means putting the reply into `.Sent`: atomic, so the proof never lags."""

    proof_lags = False

    def __init__(self, directory: Path, sender: str, *, create: bool = False) -> None:
        """Check that the Maildir is there, and clean up what writers left behind. Raises ToolError."""
        self._directory = directory
        self._sender = sender
        self._sent = directory / ".Sent"
        self._letters = KeywordLetters(directory)
        self._paths: dict[str, str] = {}  # where each id was last seen
        self._seen_new: tuple[int, frozenset[str]] = (0, frozenset())  # `new` as last listed: its change time, and ids
        self._warned = False
        with _os_errors_as_tool_errors("open", directory):
            if create:
                _make_maildir(directory)
            for part in _PARTS:
                if not (directory / part).is_dir():
                    raise _folder_missing(directory, part)
            _remove_abandoned(directory / "tmp")
            _remove_abandoned(self._sent / "tmp")

    def list_unprocessed(self, limit: int) -> MailListing:
        with _os_errors_as_tool_errors("list", self._directory):
            changed_at = (self._directory / "new").stat().st_mtime_ns
            outcomes = self._outcomes()
            mails = self._scan()
            waiting = [mail for mail in mails if outcomes.keys().isdisjoint(mail.flags)]
            self._paths = {mail.base: mail.path for mail in waiting}
            self._seen_new = (changed_at, frozenset(mail.base for mail in mails))
            entries: list[InboxEntry] = []
            for mail in _oldest(waiting, limit):
                if len(entries) == limit:
                    break
                with suppress(FileNotFoundError):  # gone since
                    entries.append(InboxEntry(mail.base, os.stat(self._paths.get(mail.base, mail.path)).st_size))
            return MailListing(tuple(entries), len(waiting))

    def read_raw(self, mail_id: str, max_bytes: int) -> bytes:
        def read(path: str) -> bytes:
            with open(path, "rb") as file:
                check_size(mail_id, os.fstat(file.fileno()).st_size, max_bytes)
                return file.read()

        return self._with_file(mail_id, "read", read)

    def mark(self, mail_id: str, outcome: MailMark) -> None:
        with _os_errors_as_tool_errors("mark a mail in", self._directory):
            letters = self._letters.allocate(KEYWORDS.values())
        ours = {letters[keyword] for keyword in KEYWORDS.values()}

        def rename(path: str) -> None:
            base, flags = _split(os.path.basename(path))
            marked = "".join(sorted(set(flags) - ours | {letters[KEYWORDS[outcome]]}))
            target = str(self._directory / "cur" / f"{base}:2,{marked}")
            if target != path:
                os.rename(path, target)
                self._paths[base] = target

        self._with_file(mail_id, "mark", rename)

    def count_by_outcome(self) -> Mapping[str, int]:
        with _os_errors_as_tool_errors("count", self._directory):
            outcomes = self._outcomes()
            counts: dict[str, int] = {"unprocessed": 0, **dict.fromkeys(KEYWORDS, 0)}
            for mail in self._scan():
                outcome = next((outcomes[flag] for flag in mail.flags if flag in outcomes), None)
                counts[outcome or "unprocessed"] += 1
            return counts

    def send(self, reply: Reply) -> Literal["sent", "already_sent"]:
        raw = compose(reply, self._sender, datetime.now(UTC))
        with _os_errors_as_tool_errors("write a reply into", self._sent):
            self._make_sent_folder()
            if self._find_sent(reply.message_id):
                return "already_sent"
            base = _sent_name(reply.message_id)
            # Seen: a mail that people sent themselves is no news to them.
            target = self._sent / "cur" / f"{base}:2,S"
            # Random: process ids repeat where several containers share the Maildir.
            temporary = self._sent / "tmp" / f"{base}.{secrets.token_hex(8)}"
            if not _write_new_file(raw.replace(b"\r\n", b"\n"), temporary, target):
                return "already_sent"
            try:
                _sync_directory(target.parent)
            except OSError as error:
                text = f"the reply may not last, its folder could not be written to disk: {error.strerror}"
                raise ToolError("mail_unavailable", f"{self._sent}: {text}", retryable=True, uncertain=True) from None
            return "sent"

    def find_sent(self, message_id: str) -> SentState:
        with _os_errors_as_tool_errors("look into", self._sent):
            return "sent" if self._find_sent(message_id) else "not_sent"

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        """Whether there is a file in `new` that the last listing did not see."""
        deadline = time.monotonic() + timeout_s
        while True:
            with _os_errors_as_tool_errors("watch", self._directory):
                changed_at, seen = self._seen_new
                found_at = (self._directory / "new").stat().st_mtime_ns
                if found_at != changed_at:
                    if any(_split(name)[0] not in seen for name in os.listdir(self._directory / "new")):
                        return True
                    self._seen_new = (found_at, seen)  # mails only left
            left = deadline - time.monotonic()
            if left <= 0 or stop.wait(min(POLL_S, left)):
                return False

    def test_connection(self) -> str:
        with _os_errors_as_tool_errors("open", self._directory):
            self._scan()
            self._make_sent_folder()
            for path in (folder / part for part in ("cur", "tmp") for folder in (self._directory, self._sent)):
                if not os.access(path, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return f"Maildir {self._directory}"

    def close(self) -> None:
        pass

    def _outcomes(self) -> Mapping[str, MailMark]:
        """By the letter of its keyword."""
        letters = self._letters.load()
        return {letters[keyword]: outcome for outcome, keyword in KEYWORDS.items() if keyword in letters}

    def _scan(self) -> list[_MaildirFile]:
        """Every mail that is not trashed. `new` first: a mail moved to `cur` meanwhile is seen there, not missed."""
        mails: dict[str, _MaildirFile] = {}
        for part in ("new", "cur"):
            with os.scandir(self._directory / part) as files:
                for file in files:
                    base, flags = _split(file.name)
                    if base[:1] in ("", ".") or _TRASHED in flags or not file.is_file(follow_symlinks=False):
                        continue
                    if file.name.isascii() or not any("\ud800" <= character <= "\udfff" for character in file.name):
                        mails[base] = _MaildirFile(base, flags, file.path)
                    else:
                        self._warn_of_name(file.path)
        return list(mails.values())

    def _warn_of_name(self, path: str) -> None:
        """Once, of a name that cannot be an id, since JSON could not hold it."""
        if not self._warned:
            self._warned = True
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            log_diagnostic(f"mail: {shown}: such mails are passed over: their file names are not in UTF-8. Rename them")

    def _with_file(self, mail_id: str, doing: str, work: Callable[[str], _Result]) -> _Result:
        """`work` with the path of a mail, again where another program renamed the file meanwhile."""
        with _os_errors_as_tool_errors(f"{doing} a mail in", self._directory):
            for attempt in range(_TRIES):
                if attempt or mail_id not in self._paths:
                    self._paths = {mail.base: mail.path for mail in self._scan()}
                if mail_id not in self._paths:
                    break
                with suppress(FileNotFoundError):
                    return work(self._paths[mail_id])
        raise mail_not_found(mail_id)

    def _find_sent(self, message_id: str) -> bool:
        base = _sent_name(message_id)
        if (self._sent / "cur" / f"{base}:2,S").exists():
            return True
        for part in ("new", "cur"):  # a mail program may have added flags since
            with suppress(FileNotFoundError):
                if any(_split(name)[0].partition(",")[0] == base for name in os.listdir(self._sent / part)):
                    return True
        return False

    def _make_sent_folder(self) -> None:
        if not (self._sent / "tmp").is_dir():
            _make_maildir(self._sent)
            (self._sent / "maildirfolder").touch(0o600)  # marks it as a folder for delivery programs
            _sync_directory(self._sent)
            _sync_directory(self._directory)


def _split(name: str) -> tuple[str, str]:
    """A file's name as (base, flags)."""
    base, _, info = name.partition(":")
    return base, info[2:] if info.startswith("2,") else ""


def _oldest(mails: list[_MaildirFile], count: int) -> list[_MaildirFile]:
    """At least `count` mails in the order of delivery. Names begin with the second they were made in."""
    mails.sort()  # by name: right up to the second, and ten times as fast as reading the time out of every name
    end = count
    while 0 < end < len(mails) and mails[end].base[:10] == mails[end - 1].base[:10]:
        end += 1
    return sorted(mails[:end], key=_arrival)


def _arrival(mail: _MaildirFile) -> tuple[int, int, str]:
    """Seconds, microseconds and name. Names without a time come last, as they do by name."""
    if match := _TIME.match(mail.base):
        return int(match[1]), int(match[2] or 0), mail.base
    return 2**63, 0, mail.base


def _sent_name(message_id: str) -> str:
    return f"reply-{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"


def _write_new_file(data: bytes, temporary: Path, target: Path) -> bool:
    """Make a file, whole and on the disk, unless there is one of that name; whether there was none."""
    try:
        with open(temporary, "xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, target)
            return True
        return False
    finally:
        with suppress(OSError):  # whoever opens the Maildir next cleans up
            temporary.unlink()


def _make_maildir(directory: Path) -> None:
    for part in _PARTS:
        (directory / part).mkdir(0o700, parents=True, exist_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(tmp: Path) -> None:
    with suppress(FileNotFoundError), os.scandir(tmp) as files:
        for file in files:
            with suppress(FileNotFoundError):
                status = file.stat(follow_symlinks=False)
                if time.time() - max(status.st_atime, status.st_mtime) > _ABANDONED_S and file.is_file():
                    os.unlink(file.path)


def _folder_missing(directory: Path, part: str) -> ToolError:
    if directory.is_dir():
        text = f"{directory} is no Maildir: it has no directory {part}. Make cur, new and tmp in it, or name another"
    else:
        text = f"the Maildir {directory} does not exist. Make it, with directories cur, new and tmp in it"
    return ToolError("mail_folder_missing", text)


@contextmanager
def _os_errors_as_tool_errors(doing: str, directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        code, reason = "mail_unavailable", error.strerror or type(error).__name__
        retryable = not isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
        if error.errno in _FULL:
            code, reason = "mail_disk_full", f"{reason}. Free some space"
        elif isinstance(error, FileNotFoundError | NotADirectoryError):
            code, reason = "mail_folder_missing", "a directory of the Maildir is missing"
        raise ToolError(code, f"cannot {doing} {directory}: {reason}", retryable) from None

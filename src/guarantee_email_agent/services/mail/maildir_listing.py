"""The mails of a Maildir, each with an id that no other mail has, whatever their files are called."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from string import ascii_lowercase
from typing import Final, NamedTuple

from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.maildir_folder import split_name

logger = logging.getLogger(__name__)

_MAX_NAME_BYTES: Final = 255
_ADDED: Final = ":2,DFPRST."  # to an id, sooner or later: the flags of mail programs, and a mark
_OWN_ID_DIGITS: Final = 12


class MailFile(NamedTuple):
    """A file in `new` or `cur`. id: its name without flags; where several files have that one, one of its own."""

    id: str
    flags: str
    path: str
    inode: int


class MaildirListing:
    """Lists the mails; those that can have no id are passed over, and reported once for each reason."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reported: set[str] = set()

    def scan(self, marks: Collection[str]) -> list[MailFile]:
        """Every mail. `new` first: a mail moved to `cur` meanwhile is seen there, not missed. Raises OSError.

        marks: the flags that are marks of ours.
        """
        mails: dict[str, MailFile] = {}
        namesakes: dict[str, list[MailFile]] = {}
        for part in ("new", "cur"):
            with os.scandir(self._directory / part) as files:
                for file in files:
                    base, flags = split_name(file.name)
                    if base[:1] in ("", ".") or not file.is_file(follow_symlinks=False):
                        continue
                    if not file.name.isascii() and any("\ud800" <= character <= "\udfff" for character in file.name):
                        self._pass_over(file.path, "are not in UTF-8. Rename them")  # JSON could not hold it
                        continue
                    mail = MailFile(base, flags, file.path, file.inode())
                    if base in mails:
                        namesakes.setdefault(base, [mails[base]]).append(mail)
                    mails[base] = mail
        for base, same in namesakes.items():
            del mails[base]
            mails.update((mail.id, mail) for mail in _told_apart(same, marks))
        return [mail for mail in mails.values() if self._can_be_marked(mail, marks)]

    def _can_be_marked(self, mail: MailFile, marks: Collection[str]) -> bool:
        """Whether a name has room for a mark, since a mail without one would be answered and stay in the queue."""
        size = len(os.fsencode(mail.id)) + len(_ADDED) + len(set(mail.flags).difference(_ADDED))
        if size <= _MAX_NAME_BYTES or not set(marks).isdisjoint(mail.flags):
            return True
        self._pass_over(mail.path, "are too long for a mark to be added. Shorten them")
        return False

    def _pass_over(self, path: str, reason: str) -> None:
        if reason not in self._reported:
            self._reported.add(reason)
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            logger.warning("mail: %s: such mails are passed over: their file names %s", shown, reason)


def _told_apart(same: list[MailFile], marks: Collection[str]) -> Iterator[MailFile]:
    """Files with one id, as the mails that they are.

    A marked one keeps the id, under which the ledger knows it. Each other one gets an id of its own, also where none is
    marked: which of them was there first cannot be told, and an id must never pass from one mail to another, while a
    mail under a new id is known by its content. The own id stays as the file moves, and a mark makes it the name.
    """

    def is_marked(mail: MailFile) -> bool:
        return not set(marks).isdisjoint(mail.flags)

    by_inode = {mail.inode: mail for mail in sorted(same, key=is_marked)}  # renamed meanwhile, a file was seen twice
    distinct = sorted(by_inode.values(), key=is_marked)
    if len(distinct) == 1 or is_marked(distinct[-1]):
        yield distinct.pop()
    for mail in distinct:
        with suppress(FileNotFoundError):  # renamed just now; the next listing has it
            status = os.stat(mail.path)
            file = f"{status.st_ino} {status.st_mtime_ns} {status.st_size}"
            yield mail._replace(id=f"{mail.id}~{hashlib.sha256(file.encode()).hexdigest()[:_OWN_ID_DIGITS]}")


_LOCK_WAIT_S: Final = 10.0
_STALE_LOCK_S: Final = 120.0  # Dovecot's own limit


class KeywordLetters:
    """The letters that a Maildir's keywords have in its files' names, as Dovecot keeps them, which shows the same.

    The file `dovecot-keywords` maps a to z to names: `0 $AgentAnswered` stands for `a`.
    """

    def __init__(self, maildir: Path) -> None:
        self._path = maildir / "dovecot-keywords"

    def load(self) -> Mapping[str, str]:
        """Letter by keyword, as far as letters are given out. Raises OSError."""
        try:
            return _parse(read_start(self._path, 1_000_000).decode("utf-8", "surrogateescape"))
        except FileNotFoundError:
            return {}

    def allocate(self, keywords: Collection[str]) -> Mapping[str, str]:
        """Letter by keyword, for each of `keywords`. Raises OSError, and ToolError where no letter is free."""
        letters = self.load()
        if letters.keys() >= set(keywords):
            return letters
        lock = self._path.with_name("dovecot-keywords.lock")
        descriptor = _acquire_lock(lock)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                letters = self.load()
                free = sorted(set(ascii_lowercase).difference(letters.values()))
                new = [keyword for keyword in keywords if keyword not in letters]
                if len(new) > len(free):
                    text = f"{self._path} gives all 26 letters to other keywords; remove one that nobody uses"
                    raise ToolError("mail_unsupported", text)
                given = {**letters, **dict(zip(new, free, strict=False))}
                for keyword, letter in sorted(given.items(), key=itemgetter(1)):
                    file.write(f"{ascii_lowercase.index(letter)} {keyword}\n")
                file.flush()
                os.fsync(file.fileno())
            lock.rename(self._path)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise
        return self.load()


def _parse(text: str) -> dict[str, str]:
    return {
        keyword: ascii_lowercase[int(number)]
        for number, _, keyword in (line.partition(" ") for line in text.splitlines())
        if number.isdecimal() and int(number) < len(ascii_lowercase) and keyword
    }


def _acquire_lock(lock: Path) -> int:
    """Make the lock file, which is also where the new content is written. Raises ToolError where it stays taken."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            return os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            with suppress(FileNotFoundError):
                if time.time() - lock.stat().st_mtime > _STALE_LOCK_S:
                    lock.unlink()
                    continue
        if time.monotonic() > deadline:
            raise ToolError("mail_unavailable", f"{lock} is held by another program", retryable=True)
        time.sleep(0.02)

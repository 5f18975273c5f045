"""The mails of a Maildir, each with an id that no other mail has, whatever their files are called."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

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

"""The proof that a mail was put into a folder of a Maildir, kept where no other program looks for mails.

A reply leaves `.Sent` as soon as another program takes it, and a mail that is gone proves nothing. So its proof is an
empty file of ours, made before the reply is delivered, while that waits in `outgoing`. To deliver it is to rename it
out of there, which is one step: wherever a crash falls, the files say what happened.

- No proof: nothing was delivered.
- A proof, and a file in `outgoing`: not delivered either. A file there is never read, and never taken away by hand.
- A proof alone: it was delivered, whatever became of it since.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.private_file import make_private_folder
from guarantee_email_agent.services.tool_error import ToolError

AGENT_DIRECTORY: Final = "guarantee-email-agent"
"""In the Maildir. Without a dot before it no program takes it for a folder with mails (Maildir++)."""

KEPT_MONTHS: Final = 14
"""Months in which something was delivered; two more than the ledger remembers a mail."""

_MONTH: Final = re.compile(r"\d{4}-\d{2}", re.ASCII)


class MaildirProofs:
    """Proofs by name, in a folder for each month, so that the oldest go all at once. Methods raise OSError."""

    def __init__(self, maildir: Path) -> None:
        self.directory = maildir / AGENT_DIRECTORY
        self._outgoing = self.directory / "outgoing"
        self._proofs = self.directory / "proofs"
        self._locks = self.directory / "locks"

    def make(self) -> None:
        """The directories, where they are missing."""
        for directory in (self._outgoing, self._proofs, self._locks):
            if not directory.is_dir():
                make_private_folder(directory)
                sync_directory(self.directory)
                sync_directory(self.directory.parent)

    def check_usable(self, folder: Path) -> None:
        """Raises OSError, and ToolError where no mail can be renamed from here into the folder."""
        for directory in (self._outgoing, self._proofs, self._locks):
            check_directory_writable(directory)
        if self._outgoing.stat().st_dev != (folder / "cur").stat().st_dev:
            raise other_file_system(folder, self.directory.parent)

    def is_delivered(self, name: str) -> bool:
        # In this order: the mail is there before its proof is, so that one without a mail was delivered.
        return self._find(name) is not None and not (self._outgoing / name).exists()

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """Nobody else delivers under this name meanwhile, in no other process either; the end of one lets go, too."""
        self.make()
        descriptor = os.open(self._locks / name[-1], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def deliver(self, name: str, raw: bytes, target: Path, now: datetime) -> bool:
        """Put a mail at `target`, whole and on the disk, with its proof. Under `exclusive`, and not `is_delivered`.

        False: another one lies there already, which stays, and which the proof is then for.

        now: names the month that the proof belongs to. Raises ToolError `mail_unsupported` where one rename cannot do
        it, and one that is `uncertain` where the mail was put there and may not last.
        """
        outgoing = self._outgoing / name
        descriptor = os.open(outgoing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            try:
                file.write(raw)
                file.flush()
                os.fsync(descriptor)
            except OSError:
                with suppress(OSError):  # it has to stay, but not to fill a full disk
                    os.truncate(outgoing, 0)
                raise
        sync_directory(self._outgoing)
        if self._find(name) is None:
            month = self._proofs / f"{now:%Y-%m}"
            if not month.is_dir():
                month.mkdir(0o700, exist_ok=True)
                sync_directory(self._proofs)
                self._remove_oldest()
            os.close(os.open(month / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            sync_directory(month)
        try:
            rename_without_replacing(outgoing, target)
        except FileExistsError:  # its name follows from the Message-ID, so that its proof was removed
            os.unlink(outgoing)
            return False
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise other_file_system(target.parent.parent, self.directory.parent) from None
            raise
        try:
            sync_directory(target.parent)
        except OSError as error:
            text = f"a mail may not last, its folder could not be written to disk: {error.strerror}"
            raise ToolError("mail_unavailable", f"{target.parent}: {text}", retryable=True, uncertain=True) from None
        return True

    def _find(self, name: str) -> Path | None:
        """The proof, which a later try in another month finds where it was first made."""
        paths = (self._proofs / month / name for month in reversed(self._months()))
        return next((path for path in paths if path.exists()), None)

    def _months(self) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(filter(_MONTH.fullmatch, os.listdir(self._proofs)))
        return []

    def _remove_oldest(self) -> None:
        """By how many months there are and not by the clock, which may be wrong by years."""
        for month in self._months()[:-KEPT_MONTHS]:
            shutil.rmtree(self._proofs / month, ignore_errors=True)


def other_file_system(folder: Path, maildir: Path) -> ToolError:
    text = f"{folder} lies on another file system than {maildir}, so that no proof of sending can be kept"
    return ToolError("mail_unsupported", f"{text}. Put both on one")


def rename_without_replacing(source: str | Path, target: str | Path) -> None:
    """`os.rename`, but FileExistsError where it would overwrite another mail. Raises OSError, as the next two do.

    Not by a hard link, which may be refused for files of other users, and which mail programs see under both names.
    """
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(source), None, str(target))
    os.rename(source, target)


def check_directory_writable(directory: Path) -> None:
    """Raises OSError with the reason why no files can be made in a directory."""
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        read_only = os.statvfs(directory).f_flag & os.ST_RDONLY  # raises FileNotFoundError
        number = errno.EROFS if read_only else errno.EACCES
        raise OSError(number, os.strerror(number), str(directory))


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""A folder of a Maildir that we write mails into, such as `.Sent`: each Message-ID once.

A mail's file name follows from its Message-ID, and so does that of the proof that it was added. Other programs give a
mail that they move or write anew a name of their own; that one is known by its header.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.private_file import make_private_folder
from guarantee_email_agent.files.text_file import NoFileError, read_start
from guarantee_email_agent.services.call_errors import ToolError

AGENT_DIRECTORY: Final = "guarantee-email-agent"
"""In the Maildir. Without a dot before it no program takes it for a folder with mails (Maildir++)."""

KEPT_MONTHS: Final = 14
"""Months in which something was delivered; two more than the ledger remembers a mail."""

_MONTH: Final = re.compile(r"\d{4}-\d{2}", re.ASCII)


class MaildirProofs:
    """The proof that a mail was put into a folder of a Maildir, kept where no other program looks for mails.

    A reply leaves `.Sent` as soon as another program takes it, and a mail that is gone proves nothing. So its proof is
    an empty file of ours, made before the reply is delivered, while that waits in `outgoing`. To deliver it is to
    rename it out of there, which is one step: wherever a crash falls, the files say what happened.

    - No proof: nothing was delivered.
    - A proof, and a file in `outgoing`: not delivered either. A file there is never read, nor taken away by hand.
    - A proof alone: it was delivered, whatever became of it since.

    Proofs lie in a folder for each month, so that the oldest go all at once. Methods raise OSError.
    """

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


PARTS: Final = ("new", "cur", "tmp")
TRIES: Final = 5  # of finding a mail that another program renames at the same time

_ABANDONED_S: Final = 36 * 3600  # files in tmp, by the Maildir specification
_INFO: Final = re.compile(r"2,([\w,]*)|1,\S*", re.ASCII)  # after the last colon; 1 is experimental, and tells nothing
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MAX_HEADER_BYTES: Final = 64_000
_MESSAGE_ID: Final = re.compile(rb"^message-id:\s*(<[^<>\s]{1,900}>)", re.IGNORECASE | re.MULTILINE)


class MaildirFolder:
    """Made by what needs it first. flags: of what is added, sorted. Methods raise OSError, and `add` ToolError, too."""

    def __init__(self, directory: Path, flags: str, proofs: MaildirProofs) -> None:
        self.directory = directory
        self._flags = flags
        self._proofs = proofs
        self._message_ids: dict[str, bytes] = {}  # of mails whose header was read, by the name without flags

    def add(self, message_id: str, raw: bytes) -> bool:
        """Store a mail, whole and on the disk, unless one was stored with this Message-ID; whether it was none."""
        self.make()
        name = self._proof_name(message_id)
        with self._proofs.exclusive(name):
            if self._proofs.is_delivered(name):
                return False
            path = self.directory / "cur" / f"{_name(message_id)}:2,{self._flags}"
            return self._proofs.deliver(name, raw.replace(b"\r\n", b"\n"), path, datetime.now(UTC))

    def was_added(self, message_id: str) -> bool:
        """Whether `add` stored a mail with this Message-ID, wherever other programs took it since."""
        return self._proofs.is_delivered(self._proof_name(message_id))

    def has_message_id(self, message_id: str) -> bool:
        """Whether a mail has this Message-ID in its header, under whatever name. Reads each header once."""
        for _ in range(TRIES):
            found, renamed = self._read_headers()
            if message_id.encode() in found:
                return True
            if not renamed:
                break
        return False

    def read_since(self, since: float, most_bytes: int) -> Iterator[bytes]:
        """The beginning of each mail that came here since then, none of one that cannot be read."""
        for part in ("new", "cur"):
            with suppress(FileNotFoundError), os.scandir(self.directory / part) as files:
                for file in files:
                    try:
                        if file.stat().st_mtime >= since:
                            yield read_start(file.path, most_bytes)
                    except (FileNotFoundError, NoFileError):
                        continue
                    except OSError:  # it may be any answer
                        yield b""

    def make(self) -> None:
        """The folder, or what it lacks of one, with its place in the Maildir on the disk."""
        if not all((self.directory / part).is_dir() for part in PARTS):
            make_maildir(self.directory)
            (self.directory / "maildirfolder").touch(0o600)  # marks it as a folder for delivery programs
            sync_directory(self.directory)
            sync_directory(self.directory.parent)

    def check_writable(self) -> None:
        """Raises OSError where the folder cannot be made or written."""
        self.make()
        check_writable(self.directory)
        self._proofs.make()
        self._proofs.check_usable(self.directory)

    def _proof_name(self, message_id: str) -> str:
        """Of its own for each folder: a draft proves nothing of what is sent later."""
        return f"{self.directory.name.strip('.').lower()}-{_name(message_id)}"

    def _read_headers(self) -> tuple[frozenset[bytes], bool]:
        """The Message-IDs that are here, and whether a file was renamed while they were read."""
        known: dict[str, bytes] = {}
        renamed = False
        for part in ("new", "cur"):
            with suppress(FileNotFoundError), os.scandir(self.directory / part) as files:
                for file in files:
                    base = split_name(file.name)[0]
                    try:
                        read = self._message_ids.get(base)
                        known[base] = read_message_id(file.path) if read is None else read
                    except FileNotFoundError:
                        renamed = True
                    except OSError:  # no mail, or none of ours: what we added has its proof
                        continue
        self._message_ids = known
        return frozenset(known.values()), renamed


def split_name(name: str) -> tuple[str, str]:
    """A file's name as (base, flags). A mail that a person saved may have other colons: `Re: 00.eml`."""
    base, colon, info = name.rpartition(":")
    if colon and (found := _INFO.fullmatch(info)):
        return base, found[1] or ""
    return name, ""


def make_maildir(directory: Path) -> None:
    for part in PARTS:
        make_private_folder(directory / part)


def check_writable(directory: Path) -> None:
    """Raises OSError where mails cannot be written into a Maildir, or renamed in it: a mark renames out of `new`."""
    for part in PARTS:
        check_directory_writable(directory / part)


def remove_abandoned(tmp: Path) -> None:
    """What writers that crashed left in a Maildir's `tmp`."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(tmp) as files:
        for file in files:
            with suppress(FileNotFoundError):
                status = file.stat(follow_symlinks=False)
                if time.time() - max(status.st_atime, status.st_mtime) > _ABANDONED_S and file.is_file():
                    os.unlink(file.path)


@contextmanager
def os_errors_as_tool_errors(doing: str, directory: Path) -> Iterator[None]:
    """doing: what failed, as a verb phrase that the directory's name completes."""
    try:
        yield
    except OSError as error:
        code, reason = "mail_unavailable", error.strerror or type(error).__name__
        retryable = not isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError | FileExistsError)
        if error.errno in _FULL:
            code, reason = "mail_disk_full", f"{reason}. Free some space"
        elif isinstance(error, FileNotFoundError):
            code, reason = "mail_folder_missing", "a directory of the Maildir is missing. Make it"
        elif isinstance(error, NotADirectoryError | FileExistsError):
            code, reason = (
                "mail_folder_missing",
                "there is a file where a directory of the Maildir belongs. Move it away",
            )
        elif isinstance(error, PermissionError):
            reason = f"{reason}. Give the user of the agent the right to write there"
        elif error.errno == errno.EROFS:
            reason, retryable = f"{reason}. Mount it so that it can be written", False
        raise ToolError(code, f"cannot {doing} {directory}: {reason}", retryable) from None


def _name(message_id: str) -> str:
    return f"reply-{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"


def read_message_id(path: str) -> bytes:
    """The Message-ID of a mail; empty where it has none."""
    header = re.split(rb"\r?\n\r?\n", read_start(path, _MAX_HEADER_BYTES), maxsplit=1)[0]
    found = _MESSAGE_ID.search(header)
    return found[1] if found else b""

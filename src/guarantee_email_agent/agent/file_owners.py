"""What root makes while it only checks belongs to whom it was made for, or the agent could not write it later."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from guarantee_email_agent.config.settings import Config


@contextmanager
def owned_by_their_folders(config: Config) -> Iterator[None]:
    """Files that root makes in the block get the owner of the folder that they are in. For others nothing changes."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        yield
        return
    before = _files(config)
    try:
        yield
    finally:
        for path in sorted(_files(config) - before):  # a folder before what is in it
            with suppress(OSError):  # somebody else took it away, or the file system has no owners
                _hand_over(path)


def _files(config: Config) -> set[Path]:
    """Everything that a check makes, as far as it is there."""
    found = [config.logging.file] if config.logging.file is not None else []
    if config.mcp.ticketing_system.built_in:
        found += _beginning_with(config.tickets.database)
    if "://" not in (ledger := config.ledger_location):
        found += _beginning_with(Path(ledger))
    if config.mailbox.server.built_in and config.mailbox.imap.host is None:
        for folder in (".Sent", ".Drafts", "guarantee-email-agent"):
            found += (config.mailbox.maildir / folder, *(config.mailbox.maildir / folder).glob("*"))
    return {path.absolute() for path in found if os.path.lexists(path)}


def _beginning_with(file: Path) -> list[Path]:
    """A database with what SQLite puts beside it."""
    return [file.with_name(f"{file.name}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]


def _hand_over(path: Path) -> None:
    """Never what a link leads to: the folder is another user's, who may have put one there."""
    folder = path.parent.stat()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        made = os.fstat(descriptor)
        only_name = stat.S_ISDIR(made.st_mode) or (stat.S_ISREG(made.st_mode) and made.st_nlink == 1)
        if made.st_uid == 0 and folder.st_uid != 0 and only_name:
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
    finally:
        os.close(descriptor)

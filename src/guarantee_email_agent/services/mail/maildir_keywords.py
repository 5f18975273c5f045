"""Keywords as letters in the file names of a Maildir, the way Dovecot keeps them.

The file `dovecot-keywords` in the Maildir maps the letters a to z to names: `0 $AgentAnswered` stands for `a`. So a
Dovecot on the same Maildir shows the same keywords. (https://doc.dovecot.org: "Maildir Mailbox Format", IMAP keywords)
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from string import ascii_lowercase
from typing import Final

from guarantee_email_agent.services.tool_error import ToolError

_LOCK_WAIT_S: Final = 10.0
_STALE_LOCK_S: Final = 120.0  # Dovecot's own limit


class KeywordLetters:
    """The letters that a Maildir's keywords have."""

    def __init__(self, maildir: Path) -> None:
        self._path = maildir / "dovecot-keywords"

    def load(self) -> Mapping[str, str]:
        """Letter by keyword, as far as letters are given out. Raises OSError."""
        try:
            return _parse(self._path.read_text("utf-8", "surrogateescape"))
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

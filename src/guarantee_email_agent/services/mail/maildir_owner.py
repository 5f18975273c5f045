"""Which ledger a Maildir is served with: a file in the Maildir says so, whoever comes."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.private_file import make_private_folder
from guarantee_email_agent.services.mail.maildir_files import sync_directory
from guarantee_email_agent.services.mail.maildir_proofs import AGENT_DIRECTORY
from guarantee_email_agent.services.tool_error import ToolError

_LEDGER_ID: Final = re.compile(r"[0-9a-f]{16}")


class MaildirOwner:
    """Methods raise OSError, and ToolError for a file that names no ledger."""

    def __init__(self, maildir: Path) -> None:
        self._file = maildir / AGENT_DIRECTORY / "ledger"

    def find(self) -> str | None:
        """The ledger's id; None where nobody has claimed the Maildir."""
        try:
            text = self._file.read_text(encoding="ascii", errors="replace").strip()
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

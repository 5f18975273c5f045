"""Reading a mail that somebody saved as a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from guarantee_email_agent.email.parsing.email import MAX_MAIL_BYTES, Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.files.text_file import InputFileError, read_bytes
from guarantee_email_agent.utils.errors import ProcessingError
from guarantee_email_agent.utils.text import printable

_OUTLOOK_FILE: Final = b"\xd0\xcf\x11\xe0"


def read_mail_file(path: str, read_stdin: Callable[[int], bytes]) -> tuple[bytes, Email]:
    """The mail (RFC 5322) in a file, as it is and parsed; `-` is stdin. read_stdin: at most so many bytes of it.

    Raises ProcessingError, with the file's name and a remedy, for what cannot be read, is too large, is empty, is
    Outlook's own format, is no mail or has no sender.
    """
    name = "stdin" if path == "-" else printable(path)
    raw = _read(path, name, read_stdin)
    try:
        return raw, parse_email(raw)
    except ProcessingError as error:
        raise ProcessingError(f"{name}: {error.message}", error.code) from None


def _read(path: str, name: str, read_stdin: Callable[[int], bytes]) -> bytes:
    if path == "-":
        raw = read_stdin(MAX_MAIL_BYTES + 1)
        if len(raw) > MAX_MAIL_BYTES:
            raise ProcessingError(f"{name}: the mail is larger than {MAX_MAIL_BYTES:,} bytes", "mail_too_large")
    else:
        try:
            raw = read_bytes(path, MAX_MAIL_BYTES)
        except InputFileError as error:
            code = error.code.replace("document_", "mail_file_")
            raise ProcessingError(f"{name}: {error.message}", code) from None
    if not raw.strip():
        raise ProcessingError(f"{name}: there is no mail in it, not a word", "mail_file_empty")
    if raw.startswith(_OUTLOOK_FILE):
        raise ProcessingError(
            f"{name}: this is a file of Outlook's own. Save the mail as .eml, from Outlook on the web or by dragging "
            "it into another mail program",
            "mail_file_outlook",
        )
    return _without_mbox_line(raw)


def _without_mbox_line(raw: bytes) -> bytes:
    """Some programs put a line in front that only mbox files have: `From ada@example.com Sat Jan 17 …`."""
    return raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw

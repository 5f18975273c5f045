"""The secret key of the hashes that identify mails in the ledger, in Message-IDs and in tickets."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.identity import content_identity
from guarantee_email_agent.files.text_file import read_start
from guarantee_email_agent.utils.errors import ConfigurationError

_KEY_BYTES: Final = 32


def identity_key(config: Config) -> bytes:
    """32 bytes: from LEDGER_KEY, else from a file beside a ledger that is a file, made where it is missing.

    Raises ConfigurationError where there is none and none can be made. Agents on several machines cannot make one each:
    a mail would have another name on every machine, and be answered by every one.
    """
    if config.secrets.ledger_key is not None:
        return hashlib.sha256(config.secrets.ledger_key.encode("utf-8", "surrogateescape")).digest()
    location = config.ledger_location
    if "://" in location:
        raise ConfigurationError(
            "LEDGER_KEY is not set, but the ledger may be shared with other machines. Set it to a long random text, "
            "the same for every agent on this inbox",
            "config_missing_secret",
        )
    return _key_from_file(Path(location))


def known_identity_key(config: Config) -> bytes | None:
    """The same, and nothing is written: None where it would be made."""
    if config.secrets.ledger_key is None:
        location = config.ledger_location
        ledger = Path(location)
        can_be_made = "://" not in location and os.access(ledger.absolute().parent, os.W_OK)  # else it says why not
        if can_be_made and not _key_file(ledger).exists() and not _has_content(ledger):
            return None
    return identity_key(config)


def mailbox_name(config: Config) -> str:
    """The same for every agent on one inbox, and for no other inbox."""
    mailbox, server = config.mailbox, config.mailbox.server
    if not server.built_in:
        return " ".join((server.url or str(server.command), *server.args, mailbox.from_address or ""))
    if mailbox.imap.host is None:
        return str(mailbox.maildir)
    return f"{mailbox.imap.user or mailbox.from_address}@{mailbox.imap.host}/{mailbox.imap.folder}"


def key_of_mailbox(mailbox_name: str, key: bytes) -> str:
    """What the ledger knows a mailbox by."""
    return content_identity(f"mailbox {mailbox_name}".encode("utf-8", "surrogatepass"), key)


def key_of_location(mailbox_name: str, mail_id: str, key: bytes) -> str:
    """What the ledger knows the place of a mail by: ids are unique in one mailbox only."""
    return content_identity(f"place {mailbox_name} {mail_id}".encode("utf-8", "surrogatepass"), key)


def _key_from_file(ledger: Path) -> bytes:
    file = _key_file(ledger)
    try:
        if not file.exists():
            # Another agent that starts at this moment makes the key first, and then the ledger.
            if _has_content(ledger) and not file.exists():
                raise ConfigurationError(
                    f"{file} is missing, without which every mail would look new. Restore it from a backup, set "
                    "LEDGER_KEY, or name another ledger",
                    "ledger_no_key",
                )
            _create_key(file)
        key = bytes.fromhex(read_start(file, 1000).decode("ascii"))
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read or made ({error.strerror}). Name a ledger in a folder that can be written, or set "
            "LEDGER_KEY",
            "ledger_no_key",
        ) from None
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ConfigurationError(f"{file} holds no key. Restore it from a backup", "ledger_no_key")
    return key


def _key_file(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.key")


def _has_content(ledger: Path) -> bool:
    return ledger.exists() and ledger.stat().st_size > 0


def _create_key(file: Path) -> None:
    """Atomically, so that two agents that start together read the same key."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, encoding="ascii") as draft:
        draft.write(secrets.token_hex(_KEY_BYTES))
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, file)

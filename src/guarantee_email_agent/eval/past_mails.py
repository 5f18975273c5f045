"""Mail that came already: in the configured inbox, or saved as `.eml` in a folder. Nothing is marked or sent."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import MAX_MAIL_BYTES, Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.answer_command import connected, read_mail_file
from guarantee_email_agent.services.clients import MailClient
from guarantee_email_agent.services.services import create_mail_client
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError, ProcessingError
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import printable

_OF_ONE_MAIL: Final = ("_not_found", "_too_large", "_unreadable")


class PastMails(Protocol):
    """ids: of all, in an order of their own that stays the same."""

    async def ids(self) -> list[str]: ...

    async def read(self, mail_id: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Period:
    """In which mails were received. None: open."""

    since: datetime | None = None
    until: datetime | None = None

    def has(self, moment: datetime) -> bool:
        return (self.since is None or self.since <= moment) and (self.until is None or moment < self.until)


ANY_TIME: Final = Period()


@dataclass(frozen=True, slots=True)
class FoundMails:
    """ids: of the mails of a period. first, last: when the earliest and the latest came; None where nobody knows.

    unread: how many could not be read, and undated: how many nobody can tell the time of; those are left out.
    """

    ids: tuple[str, ...]
    first: datetime | None
    last: datetime | None
    unread: int
    undated: int

    @property
    def period(self) -> str:
        return f"{self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}" if self.first and self.last else "an unknown period"

    def left_out(self) -> Iterator[str]:
        """A line for each reason that mails are left out for."""
        for count, why in (self.unread, "that cannot be read"), (self.undated, "of which nobody knows when it came"):
            if count:
                yield f"Left out: {pluralize(count, 'mail')} {why}"


async def find_mails(mails: PastMails, period: Period, least: int) -> FoundMails:
    """Raises MCPConnectionError and IntegrationError where the mailbox fails, ConfigurationError for too few mails."""
    found, moments, unread, undated = [], [], 0, 0
    for mail_id in await mails.ids():
        if (read := await read_mail(mails, mail_id)) is None:
            unread += 1
            continue
        moment = received_at(read[1])
        undated += moment is None
        if moment is not None and period.has(moment):
            found.append(mail_id)
            moments.append(moment)
    result = FoundMails(tuple(found), min(moments, default=None), max(moments, default=None), unread, undated)
    if len(found) < least:
        counted = ". ".join((f"{pluralize(len(found), 'mail')} found, and {least} needed", *result.left_out()))
        raise ConfigurationError(f"{counted}. Name a longer time, or ask for fewer", "sample_too_few")
    return result


async def read_mail(mails: PastMails, mail_id: str) -> tuple[bytes, Email] | None:
    """None for one that is gone, too large, or no mail."""
    try:
        raw = await mails.read(mail_id)
        return raw, parse_email(raw)
    except ProcessingError:
        return None
    except IntegrationError as error:
        if not error.code.endswith(_OF_ONE_MAIL):
            raise
        return None


def received_at(email: Email) -> datetime | None:
    try:
        moment = datetime.fromisoformat(email.received)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


@asynccontextmanager
async def past_mails(config: Config, folder: Path | None) -> AsyncIterator[PastMails]:
    """folder: with `.eml` files; the inbox if None. Raises ConfigurationError and MCPConnectionError."""
    if folder is not None:
        yield _Folder(folder)
        return
    async with opened_inbox(config) as inbox:
        yield inbox


@asynccontextmanager
async def opened_inbox(config: Config) -> AsyncIterator[Inbox]:
    """Raises MCPConnectionError, and ConfigurationError for what is missing to reach it."""
    # To observe is to read only, and asks the server for nothing else.
    client = create_mail_client(replace(config, agent=replace(config.agent, mode="observe")), SystemClock())
    try:
        await connected(client.test_connection())
        yield Inbox(client)
    finally:
        await client.close()


@dataclass(frozen=True, slots=True)
class Inbox:
    client: MailClient

    async def ids(self) -> list[str]:
        return sorted(mail.id for mail in await self.client.list_mails())

    async def read(self, mail_id: str) -> bytes:
        return await self.client.read_raw(mail_id, MAX_MAIL_BYTES)


@dataclass(frozen=True, slots=True)
class _Folder:
    folder: Path

    async def ids(self) -> list[str]:
        if not self.folder.is_dir():
            problem = f"{printable(str(self.folder))} is no folder. Name one with mails saved as .eml"
            raise ConfigurationError(problem, "sample_no_folder")

        def refuse(error: OSError) -> None:  # of what it holds nothing would be drawn
            problem = f"{printable(str(error.filename))} cannot be looked into ({error.strerror}). Allow it"
            raise ConfigurationError(problem, "sample_no_folder") from None

        found = (
            os.path.join(place, name) for place, _, names in os.walk(self.folder, onerror=refuse) for name in names
        )
        # Outlook's own cannot be read: they are counted as that.
        return sorted(path for path in found if path.lower().endswith((".eml", ".msg")) and os.path.isfile(path))

    async def read(self, mail_id: str) -> bytes:
        return read_mail_file(mail_id, lambda _: b"")[0]

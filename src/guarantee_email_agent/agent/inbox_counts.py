"""How the inbox stands, by the marks of its mails and by what the ledger knows of those without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from guarantee_email_agent.integrations.ports import InboxFilter, Mailbox
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.utils.errors import AgentError

MAX_LISTED: Final = 100_000
"""Mails in one list. Only where mails are observed, which stay in the inbox as they are, do so many come together."""


async def count_inbox(
    mailbox: Mailbox, ledger: Ledger | None, inbox_filter: InboxFilter, location_key: Callable[[str], str]
) -> dict[str, int]:
    """As the mailbox counts them, with those that were only observed told from those to answer.

    ledger: None before there is one. location_key: what the ledger knows the place of a mail by, from the mail's id.
    """
    counts = await mailbox.count_by_outcome(inbox_filter)
    waiting = counts.pop("unprocessed", 0)
    if not waiting:
        return {"unprocessed": 0, "observed": 0, **counts}
    if ledger is None:
        return {"unprocessed": waiting, "observed": 0, **counts}
    entries = await mailbox.list_unprocessed(MAX_LISTED, inbox_filter)
    observed = await asyncio.to_thread(ledger.observed, [location_key(entry.id) for entry in entries])
    return {"unprocessed": max(waiting - len(observed), 0), "observed": len(observed), **counts}


class UnlistedMails:
    """Those that wait beyond a list that was full, counted beside the work: a large mailbox may take minutes for it.

    on_counted: called once there is another `number`. Belongs to one event loop.
    """

    def __init__(self, on_counted: Callable[[], None]) -> None:
        self.number = 0
        self._on_counted = on_counted
        self._counting: asyncio.Task[None] | None = None

    def count(self, mailbox: Mailbox, inbox_filter: InboxFilter, listed: int) -> None:
        """Begin to count, unless that goes on already. listed: how many mails the full list held."""
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count(mailbox, inbox_filter, listed), name="count the inbox")

    def reset(self) -> None:
        """There are none: the list was not full."""
        self.number = 0
        if self._counting is not None:
            self._counting.cancel()

    async def aclose(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)

    async def _count(self, mailbox: Mailbox, inbox_filter: InboxFilter, listed: int) -> None:
        with suppress(AgentError):  # mails can be worked on all the same
            counts = await mailbox.count_by_outcome(inbox_filter)
            self.number = max(0, counts.get("unprocessed", 0) - listed)
            self._on_counted()

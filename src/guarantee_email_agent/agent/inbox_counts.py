"""How the inbox stands, by the marks of its mails and by what the ledger knows of those without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from guarantee_email_agent.integrations.ports import InboxFilter, Mailbox
from guarantee_email_agent.ledger.ledger import Ledger

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

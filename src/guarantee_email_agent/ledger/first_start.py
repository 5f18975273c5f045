"""When `run` was first started on a mailbox: what came before is nothing that the agent was to answer.

Of each mailbox, since several may share a ledger, and one ledger may be taken from a trial to the real inbox.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, func, select, update

from guarantee_email_agent.ledger import tables
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection
from guarantee_email_agent.ledger.tables import agents, facts, mails

OF_NO_MAILBOX: Final = "first_start"
"""A fact (seconds since 1970) of a ledger that did not tell mailboxes apart: it goes to the first that asks."""

_TAKE_OVER: Final = update(facts).where(facts.c.name == OF_NO_MAILBOX).values(name=bindparam("new_name"))
_LAST_WRITES: Final = select(
    select(func.max(mails.c.changed_at)).scalar_subquery().label("of_mails"),
    select(func.max(agents.c.seen_at)).scalar_subquery().label("of_agents"),
)


def known_first_start(connection: PreparedConnection, mailbox_key: str) -> float | None:
    """In seconds since 1970; None before the first start. Raises LedgerError (`ledger_corrupt`) for no number.

    mailbox_key: a keyed hash of the mailbox's name.
    """
    for name in (_fact_name(mailbox_key), OF_NO_MAILBOX):
        value = connection.value(tables.FACT, {"name": name})
        if value is not None:
            return _moment(value)
    return None


def valid_first_start(connection: PreparedConnection, mailbox_key: str) -> float | None:
    """As `known_first_start`; None also where the next start takes its place.

    One that lies in the future was saved by a clock that was ahead, and would keep every mail from being answered. But
    where anything followed it the clock is behind now, and a first start now would have the whole past answered.
    """
    first, now = known_first_start(connection, mailbox_key), float(connection.value(tables.CURRENT_TIME))
    if first is None or first <= now:
        return first
    writes = connection.one(_LAST_WRITES)
    last = connection.value(tables.FACT, {"name": _last_start_name(mailbox_key)})
    later = (writes.of_mails, writes.of_agents, None if last is None else _moment(last))
    return first if any(moment is not None and moment > first for moment in later) else None


def save_first_start(connection: PreparedConnection, mailbox_key: str) -> float:
    """As `valid_first_start`; where none does it is now, and from then on the same."""
    name, last_name = _fact_name(mailbox_key), _last_start_name(mailbox_key)
    if connection.value(tables.FACT, {"name": name}) is None:
        connection.execute(_TAKE_OVER, {"new_name": name})
    now, first = float(connection.value(tables.CURRENT_TIME)), valid_first_start(connection, mailbox_key)
    if first is None:
        for each in (name, last_name):
            connection.execute(tables.SET_FACT, {"name": each, "value": repr(now)})
        return now
    last = connection.value(tables.FACT, {"name": last_name})
    if last is None or _moment(last) < now:
        connection.execute(tables.SET_FACT, {"name": last_name, "value": repr(now)})
    return first


def _moment(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise LedgerError("The ledger's first start is damaged. Restore it from a backup", "ledger_corrupt") from None


def _fact_name(mailbox_key: str) -> str:
    return f"first_start {mailbox_key}"


def _last_start_name(mailbox_key: str) -> str:
    """Of the latest start by the clock of its time: one that is behind does not set it back."""
    return f"last_start {mailbox_key}"

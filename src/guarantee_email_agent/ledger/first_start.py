"""When `run` was first started on a mailbox: what came before is nothing that the agent was to answer.

Of each mailbox, since several may share a ledger, and one ledger may be taken from a trial to the real inbox.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, update

from guarantee_email_agent.ledger import tables
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection
from guarantee_email_agent.ledger.tables import facts

OF_NO_MAILBOX: Final = "first_start"
"""A fact (seconds since 1970) of a ledger that did not tell mailboxes apart: it goes to the first that asks."""

_SET_BACK: Final = (  # at_name, now
    update(facts).where(facts.c.name == bindparam("at_name")).values(value=bindparam("now"))
)
_TAKE_OVER: Final = update(facts).where(facts.c.name == OF_NO_MAILBOX).values(name=bindparam("new_name"))


def known_first_start(connection: PreparedConnection, mailbox_key: str) -> float | None:
    """In seconds since 1970; None before the first start. Raises LedgerError (`ledger_corrupt`) for no number.

    mailbox_key: a keyed hash of the mailbox's name.
    """
    for name in (_fact_name(mailbox_key), OF_NO_MAILBOX):
        value = connection.value(tables.FACT, {"name": name})
        if value is not None:
            return _moment(value)
    return None


def save_first_start(connection: PreparedConnection, mailbox_key: str) -> float:
    """As `known_first_start`; before the first start it is now, and from then on the same.

    One that lies in the future was saved by a clock that was wrong, and would keep every mail from being answered.
    """
    name = _fact_name(mailbox_key)
    if connection.value(tables.FACT, {"name": name}) is None:
        connection.execute(_TAKE_OVER, {"new_name": name})
    now = float(connection.value(tables.CURRENT_TIME))
    connection.execute(tables.SAVE_FACT, {"name": name, "value": repr(now)})
    first = _moment(connection.value(tables.FACT, {"name": name}))
    if first <= now:
        return first
    connection.execute(_SET_BACK, {"at_name": name, "now": repr(now)})
    return now


def _moment(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise LedgerError("The ledger's first start is damaged. Restore it from a backup", "ledger_corrupt") from None


def _fact_name(mailbox_key: str) -> str:
    return f"first_start {mailbox_key}"

"""What the ledger knows beside mails, as facts by their name: first starts, loaded settings, costs.

When `run` was first started is known of each mailbox: what came before is nothing that the agent was to answer. Several
mailboxes may share a ledger, and one ledger may be taken from a trial to the real inbox.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, select

from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.tables import by_dialect, current_time, facts

LEDGER_ID: Final = "ledger_id"
"""A fact: what a mailbox is marked with that is served with this ledger."""

TOO_OLD: Final = "too_old "
"""Before a mailbox's key: the fact how many mails of its inbox were too old to be answered, at the last count."""

_COST: Final = "model_cost "


def _write(insert: Any) -> Any:
    """Open: name, value."""
    write = insert(facts)
    return write.on_conflict_do_update(index_elements=[facts.c.name], set_={"value": write.excluded.value})


_WRITE: Final = by_dialect(_write)


def read_fact(connection: Connection, name: str) -> str | None:
    """None where it is not known."""
    value: str | None = connection.scalar(select(facts.c.value).where(facts.c.name == name))
    return value


def write_fact(connection: Connection, name: str, value: str) -> None:
    """In place of what was known."""
    connection.execute(_WRITE[connection.dialect.name], {"name": name, "value": value})


def known_first_start(connection: Connection, mailbox_key: str) -> float | None:
    """In seconds since 1970; None before the first start. Raises LedgerError (`ledger_corrupt`) for no number.

    mailbox_key: a keyed hash of the mailbox's name.
    """
    return _number(connection, _first_start_name(mailbox_key), "first start is")


def save_first_start(connection: Connection, mailbox_key: str, earliest: float | None) -> float:
    """As `known_first_start`; where it is not known it is now, and from then on the same.

    One in the future was by a clock that was ahead, or is seen by one that is behind: from then on it is `earliest`,
    the first moment that it can have been at, as it was told when it was saved.
    """
    name = _first_start_name(mailbox_key)
    first, now = known_first_start(connection, mailbox_key), current_time(connection)
    if first is None:
        first = now
        if earliest is not None:
            write_fact(connection, f"earliest_{name}", repr(earliest))
    elif first > now and (bound := _number(connection, f"earliest_{name}", "first start is")) is not None:
        first = min(first, bound)
    write_fact(connection, name, repr(first))
    return first


def _first_start_name(mailbox_key: str) -> str:
    return f"first_start {mailbox_key}"


def _number(connection: Connection, name: str, what: str) -> float | None:
    """None where it is not known. what: it is and a verb, for the LedgerError (`ledger_corrupt`) for no number."""
    value = read_fact(connection, name)
    try:
        return None if value is None else float(value)
    except ValueError:
        raise LedgerError(f"The ledger's {what} damaged. Restore it from a backup", "ledger_corrupt") from None


class ModelCosts:
    """What the language model cost on each day (UTC), of everybody on one ledger.

    Raises LedgerError, `ledger_corrupt` where a sum is no number.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def today(self) -> float:
        """US dollars since 0:00 UTC."""
        with self._database.read_transaction() as connection:
            return _cost(connection, _name_of_today(connection))

    def add(self, usd: float) -> None:
        """Count what an answer of the language model cost."""
        with self._database.write_transaction() as connection:
            self._database.lock(connection)  # two that read the same sum would write one of the two
            name = _name_of_today(connection)
            write_fact(connection, name, repr(_cost(connection, name) + usd))


def _cost(connection: Connection, name: str) -> float:
    return _number(connection, name, "costs are") or 0.0


def _name_of_today(connection: Connection) -> str:
    return f"{_COST}{datetime.fromtimestamp(current_time(connection), UTC):%Y-%m-%d}"

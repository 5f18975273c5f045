"""Which days were told in a summary: one agent tells a day, once, over crashes and restarts."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final, Literal

from sqlalchemy import bindparam, delete, update

from guarantee_email_agent.ledger import tables
from guarantee_email_agent.ledger.database import Database
from guarantee_email_agent.ledger.tables import facts

KEPT_DAYS: Final = 40
_PREFIX: Final = "summary "
_TOLD_UNTIL: Final = "summarized until "
_DONE: Final = "told"
_AT_NAME: Final = facts.c.name == bindparam("at_name")
_SET: Final = update(facts).where(_AT_NAME).values(value=bindparam("new_value"))
_REMOVE: Final = delete(facts).where(_AT_NAME)
_FORGET: Final = delete(facts).where(facts.c.name >= _PREFIX, facts.c.name < bindparam("oldest"))

Turn = Literal["first", "again", "no"]
"""Whether it is ours to tell: `again` after somebody who may have told it, and never said so; `no` where it was told,
or somebody is telling it."""


class Summaries:
    """day: the one on which the period ends. mailbox_key: a keyed hash. Raises LedgerError where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, mailbox_key: str, day: date, lease_s: float) -> Turn:
        """Ask for the turn, and have it for so many seconds."""
        name = _name(mailbox_key, day)
        with self._database.write_transaction() as connection:
            self._database.lock_for_admission(connection)
            now = float(connection.value(tables.CURRENT_TIME))
            ends_at = repr(now + lease_s)
            value = connection.value(tables.FACT, {"name": name})
            if value is None:
                connection.execute(tables.SAVE_FACT, {"name": name, "value": ends_at})
                connection.execute(_FORGET, {"oldest": f"{_PREFIX}{day - timedelta(days=KEPT_DAYS):%Y-%m-%d}"})
                return "first"
            if value == _DONE or 0.0 < float(value) - now <= lease_s:
                return "no"
            connection.execute(_SET, {"at_name": name, "new_value": ends_at})
            return "again"

    def told(self, mailbox_key: str, day: date, end: float) -> None:
        """The day was told. end: that of its period, in seconds since 1970."""
        with self._database.write_transaction() as connection:
            connection.execute(_SET, {"at_name": _name(mailbox_key, day), "new_value": _DONE})
            connection.execute(_REMOVE, {"at_name": f"{_TOLD_UNTIL}{mailbox_key}"})
            connection.execute(tables.SAVE_FACT, {"name": f"{_TOLD_UNTIL}{mailbox_key}", "value": repr(end)})

    def told_until(self, mailbox_key: str) -> float | None:
        """The end of the period that was told last; None where none was."""
        with self._database.read_transaction() as connection:
            value = connection.value(tables.FACT, {"name": f"{_TOLD_UNTIL}{mailbox_key}"})
        return None if value is None else float(value)

    def not_told(self, mailbox_key: str, day: date) -> None:
        """It is known for certain that nobody told it: whoever asks next has the first turn."""
        with self._database.write_transaction() as connection:
            connection.execute(_REMOVE, {"at_name": _name(mailbox_key, day)})


def _name(mailbox_key: str, day: date) -> str:
    return f"{_PREFIX}{day:%Y-%m-%d} {mailbox_key}"

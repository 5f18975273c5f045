"""Reads a ledger beside the agents that write it: what became of mails, for people to look at. It needs no key."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Final, Self, get_args

from sqlalchemy import Select, func, inspect, select, text

from guarantee_email_agent.integrations.ports import MailMark, Outcome
from guarantee_email_agent.ledger.database import LedgerError, open_database
from guarantee_email_agent.ledger.schema import SCHEMA_VERSION
from guarantee_email_agent.ledger.tables import facts, mails
from guarantee_email_agent.utils.errors import ConfigurationError

OUTCOMES: Final[tuple[Outcome, ...]] = (*get_args(MailMark), "observed")
UNFINISHED: Final = "unfinished"
_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A mail; docs/ledger.md explains each column. Times are seconds since 1970, UTC."""

    mail_key: str
    stage: str
    attempts: int
    owner: str | None
    ticket_id: str | None
    reply_message_id: str | None
    delivery: str
    outcome: Outcome | None
    reason: str
    created_at: float
    changed_at: float
    replied_at: float | None
    thread_key: str | None


@dataclass(frozen=True, slots=True)
class LedgerCount:
    """How many mails came to an outcome for a reason; outcome: None for those that have none yet."""

    outcome: Outcome | None
    reason: str
    mails: int


_COLUMNS: Final = [mails.c[field.name] for field in fields(LedgerRow)]


class LedgerReader:
    """Nothing is made, migrated or written. Every method raises LedgerError where the database fails."""

    def __init__(self, location: str, *, now: Callable[[], float] = time.time, timeout_s: float = _TIMEOUT_S) -> None:
        """location: as `open_ledger` has it. Raises ConfigurationError for what is no ledger of this version."""
        if "://" not in location and not os.path.exists(location):
            raise _missing(location)
        self._database = open_database(location, now, timeout_s, read_only=True)
        try:
            self._check()
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._database.name

    def counts(self) -> list[LedgerCount]:
        """By outcome and reason, the most first."""
        number = func.count()
        statement = select(mails.c.outcome, mails.c.reason, number).group_by(mails.c.outcome, mails.c.reason)
        ordered = statement.order_by(number.desc(), mails.c.outcome, mails.c.reason)
        return [LedgerCount(*row) for row in self._rows(ordered)]

    def page(
        self, outcome: Outcome | None = None, *, unfinished: bool = False, skip: int, limit: int
    ) -> list[LedgerRow]:
        """The mails that changed last, the newest first. outcome: only those; unfinished: only those without one."""
        statement = select(*_COLUMNS).order_by(mails.c.changed_at.desc(), mails.c.mail_key)
        if outcome is not None:
            statement = statement.where(mails.c.outcome == outcome)
        elif unfinished:
            statement = statement.where(mails.c.outcome.is_(None))
        return [LedgerRow(*row) for row in self._rows(statement.offset(skip).limit(limit))]

    def _rows(self, statement: Select[Any]) -> list[Any]:
        with self._database.read_transaction() as connection:
            if self._database.dialect == "postgresql":
                connection.execute(text("SET TRANSACTION READ ONLY"))
            return list(connection.execute(statement))

    def _check(self) -> None:
        with self._database.read_transaction() as connection:
            if not inspect(connection).has_table(facts.name):
                raise _missing(self.name)
            version = connection.execute(select(facts.c.value).where(facts.c.name == "schema_version")).scalar()
        if version is None or not version.isdecimal():
            raise LedgerError(f"The ledger {self.name} is damaged. Restore it from a backup", "ledger_corrupt")
        if int(version) > SCHEMA_VERSION:
            raise ConfigurationError(
                f"The ledger {self.name} was written by a newer version of the agent (schema {version}; this one "
                f"knows {SCHEMA_VERSION}). Update this program",
                "ledger_newer_schema",
            )
        if int(version) < SCHEMA_VERSION:
            raise ConfigurationError(
                f"The ledger {self.name} was written by an earlier version of the agent (schema {version}). 'check' "
                "or 'run' brings it up to date",
                "ledger_older_schema",
            )


def _missing(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"There is no ledger at {name} yet. 'run' makes it, or correct agent.ledger", "ledger_missing"
    )

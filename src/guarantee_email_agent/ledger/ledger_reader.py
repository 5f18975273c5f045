"""Reads a ledger beside the agents that write it: what became of mails, for people to look at. It needs no key."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import ColumnElement, Select, func, select, text

from guarantee_email_agent.ledger.agents import ALL_AGENTS, RunningAgent, running_agent
from guarantee_email_agent.ledger.comparisons import COUNTS, ComparisonCount
from guarantee_email_agent.ledger.database import open_database, sqlite_file
from guarantee_email_agent.ledger.facts import TOO_OLD
from guarantee_email_agent.ledger.interventions import SHORT_KEY
from guarantee_email_agent.ledger.opening import has_schema, missing_columns
from guarantee_email_agent.ledger.tables import current_time, facts, locations, mails
from guarantee_email_agent.services.ports import Outcome
from guarantee_email_agent.utils.errors import ConfigurationError

_TIMEOUT_S: Final = 2.0
_ROOM_BYTES: Final = 65_536  # more than the writes of one mail take


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A mail; docs/ledger.md explains each column. Times are seconds since 1970, UTC."""

    mail_key: str
    stage: str
    attempts: int
    owner: str | None
    ticket_id: str | None
    outcome: Outcome | None
    reason: str
    created_at: float
    changed_at: float
    since: float
    span_s: float
    worked_s: float | None
    cost_usd: float | None

    @property
    def short_key(self) -> str:
        """What people call it by; `find` says where it is not enough."""
        return self.mail_key[:SHORT_KEY]


@dataclass(frozen=True, slots=True)
class LedgerCount:
    """How many mails came to an outcome for a reason; outcome: None for those that have none yet."""

    outcome: Outcome | None
    reason: str
    mails: int


class NoSuchMailError(ConfigurationError):
    """No mail, or more than one, has this id."""


_COLUMNS: Final = [mails.c[field.name] for field in fields(LedgerRow)]


class LedgerReader:
    """Nothing is made, migrated or written. Every method raises LedgerError where the database fails."""

    def __init__(self, location: str, *, now: Callable[[], float] = time.time, timeout_s: float = _TIMEOUT_S) -> None:
        """location: as `open_ledger` has it. Raises ConfigurationError for what is no ledger of this version."""
        with suppress(PermissionError):  # whether there is one, this user cannot see
            if (file := sqlite_file(location)) is not None and not file.exists():
                raise _missing(str(file))
        self._location = location
        self._database = open_database(location, now, timeout_s, read_only=True)
        try:
            self._require_ledger()
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

    def now(self) -> float:
        """Seconds since 1970 on the clock of all who share this ledger."""
        with self._database.read_transaction() as connection:
            return current_time(connection)

    def outcomes(
        self, outcomes: Sequence[Outcome], *, since: float = 0.0, until: float | None = None, limit: int
    ) -> list[LedgerRow]:
        """The last `limit` mails that came to one of these outcomes of [since, until); the newest last."""
        wanted = select(*_COLUMNS).where(mails.c.outcome.in_(outcomes), *_changed_in(since, until))
        ordered = wanted.order_by(mails.c.changed_at.desc(), mails.c.mail_key).limit(limit)
        return [LedgerRow(*row) for row in reversed(self._rows(ordered))]

    def unfinished(self, limit: int) -> list[LedgerRow]:
        """Mails that have not ended: those that are worked on, or due, or due first, come first."""
        ordered = select(*_COLUMNS).where(mails.c.outcome.is_(None)).order_by(mails.c.since + mails.c.span_s)
        return [LedgerRow(*row) for row in self._rows(ordered.limit(limit))]

    def counts(self, since: float | None = None, until: float | None = None) -> list[LedgerCount]:
        """By outcome and reason, the most first. since: only outcomes, from then on; until: before then."""
        conditions = [] if since is None else [mails.c.outcome.is_not(None), *_changed_in(since, until)]
        number, kind = func.count(), (mails.c.outcome, mails.c.reason)
        counted = select(*kind, number).where(*conditions).group_by(*kind).order_by(number.desc(), *kind)
        return [LedgerCount(*row) for row in self._rows(counted)]

    def agents(self) -> list[RunningAgent]:
        """The agents that run, or were killed, in the order in which they were started."""
        return [running_agent(row) for row in self._rows(ALL_AGENTS)]

    def comparisons(self) -> list[ComparisonCount]:
        """What people sent beside what the agent drafted, or would have sent; none where nobody compared yet."""
        with self._database.read_transaction() as connection:
            if missing_columns(connection):
                return []
        rows = [(*row[:3], None if row[3] is None else round(float(row[3]), 1)) for row in self._rows(COUNTS)]
        return sorted(
            (ComparisonCount(*row) for row in rows), key=lambda each: (each.outcome, -each.mails, each.comparison)
        )

    def too_old(self) -> int | None:
        """Mails that are left alone since they are too old, in all inboxes together; None where none was counted."""
        wanted = select(facts.c.value).where(facts.c.name.startswith(TOO_OLD, autoescape=True))
        counts = [int(row.value) for row in self._rows(wanted) if row.value.isdecimal()]
        return sum(counts) if counts else None

    def no_room(self) -> str | None:
        """Why nothing can be written where a ledger lies that is a file; None where it can, or nobody can tell."""
        if (file := sqlite_file(self._location)) is None:
            return None
        try:
            with TemporaryFile(dir=file.absolute().parent) as tried:
                tried.write(bytes(_ROOM_BYTES))
                tried.flush()
                os.fsync(tried.fileno())
        except OSError as error:  # who only looks may have no right to write
            return error.strerror if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO) else None
        return None

    def find(self, prefix: str) -> LedgerRow:
        """The one mail whose key begins so. Raises NoSuchMailError for none and for several."""
        # By the index: `g` comes behind every hexadecimal digit.
        beginning_so = select(*_COLUMNS).where(mails.c.mail_key >= prefix, mails.c.mail_key < f"{prefix}g")
        found = [LedgerRow(*row) for row in self._rows(beginning_so.order_by(mails.c.mail_key).limit(2))]
        if not found:
            raise NoSuchMailError(f"The ledger has no mail {prefix}. 'log' and 'status' list them", "ledger_no_mail")
        if len(found) > 1:
            raise NoSuchMailError(f"Several mails begin with {prefix}. Write more of the id", "ledger_ambiguous_mail")
        return found[0]

    def require_key(self, key: bytes) -> None:
        """Raises ConfigurationError for another key than the agents', by which no location is known."""
        self._require_ledger(key)

    def at(self, location_key: str) -> LedgerRow | None:
        """The mail that was seen at this location."""
        statement = select(*_COLUMNS).join(locations).where(locations.c.place == location_key)
        return next((LedgerRow(*row) for row in self._rows(statement)), None)

    def places(self, mail_keys: Collection[str]) -> dict[str, str]:
        """The mail key at each location of these mails."""
        wanted = select(locations.c.place, locations.c.mail_key).where(locations.c.mail_key.in_(mail_keys))
        return {row.place: row.mail_key for row in self._rows(wanted)}

    def _rows(self, statement: Select[Any]) -> list[Any]:
        with self._database.read_transaction() as connection:
            if self._database.dialect == "postgresql":
                connection.execute(text("SET TRANSACTION READ ONLY"))
            return list(connection.execute(statement))

    def _require_ledger(self, key: bytes | None = None) -> None:
        with self._database.read_transaction() as connection:
            if not has_schema(self._database, connection, key):
                raise _missing(self.name)


def _changed_in(since: float, until: float | None) -> list[ColumnElement[bool]]:
    return [mails.c.changed_at >= since, *([] if until is None else [mails.c.changed_at < until])]


def _missing(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"There is no ledger at {name} yet. 'run' makes it, or correct agent.ledger", "ledger_missing"
    )

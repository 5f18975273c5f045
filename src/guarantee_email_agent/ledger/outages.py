"""Outages of services, each as one agent saw it: they outlive the agent, and are remembered for a year.

Machines have networks of their own, so what one agent finds down another may reach: each writes rows of its own, and
ends those. What an agent that runs no more has left open is taken over by one that uses the same service.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from sqlalchemy import Double, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.tables import NOW, agents, outages

SILENT_S: Final = 60.0
"""An agent that was silent for so long may be gone: others take over what it found down."""

FORGOTTEN_S: Final = 86_400.0
"""An outage that nobody has confirmed for so long ended, as far as is known, when it was last confirmed."""

KEPT_S: Final = 365 * 86_400.0

_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_HASH: Final = re.compile(r"[0-9a-f]{32,128}")
_TOKEN: Final = re.compile(r"[!-~]{1,300}")


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a service at one address, or all of it where `part` is empty. address_key: a keyed hash."""

    service: str
    part: str
    address_key: str


@dataclass(frozen=True, slots=True)
class OutageReport:
    """What an agent saw of an outage.

    id: 32 hexadecimal digits, its own for each outage. began_ago_s, ended_ago_s: seconds, since clocks differ; None
    while it lasts. proved: whether the service has answered; else only nobody waits for it any more. waiting: the most
    mails that waited in the inbox; None where nobody knows.
    """

    id: str
    place: Place
    code: str
    began_ago_s: float
    ended_ago_s: float | None = None
    proved: bool = False
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class OpenOutage:
    """One that somebody else saw begin, and nobody end. is_ours: that agent is gone, and it was taken over from it."""

    id: str
    place: Place
    code: str
    began_ago_s: float
    waiting: int | None
    is_ours: bool


@dataclass(frozen=True, slots=True)
class RecordedOutage:
    """One of a service at one address, as all agents together saw it. Times are seconds since 1970, UTC.

    seen_at: when it was confirmed last. ended_at: None where nobody saw its end. code: of the agent that saw it first.
    """

    service: str
    code: str
    began_at: float
    seen_at: float
    ended_at: float | None
    waiting: int | None


def _save(insert: Any) -> Any:
    """Open: id, owner, service, part, address_key, code, began_ago_s, ended_ago_s, proved, waiting."""
    save = insert(outages).values(
        began_at=NOW - bindparam("began_ago_s", type_=Double),
        seen_at=NOW,
        ended_at=NOW - bindparam("ended_ago_s", type_=Double),
    )
    changing = ("owner", "code", "began_at", "seen_at", "ended_at", "proved", "waiting")
    return save.on_conflict_do_update(
        index_elements=[outages.c.id], set_={name: save.excluded[name] for name in changing}
    )


_SAVE: Final = {"sqlite": _save(sqlite.insert), "postgresql": _save(postgresql.insert)}
_IS_OPEN: Final = outages.c.ended_at.is_(None)
_IS_FORGOTTEN: Final = outages.c.seen_at < NOW - FORGOTTEN_S
_OPEN: Final = (
    select(
        outages,
        (NOW - outages.c.began_at).label("began_ago_s"),
        (agents.c.seen_at >= NOW - SILENT_S).label("owner_runs"),
        _IS_FORGOTTEN.label("is_forgotten"),
    )
    .join_from(outages, agents, outages.c.owner == agents.c.owner, isouter=True)
    .where(_IS_OPEN)
    .order_by(outages.c.began_at, outages.c.id)
)
_TAKE_OVER: Final = (  # at_id, at_owner, new_owner
    update(outages)
    .where(_IS_OPEN, outages.c.id == bindparam("at_id"), outages.c.owner == bindparam("at_owner"))
    .values(owner=bindparam("new_owner"))
)
_CLOSE_FORGOTTEN: Final = update(outages).where(_IS_OPEN, _IS_FORGOTTEN).values(ended_at=outages.c.seen_at)
_FORGET: Final = delete(outages).where(outages.c.ended_at < NOW - KEPT_S)


ALL_OUTAGES: Final = select(outages).order_by(
    outages.c.service, outages.c.address_key, outages.c.began_at, outages.c.id
)


class SeenOutages:
    """Raises LedgerError where the database fails, or for what is no hash, code or id. To be repeated at will."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, owner: str, reports: Sequence[OutageReport]) -> None:
        """Write down what this agent saw; a later report with the same id takes the place of the earlier one."""
        with self._database.write_transaction() as connection:
            for report in reports:
                connection.execute(_SAVE, _values(owner, report))
            connection.execute(_FORGET)

    def take_over(self, owner: str, used: Collection[tuple[str, str]]) -> list[OpenOutage]:
        """What lasts as far as others know, the longest first; what an agent has left that is gone is ours from now on.

        used: service and address key of all that this agent asks. Rows that it took over are among these until it has
        saved their end.
        """
        with self._database.read_transaction() as connection:
            found = connection.rows(_OPEN)
        if any(row.is_forgotten for row in found):  # such as one of a service that is asked no more
            with self._database.write_transaction() as connection:
                connection.execute(_CLOSE_FORGOTTEN)
        rows = [row for row in found if not row.is_forgotten and (row.service, row.address_key) in used]
        orphans = {row.id: row.owner for row in rows if row.owner != owner and not row.owner_runs}
        taken = {row.id for row in rows if row.owner == owner}
        if orphans:
            with self._database.write_transaction() as connection:
                for at_id, at_owner in orphans.items():
                    values = {"at_id": at_id, "at_owner": at_owner, "new_owner": owner}
                    if connection.execute(_TAKE_OVER, values):
                        taken.add(at_id)
        return [
            OpenOutage(
                row.id,
                Place(row.service, row.part, row.address_key),
                row.code,
                max(row.began_ago_s, 0.0),  # a clock may have gone back
                row.waiting,
                row.id in taken,
            )
            for row in rows
        ]


def united(rows: Iterable[Any]) -> list[RecordedOutage]:
    """From rows of ALL_OUTAGES: what overlaps is one outage of which several agents, or parts, tell. By its begin."""
    found: list[RecordedOutage] = []
    last_place = None
    for row in rows:
        place = row.service, row.address_key
        outage = RecordedOutage(row.service, row.code, row.began_at, row.seen_at, row.ended_at, row.waiting)
        if place == last_place and outage.began_at <= _end(found[-1]):
            outage = _together(found.pop(), outage)
        found.append(outage)
        last_place = place
    return sorted(found, key=lambda outage: outage.began_at)


def _end(outage: RecordedOutage) -> float:
    return inf if outage.ended_at is None else outage.ended_at


def _together(one: RecordedOutage, other: RecordedOutage) -> RecordedOutage:
    waiting = [each.waiting for each in (one, other) if each.waiting is not None]
    return replace(
        one,
        seen_at=max(one.seen_at, other.seen_at),
        ended_at=None if None in (one.ended_at, other.ended_at) else max(_end(one), _end(other)),
        waiting=max(waiting, default=None),
    )


def _values(owner: str, report: OutageReport) -> dict[str, Any]:
    return {
        "id": _checked(report.id, _HASH),
        "owner": _checked(owner, _TOKEN),
        "service": _checked(report.place.service, _CODE),
        "part": _checked(report.place.part, _CODE) if report.place.part else "",
        "address_key": _checked(report.place.address_key, _HASH),
        "code": _checked(report.code, _CODE),
        "began_ago_s": report.began_ago_s,
        "ended_ago_s": report.ended_ago_s,
        "proved": report.proved,
        "waiting": report.waiting,
    }


def _checked(value: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(value):
        raise LedgerError(f"The ledger takes no such entry of an outage: {pattern.pattern}", "ledger_invalid_value")
    return value

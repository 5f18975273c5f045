"""What this agent sees of outages, in the ledger: a later agent goes on from there, and people look back at it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from guarantee_email_agent.agent.mail_model import OVER_COST_LIMIT
from guarantee_email_agent.agent.observer import DaemonObserver
from guarantee_email_agent.agent.outages import DAY_S, CurrentOutages, Outage
from guarantee_email_agent.email.identity import content_identity
from guarantee_email_agent.ledger.agents import as_code
from guarantee_email_agent.ledger.outages import OpenOutage, OutageReport, Place, SeenOutages


@dataclass(slots=True)
class _Record:
    """A row that this agent writes. ended_at: as `Outage.since`. unsaved: whether the ledger has it as it is."""

    id: str
    outage: Outage
    waiting: int | None
    ended_at: float | None = None
    proved: bool = False
    unsaved: bool = True


class OutageHistory(DaemonObserver):
    """Keeps what this agent sees of outages.

    owner: names this process in the ledger. key: what its hashes are keyed with. now: as `time.monotonic`.
    What cannot be written now, since the ledger itself may be down, is written later.
    """

    def __init__(
        self,
        ledger: SeenOutages,
        owner: str,
        key: bytes,
        outages: CurrentOutages,
        tell_back: Callable[[Outage], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """tell_back: as in `CurrentOutages.heard_of`."""
        self._ledger, self._owner, self._key = ledger, owner, key
        self._outages, self._tell_back, self._now = outages, tell_back, now
        self._waiting: int | None = None
        self._records: dict[str, _Record] = {}
        self._over: list[_Record] = []  # unsaved, and followed by another one
        # Taken over from agents that are gone, by name, the longest first: several may have seen the same one.
        self._left: dict[str, list[tuple[OpenOutage, Outage]]] = {}

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:  # noqa: ARG002 - a DaemonObserver
        self._waiting = waiting
        self._count_waiting()

    def outages_changed(self, outages: Sequence[Outage]) -> None:
        for outage in outages:
            self._began(outage)
        self._count_waiting()
        down = {outage.name for outage in outages}
        for name, record in self._records.items():
            if name not in down and record.ended_at is None:
                record.ended_at, record.proved = self._now(), self._outages.is_proved_back(record.outage)
                record.unsaved = True

    async def exchange(self) -> None:
        """Save what this agent saw, and hear of what others did. Raises LedgerError; then it is to be repeated."""
        self._end_left()
        records = [*self._over, *(each for each in self._records.values() if each.unsaved or each.ended_at is None)]
        if records:
            reports = [self._report(record) for record in records]
            for record in records:
                record.unsaved = False  # what changes from here on is for the next time
            try:
                await asyncio.to_thread(self._ledger.save, self._owner, reports)
            except BaseException:
                for record in records:
                    record.unsaved = True
                raise
            self._over = [record for record in self._over if record.unsaved]
        used = {self._key_of(service, address): (service, address) for service, address in self._outages.addresses}
        rows = await asyncio.to_thread(self._ledger.take_over, self._owner, used.keys())
        known = {record.id for record in (*self._records.values(), *self._over)}
        heard = [
            (row, self._outage(row, *used[row.place.service, row.place.address_key]))
            for row in rows
            if row.id not in known
        ]
        self._left = {}
        for row, outage in heard:
            if row.is_ours:
                self._left.setdefault(outage.name, []).append((row, outage))
        today = [(row, outage) for row, outage in heard if not _is_of_earlier_day(row)]
        self._outages.heard_of(
            [outage for row, outage in today if row.is_ours],
            [outage for row, outage in today if not row.is_ours],
            self._tell_back,
        )

    def _began(self, outage: Outage) -> None:
        """It began, or lasts, or was not over when it seemed so."""
        record = self._records.get(outage.name)
        if record is not None and (record.ended_at is None or record.outage.since == outage.since):
            record.unsaved = record.unsaved or record.outage != outage or record.ended_at is not None
            record.outage, record.ended_at = outage, None
            return
        if record is not None and record.unsaved:
            self._over.append(record)
        left = self._left.get(outage.name, [])
        if left and outage.since <= left[0][1].since:
            row, _ = left.pop(0)
            self._records[outage.name] = _Record(row.id, outage, row.waiting)
        else:
            self._records[outage.name] = _Record(secrets.token_hex(16), outage, None)

    def _count_waiting(self) -> None:
        for record in self._records.values():
            if record.ended_at is None and self._waiting is not None:
                record.waiting = max(self._waiting, record.waiting or 0)

    def _end_left(self) -> None:
        """What was taken over and has answered, or is counted otherwise by now."""
        still_left = self._outages.left
        for name in [name for name in self._left if name not in still_left]:
            for row, outage in self._left.pop(name):
                proved = self._outages.has_answered(name, outage.since)
                self._over.append(_Record(row.id, outage, row.waiting, self._now(), proved))

    def _report(self, record: _Record) -> OutageReport:
        outage, now = record.outage, self._now()
        service, address_key = self._key_of(outage.service, outage.address)
        return OutageReport(
            record.id,
            Place(service, outage.part, address_key),
            as_code(outage.code),
            now - outage.since,
            None if record.ended_at is None else now - record.ended_at,
            record.proved,
            record.waiting,
        )

    def _outage(self, row: OpenOutage, service: str, address: str) -> Outage:
        return Outage(service, address, "", row.code, "", self._now() - row.began_ago_s, row.place.part)

    def _key_of(self, service: str, address: str) -> tuple[str, str]:
        """What the ledger knows it by: an address may hold what is nobody's business."""
        return as_code(service), content_identity(f"address {address}".encode(), self._key)


def _is_of_earlier_day(row: OpenOutage) -> bool:
    """Whether it is the cost limit of a day (UTC) that is over."""
    now = time.time()
    return row.code == OVER_COST_LIMIT and (now - row.began_ago_s) // DAY_S < now // DAY_S

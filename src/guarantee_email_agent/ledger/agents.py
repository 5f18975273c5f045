"""Which agents run on a ledger: each says so every few seconds, and what it can say in codes and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import case, delete, func, null, select, update

from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.ledger.database import Database
from guarantee_email_agent.ledger.tables import NOW, TOKEN, agents, by_dialect, mails, require_form

FORGOTTEN_S: Final = 86_400.0
"""After so many seconds of silence, or so far ahead of the clock, the entry of an agent that was killed goes."""

_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_NO_CODE: Final = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class ReportedOutage:
    """A service that an agent finds down. since: seconds since 1970, on that agent's clock."""

    service: str
    code: str
    since: float


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What an agent says of itself. waiting: mails in its inbox without an outcome, at its last look.

    oldest_received: when the oldest of these came, in seconds since 1970.
    """

    version: str
    mode: Mode
    waiting: int | None = None
    oldest_received: float | None = None
    outages: Sequence[ReportedOutage] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What one mail took of an agent so far. cost_usd: of the language model; None where it is not known."""

    seconds: float
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class RunningAgent:
    """An agent as the ledger knows it. started_at, seen_at: seconds since 1970 on the ledger's clock."""

    owner: str
    version: str
    mode: str
    started_at: float
    seen_at: float
    waiting: int | None
    oldest_received: float | None
    outages: tuple[ReportedOutage, ...]


def _save(insert: Any) -> Any:
    """Open: owner, version, mode, waiting, oldest_received, outages."""
    save = insert(agents).values(started_at=NOW, seen_at=NOW)
    changing = ("version", "mode", "seen_at", "waiting", "oldest_received", "outages")
    return save.on_conflict_do_update(
        index_elements=[agents.c.owner], set_={name: save.excluded[name] for name in changing}
    )


_SAVE: Final = by_dialect(_save)
ALL_AGENTS: Final = select(agents).order_by(agents.c.started_at, agents.c.owner)


class RunningAgents:
    """The agents' side: each writes its own entry. Raises LedgerError where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, owner: str, report: AgentReport, work: Mapping[str, Work] | None = None) -> None:
        """Say that this agent runs, and how it fares. work: by mail key, since the last call; it is added up."""
        values = {
            "owner": require_form("owner", owner, TOKEN),
            "version": require_form("version", report.version, TOKEN),
            "mode": report.mode,
            "waiting": report.waiting,
            "oldest_received": report.oldest_received,
            "outages": json.dumps(
                [
                    [require_form("service", each.service, _CODE), require_form("code", each.code, _CODE), each.since]
                    for each in report.outages
                ]
            ),
        }
        with self._database.write_transaction() as connection:
            connection.execute(_SAVE[connection.dialect.name], values)
            connection.execute(delete(agents).where(func.abs(agents.c.seen_at - NOW) > FORGOTTEN_S))
            for mail_key, done in (work or {}).items():
                paid = func.coalesce(mails.c.cost_usd, case((mails.c.worked_s.is_(None), 0.0)))
                sums = {
                    "worked_s": func.coalesce(mails.c.worked_s, 0.0) + done.seconds,
                    "cost_usd": null() if done.cost_usd is None else paid + done.cost_usd,
                }
                connection.execute(update(mails).where(mails.c.mail_key == mail_key).values(**sums))

    def names(self) -> list[str]:
        """Of all agents that are listed."""
        with self._database.read_transaction() as connection:
            return list(connection.scalars(select(agents.c.owner)))

    def leave(self, owner: str) -> None:
        """This agent ends as it should: no entry stays."""
        with self._database.write_transaction() as connection:
            connection.execute(delete(agents).where(agents.c.owner == owner))


def as_code(text: str) -> str:
    """In the ledger's alphabet: a foreign server may have chosen it."""
    return _NO_CODE.sub("_", text)[:100] or "unknown"


def running_agent(row: Any) -> RunningAgent:
    """From a row of ALL_AGENTS."""
    try:
        outages = tuple(ReportedOutage(*each) for each in json.loads(row.outages))
    except (ValueError, TypeError):  # which ones, nobody knows
        outages = (ReportedOutage("unknown", "unreadable", row.seen_at),)
    return replace(RunningAgent(*row), outages=outages)

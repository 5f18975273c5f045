"""What the language model cost on each day (UTC), as facts of the ledger; those of the last days are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import bindparam, delete, update

from guarantee_email_agent.ledger import tables
from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection
from guarantee_email_agent.ledger.tables import facts

KEPT_DAYS: Final = 40
_PREFIX: Final = "model_cost "
_SET: Final = update(facts).where(facts.c.name == bindparam("at_name")).values(value=bindparam("usd"))
_FORGET: Final = delete(facts).where(  # oldest
    facts.c.name >= _PREFIX, facts.c.name < bindparam("oldest")
)


class ModelCosts:
    """Of everybody on one ledger. Raises LedgerError, `ledger_corrupt` where a sum is no number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def today(self) -> float:
        """US dollars since 0:00 UTC."""
        with self._database.read_transaction() as connection:
            return _cost(connection, _fact_name(_today(connection)))

    def add(self, usd: float) -> None:
        """Count what an answer of the language model cost."""
        with self._database.write_transaction() as connection:
            self._database.lock_for_admission(connection)  # two that read the same sum would write one of the two
            today = _today(connection)
            name = _fact_name(today)
            total = repr(_cost(connection, name) + usd)
            connection.execute(tables.SAVE_FACT, {"name": name, "value": total})
            connection.execute(_SET, {"at_name": name, "usd": total})
            connection.execute(_FORGET, {"oldest": _fact_name(today - timedelta(days=KEPT_DAYS))})


def _cost(connection: PreparedConnection, name: str) -> float:
    value = connection.value(tables.FACT, {"name": name})
    try:
        return 0.0 if value is None else float(value)
    except ValueError:
        raise LedgerError("The ledger's costs are damaged. Restore it from a backup", "ledger_corrupt") from None


def _today(connection: PreparedConnection) -> datetime:
    return datetime.fromtimestamp(float(connection.value(tables.CURRENT_TIME)), UTC)


def _fact_name(day: datetime) -> str:
    return f"{_PREFIX}{day:%Y-%m-%d}"

"""What the agent of a mailbox loaded last, as a fact of the ledger: digests by name, and no value of any setting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, update

from guarantee_email_agent.ledger import tables
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection
from guarantee_email_agent.ledger.tables import facts

_SET: Final = update(facts).where(facts.c.name == bindparam("at_name")).values(value=bindparam("loaded"))


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """at: seconds since 1970. digests: keyed hashes, by the dotted name of a setting or the name of a file."""

    at: float
    digests: Mapping[str, str]


def known_loaded_settings(connection: PreparedConnection, mailbox_key: str) -> LoadedSettings | None:
    """None before the first start. Raises LedgerError (`ledger_corrupt`) for what we did not write."""
    value = connection.value(tables.FACT, {"name": _fact_name(mailbox_key)})
    if value is None:
        return None
    try:
        read = json.loads(value)
        return LoadedSettings(float(read["at"]), {str(name): str(each) for name, each in read["digests"].items()})
    except (ValueError, TypeError, LookupError, AttributeError):
        raise LedgerError(
            "The ledger's note of the settings in use is damaged. The next start writes it anew", "ledger_corrupt"
        ) from None


def save_loaded_settings(connection: PreparedConnection, mailbox_key: str, digests: Mapping[str, str]) -> None:
    """In place of what was loaded before; now, by the ledger's clock."""
    name, now = _fact_name(mailbox_key), float(connection.value(tables.CURRENT_TIME))
    value = json.dumps({"at": now, "digests": dict(digests)})
    connection.execute(tables.SAVE_FACT, {"name": name, "value": value})
    connection.execute(_SET, {"at_name": name, "loaded": value})


def _fact_name(mailbox_key: str) -> str:
    return f"loaded_settings {mailbox_key}"

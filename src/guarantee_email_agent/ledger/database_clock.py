"""The one clock of all who share a ledger.

Leases and waits cannot be measured on each machine's own clock, since those differ: PostgreSQL's counts
(`clock_timestamp()`), and on SQLite the wall clock of the one machine that its file lies on. Both can jump:

- Backwards: a lease seems to begin in the future. Whoever sees that lets it begin anew, so that it lasts its own length
  from there: it ends late, never early, and not by as much as the clock went back.
- Forwards: leases end early, and a second agent may take a mail on while the first still has it in hand. The fence then
  turns the first one's writes away, and the second finds the first one's intent written down and asks for proof
  before it repeats anything.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

SQLITE_FUNCTION: Final = "ledger_now"


class Now(FunctionElement[float]):
    """Seconds since 1970, at the moment when the statement comes to it (after it waited for a lock)."""

    type = Double()
    inherit_cache = True


NOW: Final = Now()


@compiles(Now, "sqlite")
def _sqlite(_element: Now, _compiler: Any, **_options: Any) -> str:
    return f"{SQLITE_FUNCTION}()"


@compiles(Now, "postgresql")
def _postgresql(_element: Now, _compiler: Any, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"

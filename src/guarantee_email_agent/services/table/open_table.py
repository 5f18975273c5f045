"""A table from its file, whichever of two kinds that is."""

from __future__ import annotations

import time
from pathlib import Path

from guarantee_email_agent.services.table.csv_table import CsvTable
from guarantee_email_agent.services.table.sqlite_table import SqliteTable, is_sqlite
from guarantee_email_agent.services.table.table import Row, Table, TableLayout


def open_table(file: Path, layout: TableLayout[Row]) -> Table[Row]:
    """Raises TableError."""
    if is_sqlite(file):
        return SqliteTable(file, layout)
    return CsvTable(file, layout, time.time)

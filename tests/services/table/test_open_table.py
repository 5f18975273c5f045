"""Both kinds of table, by what the file holds and not by its name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from guarantee_email_agent.services.table.local_look_ups import table_layout
from guarantee_email_agent.services.table.open_table import open_table


def test_a_file_is_opened_by_its_first_bytes(tmp_path: Path) -> None:
    text, database = tmp_path / "orders.db", tmp_path / "orders.csv"
    text.write_text("id,status\nA1,shipped\n")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (id TEXT)")
        connection.execute("INSERT INTO orders VALUES ('A1')")
    layout = table_layout("table", "orders", "id")
    assert open_table(text, layout).find("a1") == {"id": "A1", "status": "shipped"}
    assert open_table(database, layout).find("a1") == {"id": "A1"}

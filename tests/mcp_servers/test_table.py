from __future__ import annotations

from pathlib import Path

import pytest
from mcp_calls import call, in_memory

from guarantee_email_agent.mcp_servers.table import TableTools
from guarantee_email_agent.services.table.local_look_ups import open_table, table_layout

pytestmark = pytest.mark.anyio


async def test_finds_the_filled_columns_of_a_row(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text("Order_Number,status,carrier\nAB-10001,shipped,Parcel Post\nAB-10002, ,\n")
    table = open_table(file, table_layout("table", "orders", "order_number"))
    async with in_memory("table", TableTools(table).tools()) as client:
        answers = [await call(client, "find_row", number=number) for number in ("ab 10001", "AB-10002", "AB-10003")]
    assert answers == [
        {"order_number": "AB-10001", "status": "shipped", "carrier": "Parcel Post"},
        {"order_number": "AB-10002", "status": "found"},
        {"status": "not_found"},
    ]

from pathlib import Path

import pytest
from mcp_calls import call, in_memory

from guarantee_email_agent.mcp_servers.table import TableTools
from guarantee_email_agent.services.table.local_look_ups import open_table, table_layout

pytestmark = pytest.mark.anyio


async def test_finds_the_filled_columns_of_a_row(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text("Order_Number,status,carrier\nAB-10001,,Parcel Post\n")
    table = open_table(file, table_layout("table", "orders", "order_number"))
    async with in_memory("table", TableTools(table).tools()) as client:
        found = await call(client, "find_row", number="ab 10001")
        assert found == {"order_number": "AB-10001", "status": "found", "carrier": "Parcel Post"}
        assert await call(client, "find_row", number="AB-10003") == {"status": "not_found"}

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from mcp_sessions import failure
from waiting import PATIENCE_S

from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp
from guarantee_email_agent.services.table.local_look_ups import (
    WarrantyRecord,
    open_table,
    table_layout,
    table_look_up,
    warranty_answer,
    warranty_look_up,
)
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import MCPConnectionError

pytestmark = pytest.mark.anyio

ORDERS = replace(WARRANTY, name="orders", facts=(Fact("carrier", "name"),))
LAST_DAY = date(2027, 3, 31)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    file = tmp_path / "orders.csv"
    file.write_text("Order_Number,status,carrier\nAB-10001,shipped,Parcel Post\nAB-10002, ,\n")
    return file


async def test_a_row_is_its_columns_that_are_filled_in(orders: Path) -> None:
    look_up = table_look_up(orders, "order_number", PATIENCE_S, SystemClock(), ORDERS)
    assert [await look_up.look_up(number) for number in ("ab 10001", "AB-10002", "AB-10003")] == [
        {"order_number": "AB-10001", "status": "shipped", "carrier": "Parcel Post"},
        {"order_number": "AB-10002", "status": "found"},
        {"status": "not_found"},
    ]


async def test_a_warranty_is_that_of_today(tmp_path: Path) -> None:
    file = tmp_path / "warranties.csv"
    file.write_text("serial_number,expiration_date,owner_email\nSN-1,2999-12-31, a@b.de\nSN-2,2000-01-01,\n")
    look_up = warranty_look_up(file, PATIENCE_S, SystemClock())
    assert [await look_up.look_up(number) for number in ("sn1", "SN-2", "SN-3")] == [
        {"serial_number": "SN-1", "status": "valid", "expiration_date": "2999-12-31", "owner_email": "a@b.de"},
        {"serial_number": "SN-2", "status": "expired", "expiration_date": "2000-01-01"},
        {"serial_number": "SN-3", "status": "not_found"},
    ]


@pytest.mark.parametrize(("today", "status"), [(LAST_DAY, "valid"), (date(2027, 4, 1), "expired")])
def test_a_warranty_holds_on_its_last_day(today: date, status: str) -> None:
    record = WarrantyRecord("SN-1", LAST_DAY, None, None)
    assert warranty_answer("sn1", record, today)["status"] == status


@pytest.mark.parametrize(
    ("lacks", "kind"),
    [
        ("order_number", ORDERS),
        ("status", ORDERS),
        ("carrier", ORDERS),
        ("owner", replace(ORDERS, owner_key="owner")),
    ],
)
async def test_a_table_that_cannot_be_used_is_told_with_its_setting(orders: Path, lacks: str, kind: LookUp) -> None:
    orders.write_text("order_number,status,carrier\n".replace(lacks, "another"))
    look_up = table_look_up(orders, "order_number", PATIENCE_S, SystemClock(), kind)
    told = f"look_ups.orders.table: {orders}:1: has no column {lacks}. Begin the file with a line such as"
    with pytest.raises(MCPConnectionError) as caught:
        await look_up.test_connection()
    assert caught.value.message.startswith(told)
    error = await failure(look_up.look_up("AB-10001"))
    assert (error.code, error.outage) == ("orders_unavailable", True)


def test_a_file_is_opened_by_its_first_bytes(tmp_path: Path) -> None:
    text, database = tmp_path / "orders.db", tmp_path / "orders.csv"
    text.write_text("id,status\nA1,shipped\n")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (id TEXT)")
        connection.execute("INSERT INTO orders VALUES ('A1')")
    layout = table_layout("table", "orders", "id")
    assert open_table(text, layout).find("a1") == {"id": "A1", "status": "shipped"}
    assert open_table(database, layout).find("a1") == {"id": "A1"}

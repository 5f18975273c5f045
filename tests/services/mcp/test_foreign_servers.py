"""Servers that others wrote, from npm, by mappings: a database, a list of tasks, a mailbox. All of it on loopback."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import TICKET, failure
from postgresql import LedgerSql

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.services.ports import parse_ticket_id
from guarantee_email_agent.services.services import create_look_up_client, create_ticketing_client
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import MCPConnectionError

MODULES = Path(os.environ.get("NODE_MODULES", Path(__file__).parents[3] / "node_modules"))
NODE = shutil.which("node") or ""

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def needs(package: str) -> pytest.MarkDecorator:
    missing = not NODE or not (MODULES / package).is_dir()
    return pytest.mark.skipif(missing, reason=f"needs node and {package} (npm)")


def load(folder: Path, text: str, **secrets: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(environ=secrets, cwd=folder)


Keep = Callable[[Any], Any]


@pytest.fixture
async def keep() -> AsyncIterator[Keep]:
    """Clients that are closed at the end."""
    kept: list[Any] = []
    yield lambda client: kept.append(client) or client
    for client in kept:
        await client.close()


@needs("@bytebase/dbhub")
async def test_database_server_looks_warranties_up(tmp_path: Path, postgresql_url: str, keep: Keep) -> None:
    sql = LedgerSql(postgresql_url)
    sql.rows("CREATE TABLE devices (serial text, state text, ends date)")
    for row in (("SN-1", "active", "2030-01-31"), ("SN-2", "odd", None), ("SN-3", "active", None), ("SN-3", "x", None)):
        sql.rows("INSERT INTO devices VALUES (?, ?, ?)", *row)
    sql.close()
    dsn = postgresql_url.replace("postgresql+psycopg", "postgres")
    (tmp_path / "dbhub.toml").write_text(
        f"""
[[sources]]
id = "warranty"
dsn = "{dsn}?sslmode=disable"

[[tools]]
name = "find_device"
source = "warranty"
description = "A device by its serial number"
statement = "SELECT serial, state, ends::text FROM devices WHERE serial = $1"
readonly = true
[[tools.parameters]]
name = "serial"
type = "string"
description = "Serial number"
"""
    )
    config = load(
        tmp_path,
        f"""
agent: {{call_timeout_s: 60}}
mcp:
  warranty_api:
    command: {NODE}
    args: [{MODULES}/@bytebase/dbhub/dist/index.js, --transport, stdio, --config, {tmp_path}/dbhub.toml]
    tools:
      check_warranty:
        tool: find_device
        arguments: {{serial_number: serial}}
        result:
          status: {{from: "data.statements[only].rows[only].state", values: {{active: valid, lapsed: expired}}}}
          expiration_date: data.statements[only].rows[only].ends
          serial_number: data.statements[only].rows[only].serial
        not_found: {{empty: "data.statements[only].rows"}}
""",
    )
    client = keep(create_look_up_client("warranty_api", config, SystemClock()))
    await client.test_connection()
    assert await client.test_answer() == "find_device answered a sample call: not_found"
    answer = await client.look_up("SN-1")
    assert answer == {"status": "valid", "expiration_date": "2030-01-31", "serial_number": "SN-1"}
    assert (await client.look_up("SN-2"))["status"] == "other"
    error = await failure(client.look_up("SN-3"))
    assert error.message.startswith("warranty_api: the answer of find_device holds several items")
    # A quote ends no statement: the number is a parameter.
    assert await client.look_up("SN-1' OR '1'='1") == {"status": "not_found"}


TASKS = """
agent: {{call_timeout_s: 60}}
mcp:
  ticketing_system:
    command: {command}
    args: [mcp, --storage-path, {folder}/tasks]
    tools:
      create_ticket:
        tool: create_task
        arguments:
          serial_number: [name, description]
          warranty_status: description
          customer_email: description
          category: description
          priority: {{to: priority, values: {{normal: 3, high: 1}}}}
          idempotency_key: description
        result: {{ticket_id: id}}
      find_ticket:
        tool: list_tasks
        arguments: {{idempotency_key: query}}
        constants: {{all: true}}
        sample: {{idempotency_key: nothing}}
        result:
          tickets: {{from: ., each: {{ticket_id: id, idempotency_key: description}}}}
"""


@needs("@zeeg/dex")
class TestTaskServer:
    def config(self, folder: Path, **changes: str) -> Config:
        text = TASKS.format(command=MODULES / ".bin" / "dex", folder=folder)
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        return load(folder, text)

    async def test_ticket_is_opened_once_and_found_again(self, tmp_path: Path, keep: Keep) -> None:
        config = self.config(tmp_path)
        first, second = (keep(create_ticketing_client(config, SystemClock())) for _ in range(2))
        await first.test_connection()
        assert await first.test_answer() == "list_tasks answered a sample call: no such ticket"
        created = await first.create_ticket(TICKET)
        # An agent that was killed before it wrote down the answer asks again.
        found = await second.create_ticket(TICKET)
        assert (parse_ticket_id(found), found["status"]) == (parse_ticket_id(created), "existing")
        other = await second.create_ticket({**TICKET, "idempotency_key": "mail-11"})
        assert parse_ticket_id(other) != parse_ticket_id(created)
        assert (tmp_path / "tasks" / "tasks.jsonl").read_text().count("\n") == 2

    async def test_mapping_that_does_not_fit_is_told_line_by_line(self, tmp_path: Path, keep: Keep) -> None:
        config = self.config(
            tmp_path, **{"all: true": "all: yes please", "priority: {to: priority": "priority: {to: urgency"}
        )
        client = keep(create_ticketing_client(config, SystemClock()))
        with pytest.raises(MCPConnectionError) as caught:
            await client.test_connection()
        place = "mcp.ticketing_system.tools"
        theirs = "it takes name, description, parent_id, priority, blocked_by"
        assert caught.value.message.splitlines() == [
            f"config.yaml:15: {place}.create_ticket.arguments.priority: create_task has no argument urgency; {theirs}",
            f"config.yaml:21: {place}.find_ticket.constants.all: all of list_tasks is boolean, and not string",
        ]

"""What the tickets' database keeps, and what happens where it cannot."""

import json
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from mcp_sessions import TICKET
from processes import as_nobody
from small_disks import limited
from waiting import PATIENCE_S

from guarantee_email_agent.services import ticket_store
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.ticket_store import FIELDS, LocalTickets, TicketStore
from guarantee_email_agent.utils.clock import SystemClock

NOW = "2027-03-31T10:00:00Z"


def ticket(key: str, **fields: str) -> dict[str, str]:
    return {name: f"the {name}" for name in FIELDS} | {"idempotency_key": key} | fields


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tickets.db"


@pytest.fixture
def store(file: Path) -> Iterator[TicketStore]:
    opened = TicketStore(file)
    yield opened
    opened.close()


def test_the_same_key_gives_the_same_ticket_as_it_was(store: TicketStore) -> None:
    first, _ = store.create(ticket("a", priority="normal"), NOW)
    assert store.create(ticket("a", priority="high"), NOW) == (first, False)
    tickets, total = store.latest(10)
    assert (tickets[0]["priority"], total) == ("normal", 1)


def test_the_latest_come_first(store: TicketStore) -> None:
    for key in "abcd":
        store.create(ticket(key), NOW)
    tickets, total = store.latest(2)
    assert [found["idempotency_key"] for found in tickets] == ["d", "c"]
    assert total == 4
    assert tickets[0].keys() == {"ticket_id", "created_at", *FIELDS, "notes"}


def test_nothing_is_kept_but_the_fields_and_the_time(store: TicketStore, file: Path) -> None:
    store.create(ticket("a"), NOW)
    with closing(sqlite3.connect(file)) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_xinfo(tickets)")}
    assert columns == {"number", "ticket_id", "created_at", *FIELDS}


class TestNotes:
    def test_notes_belong_to_their_tickets(self, store: TicketStore) -> None:
        first, second = (store.create(ticket(key), NOW)[0] for key in "ab")
        assert store.add_note(first, "one", "note 1", NOW)
        assert store.add_note(second, "two", "note 2", NOW)
        assert store.add_note(first, "three", "note 3", NOW)
        assert {found["ticket_id"]: found["notes"] for found in store.latest(10)[0]} == {first: 2, second: 1}

    def test_the_same_key_adds_nothing_twice_and_changes_nothing(self, store: TicketStore, file: Path) -> None:
        created, _ = store.create(ticket("a"), NOW)
        assert store.add_note(created, "as it was", "note 1", NOW)
        assert not store.add_note(created, "changed", "note 1", NOW)
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("SELECT ticket, created_at, note FROM notes").fetchall() == [
                (1, NOW, "as it was")
            ]

    @pytest.mark.parametrize(
        "unknown", ["TICKET-000002", "TICKET-0000001", "TICKET-1", "ticket-000001", "1", "TICKET-" + "9" * 40, "x\0"]
    )
    def test_a_ticket_that_there_is_not_takes_no_note(self, store: TicketStore, unknown: str) -> None:
        store.create(ticket("a"), NOW)
        with pytest.raises(ToolError, match="there is no ticket of this id") as caught:
            store.add_note(unknown, "a note", "note 1", NOW)
        assert (caught.value.code, caught.value.retryable, caught.value.uncertain) == (
            "ticketing_unknown_ticket",
            False,
            False,
        )


class TestEarlierFormat:
    @pytest.fixture
    def old_file(self, file: Path) -> Path:
        """A database as it was before there were notes, with a ticket."""
        with closing(TicketStore(file)) as store:
            store.create(ticket("a"), NOW)
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(
                "DROP TABLE notes; ALTER TABLE tickets DROP COLUMN details; PRAGMA user_version = 1"
            )
        return file

    def test_its_tickets_stay_and_take_notes(self, old_file: Path) -> None:
        with closing(TicketStore(old_file)) as store:
            assert store.create(ticket("a"), NOW) == ("TICKET-000001", False)
            assert store.add_note("TICKET-000001", "a note", "note 1", NOW)

    def test_a_newer_format_is_left_alone(self, old_file: Path) -> None:
        with closing(sqlite3.connect(old_file)) as connection:
            connection.execute("PRAGMA user_version = 4")
        with pytest.raises(ToolError, match=r"by a newer version of this server\. Update this one"):
            TicketStore(old_file)


def test_only_the_owner_may_read_it(store: TicketStore, file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.parent.chmod(0)
    with as_nobody(), pytest.raises(ToolError, match=r"cannot be written \(Permission denied\)"):
        TicketStore(file)
    file.parent.chmod(0o700)


def test_several_threads_and_connections_get_one_ticket_a_key(file: Path) -> None:
    stores = [TicketStore(file) for _ in range(4)]
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda n: stores[n % 4].create(ticket(f"key {n % 10}"), NOW)[0], range(200)))
    tickets, total = stores[0].latest(100)
    for opened in stores:
        opened.close()
    assert total == 10
    assert set(ids) == {found["ticket_id"] for found in tickets}


def test_several_processes_may_make_the_database_at_the_same_time(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from guarantee_email_agent.services.ticket_store import *;"
        "store = TicketStore(Path(sys.argv[1]));"
        "print(store.create(dict.fromkeys(FIELDS, 'x'), 'now')[0])"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(file)], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert {process.communicate()[0].strip() for process in processes} == {"TICKET-000001"}


def test_the_database_is_made_as_soon_as_another_program_is_done_with_it(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, other.execute, ("COMMIT",))
        timer.start()
        with closing(TicketStore(file)) as store:
            assert store.create(ticket("a"), NOW) == ("TICKET-000001", True)
        timer.join()


class TestTrouble:
    def test_a_lock_is_worth_another_try(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ticket_store, "BUSY_S", 0.05)
        with (
            closing(TicketStore(file)) as store,
            closing(sqlite3.connect(file, isolation_level=None)) as other,
        ):
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ToolError, match=r"tickets\.db: another program keeps it locked") as caught:
                store.create(ticket("a"), NOW)
            assert (caught.value.code, caught.value.retryable) == ("ticketing_unavailable", True)
            assert not caught.value.uncertain
            other.execute("ROLLBACK")
            assert store.create(ticket("a"), NOW) == ("TICKET-000001", True)

    def test_calls_one_behind_the_other_share_the_time_that_one_may_wait(
        self, store: TicketStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun_and_next_in_line = iter([0.0, 3.0])
        with monkeypatch.context() as patched:
            patched.setattr(ticket_store, "time", SimpleNamespace(monotonic=lambda: next(begun_and_next_in_line)))
            store.find("a")
        assert store._connection.execute("PRAGMA busy_timeout").fetchone() == (2000,)
        monkeypatch.setattr(ticket_store, "BUSY_S", 0.05)
        with store._lock, pytest.raises(ToolError, match="other calls wait for it already") as caught:
            store.find("a")
        assert caught.value.retryable

    def test_where_no_more_may_be_written_a_ticket_is_refused_and_none_is_lost(self, file: Path) -> None:
        answered: list[str] = []

        def fill(store: TicketStore) -> None:
            for key in map(str, range(10_000)):
                store.create(dict.fromkeys(FIELDS, "x" * 500) | {"idempotency_key": key}, NOW)
                answered.append(key)

        with (
            closing(TicketStore(file)) as store,
            limited(resource.RLIMIT_FSIZE, 1_000_000),
            pytest.raises(ToolError) as caught,
        ):
            fill(store)
        assert caught.value.code in ("ticketing_unavailable", "ticketing_disk_full")
        with closing(TicketStore(file)) as store:
            assert len(answered) > 10
            assert all(map(store.find, answered))

    def test_a_full_disk_is_an_outage_that_no_retry_heals(self, store: TicketStore) -> None:
        store._connection.execute("PRAGMA max_page_count = 6")  # what SQLite does then is what it does on a full disk
        with pytest.raises(ToolError, match=r"tickets\.db: the disk is full\. Make room") as caught:
            store.create(ticket("large", category="x" * 50_000), NOW)
        error = caught.value
        assert (error.code, error.retryable, error.uncertain) == ("ticketing_disk_full", False, False)
        store._connection.execute("PRAGMA max_page_count = 600")
        assert store.create(ticket("after"), NOW)[1]

    def test_a_file_that_is_taken_away_takes_no_ticket_with_it(self, store: TicketStore, file: Path) -> None:
        store.create(ticket("a"), NOW)
        file.rename(file.with_name("elsewhere.db"))
        with pytest.raises(ToolError, match="was moved, deleted or exchanged while in use") as caught:
            store.create(ticket("b"), NOW)
        assert caught.value.code == "ticketing_unavailable"
        file.with_name("elsewhere.db").rename(file)
        assert store.create(ticket("b"), NOW) == ("TICKET-000002", True)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"serial_number,expiration_date\n" * 100, "is no SQLite database. Name another file"),
            (None, "is a database for something else. Name another file"),
        ],
    )
    def test_a_file_for_something_else_is_left_alone(self, content: bytes | None, message: str, file: Path) -> None:
        if content is None:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("CREATE TABLE warranties (serial_number)")
        else:
            file.write_bytes(content)
        before = file.read_bytes()
        with pytest.raises(ToolError, match=message):
            TicketStore(file)
        if content is not None:
            assert file.read_bytes() == before

    def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ToolError, match=r"the folder .*/nowhere does not exist\. Create it"):
            TicketStore(tmp_path / "nowhere" / "tickets.db")


@pytest.fixture
async def tickets(file: Path) -> AsyncIterator[LocalTickets]:
    tickets = LocalTickets(file, PATIENCE_S, SystemClock())
    yield tickets
    await tickets.close()


@pytest.mark.anyio
async def test_fields_beside_the_stores_own_become_its_details(tickets: LocalTickets, file: Path) -> None:
    further = {"order_number": "ÄB-10001", "details": "a look-up of this name"}
    await tickets.create_ticket(TICKET | further)
    await tickets.create_ticket(TICKET | {"idempotency_key": "mail-2"})
    with closing(TicketStore(file)) as store:
        assert [json.loads(ticket["details"]) for ticket in store.latest(10)[0]] == [{}, further]

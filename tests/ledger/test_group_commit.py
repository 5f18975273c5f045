from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from waiting import wait_until

from guarantee_email_agent.ledger.group_commit import MAX_GROUP, GroupCommit, LockTimeoutError
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection

TABLES = (
    "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
    "CREATE TABLE children (id INTEGER PRIMARY KEY, parent REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)",
)


class File:
    """A SQLite file with its transactions, each in a thread of its own, and the number of its commits."""

    def __init__(self, path: Path) -> None:
        self.engine = create_engine(
            f"sqlite:///{path}", connect_args={"isolation_level": None, "timeout": 0.01}, pool_size=1
        )
        self.commits = 0
        event.listen(self.engine, "connect", lambda driver, _: driver.execute("PRAGMA foreign_keys = ON"))
        event.listen(self.engine, "connect", lambda driver, _: driver.set_trace_callback(self._on_statement))
        self.shared = GroupCommit(self.engine, lock_timeout_s=30)
        with self.shared.transaction(read_only=False) as connection:
            for table in TABLES:
                connection.driver.execute(table)
        self.commits = 0
        self.threads = ThreadPoolExecutor(2 * MAX_GROUP)

    def _on_statement(self, statement: str) -> None:
        self.commits += statement == "COMMIT"

    def run(self, work: Callable[[PreparedConnection], Any], *, read_only: bool = False) -> Any:
        with self.shared.transaction(read_only=read_only) as connection:
            return work(connection)

    def waiting(self) -> int:
        return len(self.shared._lock._queue) - 1

    def start(self, *works: Callable[[PreparedConnection], Any], read_only: bool = False) -> list[Future[Any]]:
        """They wait in this order when this returns, while another transaction is at work."""
        started = []
        for work in works:
            before = self.waiting()
            started.append(self.threads.submit(self.run, work, read_only=read_only))
            wait_until(lambda before=before: self.waiting() == before + 1)  # type: ignore[misc]
        return started

    def parents(self) -> set[int]:
        """As another program sees them."""
        with closing(sqlite3.connect(str(self.engine.url.database))) as other:
            return {number for (number,) in other.execute("SELECT id FROM parents")}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    file = File(tmp_path / "file.db")
    yield file
    file.threads.shutdown()
    file.shared.close()
    file.engine.dispose()


def insert(number: int) -> Callable[[PreparedConnection], None]:
    return lambda connection: connection.driver.execute(f"INSERT INTO parents VALUES ({number})") and None


def read(connection: PreparedConnection) -> set[int]:
    return {number for (number,) in connection.driver.execute("SELECT id FROM parents")}


def fail(connection: PreparedConnection) -> None:
    insert(99)(connection)
    raise KeyError("of one alone")


def orphan(connection: PreparedConnection) -> None:
    """What can only be found out by the commit."""
    connection.driver.execute("INSERT INTO children VALUES (1, 1000)")


def test_those_that_wait_are_committed_together(file: File) -> None:
    with file.shared.transaction(read_only=False) as connection:
        waiting = file.start(*map(insert, range(5)))
        insert(5)(connection)
        file.commits = 0
    for each in waiting:
        each.result()
    assert file.parents() == {0, 1, 2, 3, 4, 5}
    assert file.commits == 1


def test_nobody_goes_on_before_the_commit(file: File) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: PreparedConnection) -> None:
        inside.set()
        go_on.wait()

    def first(connection: PreparedConnection) -> list[Future[Any]]:
        insert(1)(connection)
        return file.start(wait)

    begun = file.threads.submit(file.run, first)
    inside.wait()
    assert not begun.done()
    assert file.parents() == set()
    go_on.set()
    (second,) = begun.result()
    second.result()
    assert file.parents() == {1}


def test_one_that_fails_leaves_no_trace_and_the_others_theirs(file: File) -> None:
    with file.shared.transaction(read_only=False) as connection:
        one, failing, two = file.start(insert(1), fail, insert(2))
        insert(0)(connection)
    one.result()
    two.result()
    with pytest.raises(KeyError, match="of one alone"):
        failing.result()
    assert file.parents() == {0, 1, 2}


def test_one_that_fails_first_or_last_does_neither(file: File) -> None:
    def begin_and_fail(connection: PreparedConnection) -> None:
        waiting.extend(file.start(insert(1), fail))
        fail(connection)

    waiting: list[Future[Any]] = []
    with pytest.raises(KeyError):
        file.run(begin_and_fail)
    waiting[0].result()
    with pytest.raises(KeyError):
        waiting[1].result()
    assert file.parents() == {1}


def test_a_commit_that_fails_fails_for_all_and_the_next_one_works(file: File) -> None:
    waiting: list[Future[Any]] = []

    def begin(connection: PreparedConnection) -> None:
        waiting.extend(file.start(insert(1), orphan))
        insert(0)(connection)

    with pytest.raises(sqlite3.IntegrityError):
        file.run(begin)
    assert len(waiting) == 2
    for failing in waiting:
        with pytest.raises(sqlite3.IntegrityError):
            failing.result()
    assert file.parents() == set()
    file.run(insert(7))
    assert file.parents() == {7}


def test_what_is_read_between_is_as_sure_as_what_was_written(file: File) -> None:
    with file.shared.transaction(read_only=False) as connection:
        (reading,) = file.start(read, read_only=True)
        insert(1)(connection)
    assert reading.result() == {1}
    assert file.commits == 1


def test_a_group_has_an_end(file: File) -> None:
    with file.shared.transaction(read_only=False):
        waiting = file.start(*map(insert, range(MAX_GROUP)))
        file.commits = 0
    for each in waiting:
        each.result()
    assert file.commits == 2


def test_it_is_closed_when_the_transactions_that_were_begun_have_ended(file: File) -> None:
    """A thread goes on for a while after the task that waits for it was cancelled."""
    begun, may_go_on = threading.Event(), threading.Event()

    def first(connection: PreparedConnection) -> None:
        begun.set()
        assert may_go_on.wait(30)
        connection.driver.execute("INSERT INTO parents VALUES (1)")

    working = file.threads.submit(file.run, first)
    assert begun.wait(30)
    (second,) = file.start(lambda connection: connection.driver.execute("INSERT INTO parents VALUES (2)"))
    closing_thread = file.threads.submit(file.shared.close)
    wait_until(lambda: file.waiting() == 2 or closing_thread.done())
    may_go_on.set()
    for each in (working, second, closing_thread):
        each.result(30)
    assert (file.parents(), file.shared._connection) == ({1, 2}, None)


def test_after_another_program_held_the_file_it_works_again(file: File) -> None:
    other = sqlite3.connect(str(file.engine.url.database), isolation_level=None)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                file.run(insert(1))
    file.run(insert(2))
    assert file.parents() == {2}


def test_who_waits_too_long_gives_up(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'file.db'}", connect_args={"isolation_level": None})
    shared = GroupCommit(engine, lock_timeout_s=0.01)
    with shared.transaction(read_only=True), ThreadPoolExecutor(1) as threads:

        def begin() -> None:
            with shared.transaction(read_only=True):
                pass

        with pytest.raises(LockTimeoutError):
            threads.submit(begin).result()
    shared.close()
    engine.dispose()

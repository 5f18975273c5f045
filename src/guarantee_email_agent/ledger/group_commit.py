"""One commit for the transactions of several threads on a SQLite file: what takes longest of each is the disk.

A thread that finds others waiting leaves its transaction open to the next one, which works behind a savepoint of its
own, and the last one commits for all. Nobody goes on before that commit: for each it is as if it had been alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.ledger.prepared_statements import PreparedConnection

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_GROUP: Final = 16
"""Transactions in one commit; meanwhile no other process can write."""


class LockTimeoutError(Exception):
    """Other threads did not let go of the file in time."""


class FairLock:
    """A lock for threads, acquired in the order in which they asked.

    A plain lock, or a pool of one connection, nearly always goes back to a thread that releases it and asks at once:
    the others were seen to wait ten seconds for one millisecond of it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[threading.Event] = deque()  # the holder's, then those of the waiting threads

    def acquire(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; True if the lock is held now."""
        first = threading.Event()
        with self._guard:
            self._queue.append(first)
            if self._queue[0] is first:
                return True
        if first.wait(timeout_s):
            return True
        with self._guard:
            if self._queue[0] is first:  # handed over at the last moment
                return True
            self._queue.remove(first)
            return False

    def hand_over(self) -> bool:
        """Hand the lock to the thread that has waited longest; where none waits, keep it and return False."""
        with self._guard:
            if len(self._queue) == 1:
                return False
            self._queue.popleft()
            self._queue[0].set()
            return True

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest."""
        with self._guard:
            self._queue.popleft()
            if self._queue:
                self._queue[0].set()


@dataclass(eq=False)
class _Group:
    """Transactions with one commit. committed: ends for all of them at once."""

    connection: PreparedConnection
    read_only: bool
    members: int = 0
    committed: Future[None] = field(default_factory=Future)


class GroupCommit:
    """Transactions on one connection of the engine, which is opened by the first. Raises what it and its driver raise.

    The driver leaves it to us where they begin and end: `isolation_level` is None.
    """

    def __init__(self, engine: Engine, lock_timeout_s: float) -> None:
        """lock_timeout_s: seconds that a transaction waits for those before it."""
        self._engine = engine
        self._lock_timeout_s = lock_timeout_s
        self._lock = FairLock()  # held by who may touch what follows
        self._connection: PreparedConnection | None = None
        self._open: _Group | None = None

    @contextmanager
    def transaction(self, *, read_only: bool) -> Iterator[PreparedConnection]:
        """Durable when the block is left; where it raises, nothing was written. Raises LockTimeoutError."""
        if not self._lock.acquire(self._lock_timeout_s):
            raise LockTimeoutError
        group, self._open = self._open, None
        is_first = group is None
        try:
            if group is None:
                group = self._begin(read_only)
            else:
                group.connection.driver.execute("SAVEPOINT member")
            yield group.connection
            if not is_first:
                group.connection.driver.execute("RELEASE member")
        except BaseException as error:
            if group is not None and not is_first:
                try:
                    group.connection.driver.execute("ROLLBACK TO member")
                    group.connection.driver.execute("RELEASE member")
                except Exception:  # noqa: BLE001 - SQLite has undone everything, as it does where a disk is full
                    self._undo(group, error)
                else:
                    self._leave(group)
            else:
                self._undo(group, error)
            raise
        self._leave(group)
        group.committed.result()

    def close(self) -> None:
        """Give back the connection once the transactions that were begun have ended; not where they take too long.

        SQLite crashes the process where a connection is closed under a thread that uses it, as one does for a while
        whose task was cancelled.
        """
        while self._lock.acquire(self._lock_timeout_s):
            group, self._open = self._open, None
            if group is not None:
                self._leave(group)
                continue
            try:
                self._give_back()
            finally:
                self._lock.release()
            return

    def _give_back(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.sqlalchemy.close()

    def _begin(self, read_only: bool) -> _Group:
        if self._connection is None:
            self._connection = PreparedConnection(self._engine.connect())
        # A transaction that turned writer halfway would fail at once where another one writes, without waiting.
        self._connection.driver.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
        return _Group(self._connection, read_only)

    def _leave(self, group: _Group) -> None:
        """Let the next one go on with the transaction, or commit it for all."""
        group.members += 1
        if not group.read_only and group.members < MAX_GROUP:
            self._open = group
            if self._lock.hand_over():
                return
            self._open = None
        try:
            _commit(group.connection)
        except BaseException as error:  # noqa: BLE001 - each member raises it
            self._undo(group, error)
        else:
            group.committed.set_result(None)
            self._lock.release()

    def _undo(self, group: _Group | None, error: BaseException) -> None:
        """Nothing of the group was written, for the reason of this error."""
        try:
            if group is not None:
                try:
                    _rollback(group.connection)
                except Exception:  # noqa: BLE001 - in which state it is now is not worth finding out
                    with suppress(Exception):
                        self._give_back()
                group.committed.set_exception(error)
        finally:
            self._lock.release()


def _commit(connection: PreparedConnection) -> None:
    connection.driver.execute("COMMIT")  # its own commit() would say nothing where SQLite has undone the transaction
    if connection.sqlalchemy.in_transaction():
        connection.sqlalchemy.commit()  # what it does is done; it only has to know


def _rollback(connection: PreparedConnection) -> None:
    connection.driver.rollback()
    if connection.sqlalchemy.in_transaction():
        connection.sqlalchemy.rollback()

"""The two databases that a ledger can lie in. The PostgreSQL server is the tests' own: temporary data, on loopback."""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_USER = "ledger"
_PASSWORD = "fixture-password"
_PR_SET_PDEATHSIG = 1


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQLServer]:
    """Runs for as long as the tests do. Skips where PostgreSQL's server programs are missing."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and postgres are not installed (Debian: postgresql)")
    server = PostgreSQLServer(programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgresql_url(postgresql_server: PostgreSQLServer) -> str:
    """An empty database of this test's own."""
    return postgresql_server.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger can be opened; a test runs once on each database."""
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


@pytest.fixture
def ledger_sql(ledger_location: str) -> Iterator[LedgerSql]:
    """SQL behind the ledger's back, to see what it wrote and to let its time pass."""
    sql = LedgerSql(ledger_location)
    yield sql
    sql.close()


class LedgerSql:
    """A connection of its own to a ledger's database."""

    def __init__(self, location: str) -> None:
        import psycopg

        self._postgresql = "://" in location
        self._connection: Any = (
            psycopg.connect(location.replace("+psycopg", ""), autocommit=True)
            if self._postgresql
            else sqlite3.connect(location, isolation_level=None)
        )

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s") if self._postgresql else statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []

    def pass_time(self, seconds: float) -> None:
        """Let everything that the ledger knows have happened so much longer ago; negative: its clock goes back."""
        times = ("since", "changed_at", "replied_at", "admitted_at")
        past = ", ".join(f"{name} = {name} - ?" for name in times)
        self.rows(f"UPDATE ledger_mails SET {past}", *[seconds] * len(times))
        self.rows("UPDATE ledger_places SET marked_at = marked_at - ?", seconds)
        self.rows(
            "UPDATE ledger_facts SET value = CAST(CAST(value AS DOUBLE PRECISION) - ? AS TEXT) "
            "WHERE name IN ('clock_seen_at', 'clock_steady_since')",
            seconds,
        )

    def close(self) -> None:
        self._connection.close()


def _programs() -> Path | None:
    # Debian keeps them off the PATH, in a folder for each version.
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: [*map(int, re.findall(r"\d+", str(at)))])
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).resolve().parent)
    return next((at for at in reversed(folders) if (at / "postgres").exists() and (at / "initdb").exists()), None)


class PostgreSQLServer:
    """Logins take a password. `stopped` and `suspended` are for tests of what an outage does."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        # Not pytest's own temporary folder: it is closed to the user that the server runs as.
        self._home = Path(tempfile.mkdtemp(prefix="ledger-postgresql-"))
        self._data = self._home / "data"
        self._as_user: dict[str, Any] = {"cwd": self._home}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self._home, nobody.pw_uid, nobody.pw_gid)
            self._as_user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        password = self._home / "password"
        password.write_text(_PASSWORD)
        password.chmod(0o644)
        subprocess.run(
            [
                *(programs / "initdb", "-D", self._data, "-U", _USER, "-A", "scram-sha-256", "--pwfile", password),
                *("-E", "UTF8", "--locale", "C", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            **self._as_user,
        )

    def start(self) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._home),
            "fsync": "off",
            "max_connections": "60",
        }
        self._process = subprocess.Popen(
            [
                *(self._programs / "postgres", "-D", self._data, "-p", str(self.port)),
                *(word for name, value in options.items() for word in ("-c", f"{name}={value}")),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,
            **self._as_user,
        )
        import psycopg

        for _ in range(300):
            assert self._process.poll() is None, "postgres ended while it started"
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError("postgres did not start within 30 s")

    def stop(self) -> None:
        """As a crash would: no checkpoint, and every connection is cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """As after a crash, for the time of the block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """In the block it neither answers nor hangs up."""
        self._signal_all(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal_all(signal.SIGCONT)

    def new_database(self, options: str = "") -> str:
        """The URL of an empty one."""
        name = f"ledger_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as the database's owner; the rows that it gave."""
        import psycopg

        with psycopg.connect(self.url(database, driver=""), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def url(self, database: str, *, driver: str = "+psycopg", user: str = _USER, password: str = _PASSWORD) -> str:
        return f"postgresql{driver}://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def _signal_all(self, number: int) -> None:
        parent = self._process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for process in (parent, *map(int, children)):
            os.kill(process, number)


def _die_with_parent() -> None:
    """No server is left behind by a test run that was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)

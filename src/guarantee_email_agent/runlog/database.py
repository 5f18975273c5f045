"""The file of the run store: its tables and the way to them from an earlier version; opened, checked, made where it is
missing. Whatever fails comes out as one StoreError. docs/run-store.md explains the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from guarantee_email_agent.files.private_file import make_private_folder
from guarantee_email_agent.files.text_file import kind_of_file
from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.utils.errors import EXIT_CONFIGURATION, AgentError, ConfigurationError
from guarantee_email_agent.utils.sqlite_errors import enable_wal, sqlite_error_kind
from guarantee_email_agent.utils.text import printable

APPLICATION_ID: Final = 0x47454152  # GEAR
SCHEMA_VERSION: Final = 6
_TABLES: Final = frozenset(
    {
        *("runs", "blobs", "input_sets", "inputs", "cases", "results", "checks"),
        *("step_times", "distinct_mails", "taken_over", "mails", "run_facts"),
    }
)

# A run; `number` counts up, so that the order of runs needs no clock. outcome is NULL until the run has ended.
_RUNS: Final = """CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        command TEXT NOT NULL,
        suite TEXT NOT NULL,
        selection TEXT NOT NULL,
        agent TEXT NOT NULL,
        llm TEXT NOT NULL,
        model TEXT NOT NULL,
        parameters TEXT NOT NULL,
        options TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        threshold REAL NOT NULL,
        require_proof INTEGER NOT NULL,
        package_version TEXT NOT NULL,
        git_revision TEXT,
        git_dirty INTEGER,
        planned INTEGER NOT NULL,
        started TEXT NOT NULL,
        ended TEXT,
        duration_s REAL NOT NULL DEFAULT 0,
        outcome TEXT CHECK (outcome IN ('passed', 'failed', 'inconclusive', 'interrupted', 'crashed')),
        exit_code INTEGER,
        total INTEGER NOT NULL DEFAULT 0,
        passed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        error INTEGER NOT NULL DEFAULT 0,
        invalid INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL DEFAULT 0
    )"""
# One line a result, for people with a SQL prompt.
_RESULT_LIST: Final = """CREATE VIEW result_list AS
        SELECT runs.id AS run, runs.number AS run_number, cases.name, cases.category, cases.language,
               results.repetition, results.verdict, results.duration_ms, results.cost_usd, cases.description,
               results.id AS result
        FROM results JOIN runs ON runs.number = results.run JOIN cases ON cases.id = results.case_id"""

_VERSION_4: Final = (
    _RUNS,
    "CREATE INDEX runs_of_suite ON runs (command, suite, selection, agent, llm, number)",
    "CREATE INDEX runs_without_end ON runs (number) WHERE outcome IS NULL",
    # Content by its SHA-256, compressed with zlib, kept once.
    "CREATE TABLE blobs (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB NOT NULL)",
    # What verdicts depend on, name by name. The content is the blob of that hash, where it is kept.
    "CREATE TABLE input_sets (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE)",
    """CREATE TABLE inputs (
        input_set INTEGER NOT NULL REFERENCES input_sets (id),
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (input_set, kind, name)
    ) WITHOUT ROWID""",
    # A scenario or task under one name and one description; a changed description is a further row.
    """CREATE TABLE cases (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        category TEXT NOT NULL,
        language TEXT NOT NULL,
        description TEXT NOT NULL,
        UNIQUE (name, category, language, description)
    )""",
    """CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number),
        position INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        case_id INTEGER NOT NULL REFERENCES cases (id),
        verdict TEXT NOT NULL CHECK (verdict IN ('passed', 'failed', 'error', 'invalid')),
        duration_ms REAL NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_usd REAL,
        latency_ms INTEGER NOT NULL,
        input_set INTEGER REFERENCES input_sets (id),
        source INTEGER REFERENCES blobs (id),
        request INTEGER REFERENCES blobs (id),
        response INTEGER REFERENCES blobs (id),
        trace INTEGER REFERENCES blobs (id),
        judgement INTEGER REFERENCES blobs (id)
    )""",
    "CREATE UNIQUE INDEX results_of_run ON results (run, position, repetition)",
    "CREATE INDEX results_of_case ON results (case_id, run)",
    """CREATE TABLE checks (
        result INTEGER NOT NULL REFERENCES results (id),
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        reason TEXT NOT NULL,
        expected TEXT,
        actual TEXT,
        PRIMARY KEY (result, number)
    ) WITHOUT ROWID""",
    _RESULT_LIST,
    # Of the steps of a trace, as a JSON list: within it they would make every run's another one.
    "CREATE TABLE step_times (result INTEGER PRIMARY KEY REFERENCES results (id), milliseconds TEXT NOT NULL)",
    """CREATE TRIGGER step_times_of_results AFTER DELETE ON results BEGIN
        DELETE FROM step_times WHERE result = old.id; END""",
    # Of a suite's run, since copies prove nothing.
    """CREATE TABLE distinct_mails (
        run INTEGER PRIMARY KEY REFERENCES runs (number),
        mails INTEGER NOT NULL,
        mails_passed INTEGER NOT NULL
    )""",
    """CREATE TRIGGER distinct_mails_of_runs AFTER DELETE ON runs BEGIN
        DELETE FROM distinct_mails WHERE run = old.number; END""",
    # Of results that another run gave, its id; and of the source of a scenario a digest that copies of it share, so
    # that a result is taken over and counted without reading its scenario.
    "CREATE TABLE taken_over (result INTEGER PRIMARY KEY REFERENCES results (id), run TEXT NOT NULL)",
    """CREATE TRIGGER taken_over_of_results AFTER DELETE ON results BEGIN
        DELETE FROM taken_over WHERE result = old.id; END""",
    "CREATE TABLE mails (source INTEGER PRIMARY KEY REFERENCES blobs (id), digest BLOB NOT NULL)",
    "CREATE TRIGGER mails_of_blobs AFTER DELETE ON blobs BEGIN DELETE FROM mails WHERE source = old.id; END",
)
# What a report says of a run and no row of it does, as a JSON object.
_VERSION_5: Final = (
    "CREATE TABLE run_facts (run INTEGER PRIMARY KEY, facts TEXT NOT NULL)",
    "CREATE TRIGGER run_facts_of_runs AFTER DELETE ON runs BEGIN DELETE FROM run_facts WHERE run = old.number; END",
)
# What is not known was 0. To drop a column takes SQLite 3.35.
_VERSION_6: Final = (
    "ALTER TABLE runs RENAME COLUMN tokens TO tokens_or_zero",
    "ALTER TABLE runs ADD COLUMN tokens INTEGER DEFAULT 0",
    "UPDATE runs SET tokens = iif(tokens_or_zero > 0 OR cost_usd IS NOT NULL, tokens_or_zero, NULL)",
)
OLDEST_VERSION: Final = 4
_STEPS: Final[Mapping[int, Sequence[str]]] = {OLDEST_VERSION: _VERSION_4, 5: _VERSION_5, 6: _VERSION_6}
"""The statements that lead to each version; a new file takes them all."""

DECIDED: Final = """GROUP BY position HAVING max(verdict != 'passed')
        OR count(*) >= (SELECT repeat FROM runs WHERE number = results.run)"""
"""Cases that failed, or passed in every repetition: of one that lacks some nobody knows whether it passes."""
RUN_COUNTS: Final = f"""WITH of_case AS (
        SELECT max(CASE verdict WHEN 'passed' THEN 0 WHEN 'failed' THEN 1 WHEN 'invalid' THEN 2 ELSE 3 END) AS worst
        FROM results WHERE run = :run {DECIDED}),
    spent AS (
        SELECT CASE WHEN coalesce(min(told > 0 OR (calls = 0 AND cost_usd IS NOT NULL)), 1) THEN coalesce(sum(told), 0)
                    END AS tokens,
               CASE WHEN count(*) = count(cost_usd) THEN coalesce(sum(cost_usd), 0) END AS cost_usd
        FROM (SELECT calls, cost_usd,
                     input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS told
              FROM results WHERE run = :run AND id NOT IN (SELECT result FROM taken_over)))
    SELECT count(*), coalesce(sum(worst = 0), 0), coalesce(sum(worst IN (1, 2)), 0), coalesce(sum(worst = 3), 0),
        coalesce(sum(worst = 2), 0), (SELECT tokens FROM spent), (SELECT cost_usd FROM spent) FROM of_case"""  # noqa: S608 - our own words
"""total, passed, failed, error, invalid, tokens and cost_usd of the results of the run `:run`, as its row has them."""


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Create or migrate the tables, in the caller's write transaction. Raises sqlite3.Error."""
    for number, statements in _STEPS.items():
        if number > schema_version(connection):
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def schema_version(connection: sqlite3.Connection) -> int:
    """0 of a new file. Raises sqlite3.Error."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def is_crafted(connection: sqlite3.Connection) -> bool:
    """Whether other things stand in the place of our tables: a view may never come to its end. Raises sqlite3.Error."""
    others = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type != 'table' OR upper(sql) LIKE 'CREATE VIRTUAL%'"
    )
    return not _TABLES.isdisjoint(name for (name,) in others)


def is_foreign(connection: sqlite3.Connection) -> bool:
    """Whether it is another program's database. Raises sqlite3.Error."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return False
    return bool(schema_version(connection) or connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


_TRIES: Final = 20
_TRY_S: Final = 0.001


class RunOwners:
    """Which runs are still going on: each has its byte of the lock file beside a store while its process lives.

    A process that is killed loses its locks at once, where a process id could be another program's by then. The system
    ties such locks to a process, so that a process has one of these.
    """

    _by_file: Final[dict[str, RunOwners]] = {}

    def __init__(self, file: str) -> None:
        self._file = file
        self._descriptor: int | None = None
        self._own: set[int] = set()
        self._asking = threading.Lock()

    @classmethod
    def beside(cls, store: Path) -> RunOwners:
        """Those of a store."""
        file = f"{os.path.realpath(store)}-owners"
        return cls._by_file.setdefault(file, cls(file))

    def claim(self, number: int) -> None:
        """Say that the run of that number is this process's."""
        import fcntl  # not every run has a store

        with self._asking:
            self._own.add(number)
            for _ in range(_TRIES):
                with suppress(OSError):
                    if self._descriptor is None:
                        self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
                    return
                time.sleep(_TRY_S)  # somebody may be asking for it at this moment

    def release(self, number: int) -> None:
        """The run is over."""
        with self._asking:
            self._own.discard(number)
            if self._descriptor is not None:
                import fcntl

                if self._own:
                    fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, number)
                else:  # this releases all there are
                    os.close(self._descriptor)
                    self._descriptor = None

    def is_alive(self, number: int) -> bool:
        """Whether a process has that run; also where the file system knows no locks, so that nobody can tell.

        It only asks: nothing is made, and who else asks at that time is not taken for an owner. Threads may ask.
        """
        import fcntl

        with self._asking:
            if number in self._own:
                return True
            if (descriptor := self._descriptor) is None:
                try:
                    descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
                except FileNotFoundError:
                    return False
                except OSError:
                    return True
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)
            except OSError:
                return True
            finally:
                if descriptor != self._descriptor:  # closing it releases every lock of this process
                    os.close(descriptor)
            return False


BUSY_S: Final = 30.0
"""How long a write waits for the writes of other runs."""

_WRITERS_REMEDY: Final = "Name another file in store.file, or leave the runs unkept with --no-store"
_READERS_REMEDY: Final = "Name another file in store.file, or restore this one from a backup"
_PROBLEMS: Final = {
    "locked": ("locked", "another program has been writing to it for too long. End what holds it"),
    "disk_full": ("disk_full", "the disk is full. Make room"),
    "read_only": ("read_only", "it is read-only. {remedy}"),
    "denied": ("read_only", "permission denied. {remedy}"),
    "cannot_open": ("cannot_open", "it cannot be opened, as where its folder cannot be written to. {remedy}"),
    "not_a_database": ("corrupt", "it is no database, or damaged. {remedy}"),
    "corrupt": ("corrupt", "it is damaged. Restore it from a backup, or move it away: a new one is then begun"),
    "io_error": ("disk_error", "the disk reports an error. Check the disk and its space"),
    "other": ("failed", "it failed"),
}


def storable(values: Iterable[Any]) -> tuple[Any, ...]:
    """`values` as SQLite takes them: what no UTF-8 can hold (a file name of other bytes) is written out."""
    return tuple(
        value.encode(errors="backslashreplace").decode() if isinstance(value, str) and not value.isascii() else value
        for value in values
    )


class StoreError(AgentError):
    """The run store cannot be used; `code` is `store_locked`, `store_disk_full`, `store_newer_schema` …"""

    exit_code: ClassVar[int] = EXIT_CONFIGURATION


class Database:
    """One connection. Threads may share it, one at a time."""

    def __init__(self, file: Path, *, create: bool, busy_s: float = BUSY_S) -> None:
        """create: make the file, with its folder, where it is missing. busy_s: how long to wait for other programs.

        Raises StoreError.
        """
        self.file = file
        self._busy_s = busy_s
        self._remedy = _WRITERS_REMEDY if create else _READERS_REMEDY
        self._refuse_what_is_no_file()
        if create:
            self._create_file()
        elif not os.path.lexists(file):
            raise self._no_store()
        with self._errors():
            self.connection = self._connect(writes=create)
        self._identity = self._identity_of_file()

    def _no_store(self) -> StoreError:
        return self.error(
            "not_found", "there is no run store. 'eval', 'grade' and 'solve' make it, or correct store.file"
        )

    def _refuse_what_is_no_file(self) -> None:
        try:
            kind = kind_of_file(self.file)
        except (OSError, ValueError) as error:
            raise self.error("cannot_open", f"{getattr(error, 'strerror', None) or error}. {self._remedy}") from None
        if kind is not None:
            raise self.error("cannot_open", f"it is {kind}. {self._remedy}")

    def _create_file(self) -> None:
        """For its owner alone: captured mails may stand in it."""
        if os.path.exists(self.file):
            return
        try:
            make_private_folder(self.file.parent)
            with suppress(FileExistsError):  # another run was first, or it is a link to what is not there
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise self.error("cannot_create", f"it cannot be made ({error.strerror}). {self._remedy}") from None

    def _connect(self, *, writes: bool) -> sqlite3.Connection:
        """Where an earlier version wrote it, it is brought up to date, whoever opens it."""
        if writes:  # the file has been made, and a URI takes a module that takes 2 ms to load
            connection = _open(os.path.abspath(self.file), self._busy_s)
        else:
            connection = _open(f"{self.file.absolute().as_uri()}?mode=ro", self._busy_s, uri=True)
        try:
            if is_foreign(connection):
                raise self.error("not_ours", f"it is another program's database. {self._remedy}")
            version = schema_version(connection)
            if 0 < version < OLDEST_VERSION:
                problem = f"an earlier version wrote it (schema {version}; this one knows {OLDEST_VERSION} and newer)"
                raise self.error("older_schema", f"{problem}. Move it away: a new one is then begun")
            if version > SCHEMA_VERSION:
                problem = f"a newer version wrote it (schema {version}; this one knows {SCHEMA_VERSION})"
                raise self.error("newer_schema", f"{problem}. Update this program, or name another file in store.file")
            if writes:
                if not version:  # once there are tables it is too late
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                enable_wal(connection, self._busy_s)
                connection.execute("PRAGMA synchronous = NORMAL")
                if version < SCHEMA_VERSION:
                    connection.execute("BEGIN IMMEDIATE")
                    bring_up_to_date(connection)
                    connection.execute("COMMIT")
            elif not version:  # who made it was killed before there was a table
                raise self._no_store()
            elif version < SCHEMA_VERSION:
                connection.close()
                return self._connect(writes=True)
            if is_crafted(connection):
                raise self.error("not_ours", f"its tables are not those of this program. {self._remedy}")
            connection.execute("SELECT 1 FROM runs LIMIT 1")  # damage shows now, and not in the middle of an answer
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """What is written in it stands as a whole or not at all. kind: `DEFERRED` to read. Raises StoreError."""
        with self._errors():
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # some errors have rolled it back
                    self.connection.execute("ROLLBACK")
                raise

    def check_in_place(self) -> None:
        """Raise StoreError where the file was deleted or replaced: what is written then goes where nobody looks."""
        if self._identity_of_file() != self._identity:
            problem = "it was deleted or replaced while the run went on. Leave it alone until its runs are over"
            raise self.error("replaced", problem)

    def _identity_of_file(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.file)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code, text = _PROBLEMS[sqlite_error_kind(error)]
            problem = text.format(remedy=self._remedy)
            raise self.error(code, problem if code != "failed" else f"{problem} ({error})") from None

    def error(self, code: str, problem: str) -> StoreError:
        return StoreError(f"{printable(str(self.file))}: {problem}", f"store_{code}")

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self.connection.close()


def _open(place: str, busy_s: float, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        place, uri=uri, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=64
    )


def temporary_store(resources: ExitStack) -> KeptRun:
    """A store in a folder that goes with `resources`. Raises ConfigurationError where there can be none."""
    import tempfile  # few runs need it

    try:
        folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="runs-", ignore_cleanup_errors=True))
    except OSError as error:
        raise not_kept(error.strerror or str(error)) from None
    return KeptRun(Path(folder) / "runs.sqlite3", None, lambda: "")


def not_kept(reason: str) -> ConfigurationError:
    """There is nothing to make the reports of a run of."""
    problem = f"The results of this run cannot be kept for its reports ({reason})"
    return ConfigurationError(f"{problem}. Make room, or name another temporary folder in TMPDIR", "report_no_room")

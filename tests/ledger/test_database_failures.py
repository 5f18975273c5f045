import sqlite3
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ledgers import KEY, LOCATION, MAIL, REPLY, claimed
from processes import as_nobody

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.ledger.opening import open_ledger, open_ledger_to_read
from guarantee_email_agent.ledger.tables import MARK
from guarantee_email_agent.utils.errors import EXIT_CONFIGURATION, EXIT_FAILURE, AgentError, ConfigurationError


def outage(call: Callable[[], object]) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        call()
    assert (caught.value.outage, caught.value.exit_code) == (True, EXIT_FAILURE)
    assert "\n" not in caught.value.message
    return caught.value


def misconfigured(location: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        open_ledger(location, key=KEY, lock_timeout_s=1)
    assert caught.value.exit_code == EXIT_CONFIGURATION
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("mysql://localhost/ledger", "ledger_invalid_location"),
        ("sqlite://", "ledger_invalid_location"),
        ("sqlite:///:memory:", "ledger_invalid_location"),
        ("sqlite:///file:x?mode=memory&uri=true", "ledger_invalid_location"),
        ("postgresql://user:hidden@word@host:port/x", "ledger_invalid_location"),
        ("no-such-folder/ledger.db", "ledger_folder_missing"),
        ("/dev/null", "ledger_cannot_open"),
    ],
)
def test_a_location_that_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str, code: str) -> None:
    monkeypatch.chdir(tmp_path)
    error = misconfigured(location)
    assert error.code == code
    assert "hidden" not in error.message


def test_a_sqlite_url_names_a_file_as_well(tmp_path: Path) -> None:
    with closing(open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", key=KEY)) as ledger:
        claimed(ledger)
        assert {file.stat().st_mode & 0o777 for file in tmp_path.glob("ledger.db*")} == {0o600}  # for its owner alone


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tickets.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE tickets (id TEXT)")
    error = misconfigured(str(path))
    assert error.code == "ledger_not_ours"
    assert "tickets" in error.message
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("tickets",)]


def test_a_file_that_this_user_may_not_write(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    tmp_path.chmod(0)
    for look in (partial(open_ledger, key=KEY), partial(open_ledger_to_read, key=KEY), LedgerReader):
        with as_nobody(), pytest.raises(AgentError, match=r"cannot be opened .*Permission denied|SQLITE_CANTOPEN"):
            look(str(tmp_path / "ledger.db"))  # root, no file refuses
    tmp_path.chmod(0o700)


def test_a_file_that_is_taken_away_is_an_outage_until_it_is_back(tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "ledger.db", tmp_path / "elsewhere.db"
    with closing(open_ledger(str(file), key=KEY)) as ledger:
        file.rename(elsewhere)
        assert outage(lambda: claimed(ledger)).code == "ledger_replaced"
        file.touch()
        assert outage(ledger.id).code == "ledger_replaced"
        elsewhere.rename(file)
        claimed(ledger)


def test_a_ledger_that_stays_locked(ledger_location: str, ledger_sql: Any) -> None:
    with closing(open_ledger(ledger_location, key=KEY, lock_timeout_s=1)) as ledger:
        held = claimed(ledger)
        ledger_sql.rows("BEGIN")
        ledger_sql.rows("UPDATE ledger_mails SET reason = ''")
        error = outage(lambda: ledger.intend_send(held, REPLY))
        assert error.code == "ledger_locked"
        ledger_sql.rows("ROLLBACK")
        ledger.intend_send(held, REPLY)


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    written = []
    with closing(open_ledger(str(path), key=KEY)) as ledger:
        with ledger._database.read_transaction() as connection:  # the only one so far
            connection.exec_driver_sql("PRAGMA max_page_count = 20")

        def fill() -> None:
            for number in range(2000):
                claimed(ledger, mail=f"{number:032x}", location=f"{number:032x}")
                written.append(f"{number:032x}")

        assert outage(fill).code == "ledger_disk_full"
        assert len(written) > 0
        assert all(ledger.state(location) is not None for location in written)


def test_close_waits_for_what_was_begun(ledger_location: str, ledger_sql: Any) -> None:
    """A thread goes on for a while after the task that waits for it was cancelled."""
    ledger = open_ledger(ledger_location, key=KEY)
    held = claimed(ledger)
    begun, may_go_on = threading.Event(), threading.Event()

    def write() -> None:
        with ledger._database.write_transaction() as connection:
            begun.set()
            assert may_go_on.wait(30)
            connection.execute(MARK, {"at_location": held.location_key})

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        assert begun.wait(30)
        threading.Timer(0.3, may_go_on.set).start()
        ledger.close()
        assert ledger_sql.rows("SELECT count(marked_at) FROM ledger_places") == [(1,)]
        writing.result()


def test_a_list_may_be_as_long_as_an_inbox(ledger: Ledger) -> None:
    claimed(ledger)
    listed = [f"{number:032x}" for number in range(40_000)]
    assert ledger.inbox([*listed, LOCATION]).seen == {LOCATION}


def test_a_server_that_is_not_there(postgresql_server: Any) -> None:
    url = postgresql_server.url("postgres").replace(str(postgresql_server.port), "1")
    error = outage(lambda: open_ledger(url, key=KEY, lock_timeout_s=1))
    assert error.code == "ledger_unreachable"
    assert "postgresql://127.0.0.1:1/postgres" in error.message
    assert_hidden(error, "fixture-password")


WRONG = "wr0ng-secret"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (lambda server: server.url("postgres", password=WRONG), "ledger_auth"),
        (lambda server: f"postgresql://127.0.0.1:{server.port}/postgres?user=ledger&password={WRONG}", "ledger_auth"),
        (lambda server: server.url("postgres", user="nobody_here"), "ledger_auth"),
        (lambda server: server.url("no_such_database"), "ledger_database_missing"),
        (lambda server: server.url("postgres?nonsense=1"), "ledger_invalid_location"),
    ],
    ids=["wrong password", "wrong password in the query", "no such user", "no such database", "no such option"],
)
def test_a_url_that_postgresql_refuses(postgresql_server: Any, url: Callable[[Any], str], code: str) -> None:
    error = misconfigured(url(postgresql_server))
    assert error.code == code
    assert_hidden(error, WRONG, "fixture-password")


def test_a_user_who_may_not_create_tables(postgresql_server: Any, postgresql_url: str) -> None:
    postgresql_server.execute("DROP ROLE IF EXISTS guest")
    postgresql_server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-password'")
    postgresql_server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", postgresql_url.rpartition("/")[2])
    url = postgresql_url.replace("ledger:fixture-password", "guest:guest-password")
    error = misconfigured(url)
    assert error.code == "ledger_permission"
    assert_hidden(error, "guest-password")


def test_a_server_that_is_read_only_may_be_a_standby_that_takes_over(
    postgresql_server: Any, postgresql_url: str
) -> None:
    open_ledger(postgresql_url, key=KEY).close()
    name = postgresql_url.rpartition("/")[2]
    postgresql_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    for opens in (open_ledger, open_ledger_to_read):
        error = outage(lambda opens=opens: opens(postgresql_url, key=KEY))
        assert error.code == "ledger_read_only"
        assert "standby" in error.message
    postgresql_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
    open_ledger(postgresql_url, key=KEY).close()


def test_the_usual_ways_to_write_a_postgresql_url(postgresql_url: str) -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        open_ledger(postgresql_url.replace("postgresql+psycopg", scheme), key=KEY).close()


def test_settings_of_a_server_that_would_weaken_the_ledger(postgresql_server: Any) -> None:
    url = postgresql_server.new_database("ENCODING SQL_ASCII TEMPLATE template0")
    name = url.rpartition("/")[2]
    for setting in ("synchronous_commit = off", "default_transaction_isolation = serializable"):
        postgresql_server.execute(f"ALTER DATABASE {name} SET {setting}")
    with closing(open_ledger(url, key=KEY)) as ledger:
        assert claimed(ledger).mail_key == MAIL
        with ledger._database.write_transaction() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
            assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


def test_a_connection_that_is_cut_in_the_middle(postgresql_server: Any, postgresql_url: str) -> None:
    with (
        closing(open_ledger(postgresql_url, key=KEY)) as ledger,
        closing(psycopg.connect(postgresql_url.replace("+psycopg", ""))) as other,
    ):
        held = claimed(ledger)
        other.execute("UPDATE ledger_mails SET reason = ''")
        cut = threading.Timer(0.3, lambda: cut_connections(postgresql_server, postgresql_url))
        cut.start()
        error = outage(lambda: ledger.intend_send(held, REPLY))
        cut.join()
        assert error.code == "ledger_unreachable"
        other.rollback()
        ledger.intend_send(held, REPLY)


@pytest.mark.slow
@pytest.mark.parametrize("outage_of", ["stopped", "suspended"])
def test_a_server_that_crashes_or_hangs_and_comes_back(
    postgresql_server: Any, postgresql_url: str, outage_of: str
) -> None:
    with closing(open_ledger(postgresql_url, key=KEY, lock_timeout_s=0.5)) as ledger:
        held = claimed(ledger)
        with getattr(postgresql_server, outage_of)():
            assert outage(lambda: ledger.intend_send(held, REPLY)).code == "ledger_unreachable"
            assert outage(lambda: ledger.inbox([])).code == "ledger_unreachable"
        ledger.intend_send(held, REPLY)


def assert_hidden(error: AgentError, *secrets: str) -> None:
    printed = error.message + repr(error) + repr(error.details) + "".join(traceback.format_exception(error))
    assert [secret for secret in secrets if secret in printed] == []


def cut_connections(server: Any, url: str) -> None:
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{url.rpartition('/')[2]}' AND application_name = 'guarantee-email-agent'"
    )

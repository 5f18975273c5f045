"""A ledger that an earlier version of the agent made is brought up to date where it lies, or left as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledgers import KEY, LEASE_S, REPLY
from sqlalchemy import create_engine, inspect

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.mail_state import Busy, Done
from guarantee_email_agent.ledger.opening import open_ledger, open_ledger_to_read
from guarantee_email_agent.ledger.schema import SCHEMA_VERSION
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError

MAILS = "SELECT mail_key, stage, fence, reply_message_id, outcome, created_at FROM ledger_mails ORDER BY mail_key"
PLACES = "SELECT place, mail_key, marked_at FROM ledger_places ORDER BY place"


def mail(number: int) -> str:
    return f"{number:032x}"


@pytest.fixture(params=[3, 4, 5])
def old_ledger(ledger_location: str, ledger_sql: Any, request: pytest.FixtureRequest) -> str:
    """One of an earlier version, with a mail that has ended and one whose reply may have left."""
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        for number in (1, 2):
            claim = ledger.claim(mail(number), location_key=mail(100 + number), owner="one:1", lease_s=LEASE_S)
            assert isinstance(claim, Claim)
            ledger.intend_send(claim, REPLY)
        ledger.finish(claim, "answered")
    ledger_sql.rows("DROP INDEX ledger_mails_by_copy")
    for since, table, column in ((5, "mails", "copy_key"), (6, "mails", "crashes"), (6, "places", "mailbox_key")):
        if request.param < since:
            ledger_sql.rows(f"ALTER TABLE ledger_{table} DROP COLUMN {column}")
    ledger_sql.rows("CREATE TABLE ledger_outages (id TEXT PRIMARY KEY, owner TEXT NOT NULL)")
    ledger_sql.rows("UPDATE ledger_facts SET value = ? WHERE name = 'schema_version'", str(request.param))
    return ledger_location


def version(ledger_sql: Any) -> int:
    ((value,),) = ledger_sql.rows("SELECT value FROM ledger_facts WHERE name = 'schema_version'")
    return int(value)


def test_no_mail_and_no_location_is_lost_and_each_goes_on_from_where_it_was(old_ledger: str, ledger_sql: Any) -> None:
    mails, places = ledger_sql.rows(MAILS), ledger_sql.rows(PLACES)
    with closing(open_ledger(old_ledger, key=KEY)) as ledger:
        assert (ledger_sql.rows(MAILS), ledger_sql.rows(PLACES)) == (mails, places)
        assert isinstance(ledger.state(mail(101)), Busy)
        assert isinstance(ledger.state(mail(102)), Done)
        ledger_sql.pass_time(LEASE_S + 1)
        claim = ledger.claim(mail(1), location_key=mail(101), owner="two:2", lease_s=LEASE_S)
        assert isinstance(claim, Claim)
        assert (claim.previous, claim.fence, claim.reply_message_id) == ("sending", 2, REPLY)
    assert version(ledger_sql) == SCHEMA_VERSION


def test_an_updated_ledger_is_made_like_a_new_one(
    old_ledger: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "://" in old_ledger:
        new = request.getfixturevalue("postgresql_server").new_database()
    else:
        new = str(tmp_path / "new.db")
    for location in (old_ledger, new):
        open_ledger(location, key=KEY).close()
    updated = structure(old_ledger)
    del updated["ledger_outages"]
    assert updated == structure(new)


@pytest.mark.parametrize("old_version", [1, 2])
@pytest.mark.parametrize("opens", [open_ledger, open_ledger_to_read])
def test_one_of_before_the_oldest_is_refused_and_left_as_it_is(
    old_ledger: str, ledger_sql: Any, old_version: int, opens: Callable[..., Ledger | None]
) -> None:
    ledger_sql.rows("UPDATE ledger_facts SET value = ? WHERE name = 'schema_version'", str(old_version))
    with pytest.raises(ConfigurationError, match=rf"schema {old_version}\). Start one that writes schema 3 or 4 first"):
        opens(old_ledger, key=KEY)
    assert version(ledger_sql) == old_version


def structure(location: str) -> dict[str, Any]:
    url = location.replace("postgresql://", "postgresql+psycopg://") if "://" in location else f"sqlite:///{location}"
    engine = create_engine(url)
    with engine.connect() as connection:
        inspector = inspect(connection)
        found = {
            table: (
                [{**column, "type": str(column["type"])} for column in inspector.get_columns(table)],
                inspector.get_pk_constraint(table)["constrained_columns"],
                sorted(str(check) for check in inspector.get_check_constraints(table)),
                inspector.get_foreign_keys(table),
                sorted(
                    (str(index["name"]), str(index["column_names"]), [*map(str, index["dialect_options"].values())])
                    for index in inspector.get_indexes(table)
                ),
            )
            for table in inspector.get_table_names()
        }
    engine.dispose()
    return found


def test_an_update_that_fails_changes_nothing(old_ledger: str, ledger_sql: Any) -> None:
    mails, places = ledger_sql.rows(MAILS), ledger_sql.rows(PLACES)
    before = version(ledger_sql)
    ledger_sql.rows("CREATE TABLE ledger_mails_by_copy (a_name_that_an_index_needs TEXT)")
    with pytest.raises(AgentError):
        open_ledger(old_ledger, key=KEY)
    assert (ledger_sql.rows(MAILS), ledger_sql.rows(PLACES), version(ledger_sql)) == (mails, places, before)
    ledger_sql.rows("DROP TABLE ledger_mails_by_copy")
    open_ledger(old_ledger, key=KEY).close()
    assert version(ledger_sql) == SCHEMA_VERSION


def test_with_another_key_nothing_is_updated(old_ledger: str, ledger_sql: Any) -> None:
    with pytest.raises(AgentError):
        open_ledger(old_ledger, key=b"another key")
    assert version(ledger_sql) < SCHEMA_VERSION


def test_several_agents_may_start_on_an_old_ledger_at_once(old_ledger: str, ledger_sql: Any) -> None:
    mails = ledger_sql.rows(MAILS)
    opens = (
        "import sys; from guarantee_email_agent.ledger.opening import open_ledger;"
        "open_ledger(sys.argv[1], key=b'k' * 32)"
    )
    agents = [subprocess.Popen([sys.executable, "-c", opens, old_ledger]) for _ in range(4)]
    assert [agent.wait() for agent in agents] == [0] * 4
    assert ledger_sql.rows(MAILS) == mails


def test_a_version_that_there_never_was_is_damage(old_ledger: str, ledger_sql: Any) -> None:
    ledger_sql.rows("UPDATE ledger_facts SET value = '0' WHERE name = 'schema_version'")
    with pytest.raises(LedgerError) as caught:
        open_ledger(old_ledger, key=KEY)
    assert caught.value.code == "ledger_corrupt"


def test_who_only_reads_leaves_an_old_ledger_as_it_is(old_ledger: str, ledger_sql: Any) -> None:
    before = structure(old_ledger), ledger_sql.rows(MAILS), ledger_sql.rows("SELECT * FROM ledger_facts ORDER BY name")
    ledger = open_ledger_to_read(old_ledger, key=KEY)
    assert ledger is not None
    with closing(ledger):
        assert ledger.schema_version < SCHEMA_VERSION
        assert ledger.inbox([mail(101)]).observed == set()
        assert ledger.first_start_if_known(mail(0)) is None
    facts = ledger_sql.rows("SELECT * FROM ledger_facts ORDER BY name")
    assert (structure(old_ledger), ledger_sql.rows(MAILS), facts) == before


def test_who_only_reads_waits_for_no_writer(ledger_location: str) -> None:
    with (
        closing(open_ledger(ledger_location, key=KEY)) as writing,
        writing._database.write_transaction() as connection,
    ):
        writing._database.lock_for_creation(connection)
        ledger = open_ledger_to_read(ledger_location, key=KEY, lock_timeout_s=1)
        assert ledger is not None
        ledger.close()


def test_who_only_reads_makes_no_ledger_and_needs_its_key(ledger_location: str) -> None:
    assert open_ledger_to_read(ledger_location, key=KEY) is None
    assert open_ledger_to_read(ledger_location, key=KEY) is None
    open_ledger(ledger_location, key=KEY).close()
    with pytest.raises(AgentError) as caught:
        open_ledger_to_read(ledger_location, key=b"another key")
    assert caught.value.code == "ledger_wrong_key"

"""A ledger that an earlier version of the agent made is brought up to date where it lies, or left as it was."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledgers import KEY, LEASE_S, REPLY
from sqlalchemy import create_engine, inspect

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Claim
from guarantee_email_agent.ledger.mail_state import Busy, Done
from guarantee_email_agent.ledger.opening import open_ledger, open_ledger_to_read
from guarantee_email_agent.ledger.schema import SCHEMA_VERSION
from guarantee_email_agent.services.ports import Admission
from guarantee_email_agent.utils.errors import AgentError

VERSION_1 = """
CREATE TABLE ledger_facts (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE ledger_mails (
    mail_key TEXT NOT NULL,
    stage TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    fence BIGINT NOT NULL,
    owner TEXT,
    since DOUBLE PRECISION NOT NULL,
    span_s DOUBLE PRECISION NOT NULL,
    ticket_key TEXT,
    ticket_id TEXT,
    reply_message_id TEXT,
    outcome TEXT,
    reason TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    changed_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (mail_key),
    CONSTRAINT ledger_mails_stage CHECK (stage IN ('claimed', 'ticketing', 'ticketed', 'sending', 'sent')),
    CONSTRAINT ledger_mails_outcome CHECK (outcome IN ('answered', 'not_answered', 'quarantined', 'unknown')),
    CONSTRAINT ledger_mails_final CHECK (owner IS NULL OR outcome IS NULL),
    CONSTRAINT ledger_mails_counts CHECK (attempts >= 0 AND fence >= 1 AND span_s >= 0)
)<TABLE>;
CREATE INDEX ledger_mails_by_outcome ON ledger_mails (outcome);
CREATE TABLE ledger_places (
    place TEXT NOT NULL,
    mail_key TEXT NOT NULL,
    marked_at DOUBLE PRECISION,
    PRIMARY KEY (place),
    FOREIGN KEY(mail_key) REFERENCES ledger_mails (mail_key) ON DELETE CASCADE
)<TABLE>;
CREATE INDEX ledger_places_by_mail ON ledger_places (mail_key)
"""
"""As version 1 made them."""

STATES = [
    *((stage, None) for stage in ("claimed", "ticketing", "ticketed", "sending", "sent")),
    ("sent", "answered"),
    ("claimed", "not_answered"),
    ("ticketed", "quarantined"),
    ("sending", "unknown"),
]
MAILS = "SELECT mail_key, stage, fence, reply_message_id, outcome, created_at FROM ledger_mails ORDER BY mail_key"
PLACES = "SELECT place, mail_key, marked_at FROM ledger_places ORDER BY place"


MAILBOX = "b0" * 16


def mail(number: int) -> str:
    return f"{number:032x}"


@pytest.fixture
def old_ledger(ledger_location: str, ledger_sql: Any) -> str:
    """A ledger of version 1 with a mail in every stage and outcome."""
    for statement in VERSION_1.split(";"):
        ledger_sql.rows(statement.replace("<TABLE>", "" if "://" in ledger_location else " WITHOUT ROWID"))
    fingerprint = hmac.new(KEY, b"guarantee-email-agent ledger", hashlib.sha256).hexdigest()
    for fact in (("schema_version", "1"), ("key_fingerprint", fingerprint)):
        ledger_sql.rows("INSERT INTO ledger_facts VALUES (?, ?)", *fact)
    for number, (stage, outcome) in enumerate(STATES):
        reply = f"<reply-{mail(number)}@example.com>" if stage in ("sending", "sent") else None
        ticket = None if stage == "claimed" else f"TICKET-{number}"
        ledger_sql.rows(
            "INSERT INTO ledger_mails VALUES (?, ?, 1, 7, ?, 1000, 180, ?, ?, ?, ?, 'some_reason', ?, 2000)",
            *(mail(number), stage, None if outcome else "one:1", ticket, ticket, reply, outcome, 1000.5 + number),
        )
        ledger_sql.rows("INSERT INTO ledger_places VALUES (?, ?, ?)", mail(100 + number), mail(number), 3000)
    return ledger_location


def version(ledger_sql: Any) -> int:
    ((value,),) = ledger_sql.rows("SELECT value FROM ledger_facts WHERE name = 'schema_version'")
    return int(value)


def test_no_mail_and_no_location_is_lost_and_each_goes_on_from_where_it_was(old_ledger: str, ledger_sql: Any) -> None:
    mails, places = ledger_sql.rows(MAILS), ledger_sql.rows(PLACES)
    with closing(open_ledger(old_ledger, key=KEY)) as ledger:
        assert (ledger_sql.rows(MAILS), ledger_sql.rows(PLACES)) == (mails, places)
        for number, (stage, outcome) in enumerate(STATES):
            found = ledger.claim(mail(number), location_key=mail(100 + number), owner="two:2", lease_s=LEASE_S)
            if outcome:
                assert isinstance(found, Done)
                assert (found.outcome, found.marked) == (outcome, True)
            else:
                assert isinstance(found, Claim)
                assert (found.previous, found.fence, found.delivery) == (stage, 8, "send")
    assert version(ledger_sql) == SCHEMA_VERSION


def test_what_is_new_can_be_done_with_old_mails(old_ledger: str) -> None:
    with closing(open_ledger(old_ledger, key=KEY)) as ledger:
        claim = ledger.claim(mail(0), location_key=mail(100), owner="two:2", lease_s=LEASE_S)
        assert isinstance(claim, Claim)
        thread = ledger.find_thread(claim, [f"<reply-{mail(5)}@example.com>"])
        assert thread is not None
        assert (thread.key, thread.ticket_id, thread.replied_at, thread.replies) == (mail(5), "TICKET-5", 2000, 1)
        assert ledger.admit(claim, Admission("a1" * 16), ReplyLimits()) is None
        ledger.intend_send(claim, REPLY, delivery="draft")
        ledger.finish(claim, "drafted")


def test_no_mail_that_waits_is_one_from_before_its_first_start(old_ledger: str) -> None:
    """A mail comes before it is claimed, and one of the earlier version's backlog long before."""
    with closing(open_ledger(old_ledger, key=KEY)) as ledger:
        assert ledger.first_start_if_known(MAILBOX) == 0
        assert ledger.first_start(MAILBOX) == 0


def test_an_old_ledger_without_a_mail_was_not_started_yet(old_ledger: str, ledger_sql: Any) -> None:
    ledger_sql.rows("DELETE FROM ledger_places")
    ledger_sql.rows("DELETE FROM ledger_mails")
    with closing(open_ledger(old_ledger, key=KEY)) as ledger:
        assert ledger.first_start_if_known(MAILBOX) is None


def test_a_location_still_goes_with_its_mail(old_ledger: str, ledger_sql: Any) -> None:
    with closing(open_ledger(old_ledger, key=KEY)) as ledger:
        assert ledger.prune(30) == 0  # its first look at the clock
        ledger_sql.pass_time(31 * 86_400.0)
        assert ledger.prune(30) == 2
    assert len(ledger_sql.rows(PLACES)) == len(STATES) - 2


def test_an_updated_ledger_is_made_like_a_new_one(
    old_ledger: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "://" in old_ledger:
        new = request.getfixturevalue("postgresql_server").new_database()
    else:
        new = str(tmp_path / "new.db")
    for location in (old_ledger, new):
        open_ledger(location, key=KEY).close()
    assert structure(old_ledger) == structure(new)


def test_a_ledger_of_version_2_gets_its_new_columns_and_keeps_its_mails(ledger_location: str, ledger_sql: Any) -> None:
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        ledger.finish(ledger.claim(mail(1), location_key=mail(2), owner="one:1", lease_s=1), "not_answered", "no_reply")  # type: ignore[arg-type]
    new = structure(ledger_location)
    for index in ("release", "copy"):
        ledger_sql.rows(f"DROP INDEX ledger_mails_by_{index}")
    for column in ("released_at", "worked_s", "cost_usd", "copy_key"):
        ledger_sql.rows(f"ALTER TABLE ledger_mails DROP COLUMN {column}")
    drop_what_came_in_6(ledger_sql)
    ledger_sql.rows("DROP TABLE ledger_agents")
    ledger_sql.rows("UPDATE ledger_facts SET value = '2' WHERE name = 'schema_version'")
    mails = ledger_sql.rows(MAILS)
    open_ledger(ledger_location, key=KEY).close()
    assert (version(ledger_sql), ledger_sql.rows(MAILS)) == (SCHEMA_VERSION, mails)
    assert structure(ledger_location) == new


@pytest.mark.parametrize("old_version", [3, 4])
def test_a_ledger_with_a_table_that_is_no_longer_used_keeps_its_mails(
    ledger_location: str, ledger_sql: Any, old_version: int
) -> None:
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        ledger.claim(mail(1), location_key=mail(2), owner="one:1", lease_s=LEASE_S)
    new = structure(ledger_location)
    ledger_sql.rows("DROP INDEX ledger_mails_by_copy")
    ledger_sql.rows("ALTER TABLE ledger_mails DROP COLUMN copy_key")
    drop_what_came_in_6(ledger_sql)
    ledger_sql.rows("CREATE TABLE ledger_outages (id TEXT PRIMARY KEY, owner TEXT NOT NULL)")
    ledger_sql.rows(f"UPDATE ledger_facts SET value = '{old_version}' WHERE name = 'schema_version'")
    mails = ledger_sql.rows(MAILS)
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        assert isinstance(ledger.state(mail(2)), Busy)
    assert (version(ledger_sql), ledger_sql.rows(MAILS)) == (SCHEMA_VERSION, mails)
    assert structure(ledger_location) == new | {"ledger_outages": structure(ledger_location)["ledger_outages"]}


def drop_what_came_in_6(ledger_sql: Any) -> None:
    ledger_sql.rows("ALTER TABLE ledger_mails DROP COLUMN crashes")
    ledger_sql.rows("ALTER TABLE ledger_places DROP COLUMN mailbox_key")


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
    ledger_sql.rows("CREATE TABLE ledger_mails_by_text (a_name_that_an_index_needs TEXT)")
    with pytest.raises(AgentError):
        open_ledger(old_ledger, key=KEY)
    assert (ledger_sql.rows(MAILS), ledger_sql.rows(PLACES), version(ledger_sql)) == (mails, places, 1)
    ledger_sql.rows("DROP TABLE ledger_mails_by_text")
    open_ledger(old_ledger, key=KEY).close()
    assert version(ledger_sql) == SCHEMA_VERSION


def test_with_another_key_nothing_is_updated(old_ledger: str, ledger_sql: Any) -> None:
    with pytest.raises(AgentError):
        open_ledger(old_ledger, key=b"another key")
    assert version(ledger_sql) == 1


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
        assert (ledger.schema_version, ledger.id_if_known()) == (1, None)
        assert ledger.observed([mail(100)]) == set()
        assert ledger.first_start_if_known(MAILBOX) is None
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

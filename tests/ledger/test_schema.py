"""A ledger is made once, by whoever comes first, and opened with its own key alone."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from ledgers import KEY, claimed

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.ledger.opening import open_ledger, open_ledger_to_read
from guarantee_email_agent.utils.errors import AgentError


def test_one_without_the_newest_columns_is_brought_up_to_date(ledger_location: str, ledger_sql: Any) -> None:
    columns = ("message_key", "reply_words", "comparison", "alike_percent")
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        claim = claimed(ledger)
    for statement in (
        "DROP INDEX ledger_mails_by_message",
        *(f"ALTER TABLE ledger_mails DROP COLUMN {each}" for each in columns),
    ):
        ledger_sql.rows(statement)
    with LedgerReader(ledger_location) as reader:
        assert reader.comparisons() == []
    with closing(open_ledger(ledger_location, key=KEY)):
        assert ledger_sql.rows(f"SELECT mail_key, {', '.join(columns)} FROM ledger_mails") == [
            (claim.mail_key, *[None] * 4)
        ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE ledger_facts SET value = '5' WHERE name = 'schema_version'", "ledger_older_schema"),
        ("UPDATE ledger_facts SET value = '99' WHERE name = 'schema_version'", "ledger_newer_schema"),
        ("UPDATE ledger_facts SET value = '0' WHERE name = 'schema_version'", "ledger_corrupt"),
        ("UPDATE ledger_facts SET value = 'x' WHERE name = 'schema_version'", "ledger_corrupt"),
        ("DELETE FROM ledger_facts WHERE name = 'ledger_id'", "ledger_corrupt"),
        ("DROP TABLE ledger_places", "ledger_corrupt"),
    ],
)
@pytest.mark.parametrize(
    "opens",
    [
        lambda location: open_ledger(location, key=KEY),
        lambda location: open_ledger_to_read(location, key=KEY),
        LedgerReader,
    ],
    ids=["to work", "to check", "to read"],
)
def test_one_of_another_version_or_not_whole_is_refused_and_left_as_it_is(
    ledger_location: str, ledger_sql: Any, change: str, code: str, opens: Callable[[str], object]
) -> None:
    open_ledger(ledger_location, key=KEY).close()
    ledger_sql.rows(change)
    facts = ledger_sql.rows("SELECT * FROM ledger_facts ORDER BY name")
    with pytest.raises(AgentError) as refused:
        opens(ledger_location)
    assert refused.value.code == code
    assert ledger_sql.rows("SELECT * FROM ledger_facts ORDER BY name") == facts


def test_several_agents_may_start_on_a_new_ledger_at_once(ledger_location: str, ledger_sql: Any) -> None:
    opens = (
        "import sys; from guarantee_email_agent.ledger.opening import open_ledger;"
        "open_ledger(sys.argv[1], key=b'k' * 32)"
    )
    agents = [subprocess.Popen([sys.executable, "-c", opens, ledger_location]) for _ in range(4)]
    assert [agent.wait() for agent in agents] == [0] * 4


def test_who_only_reads_waits_for_no_writer(ledger_location: str) -> None:
    with (
        closing(open_ledger(ledger_location, key=KEY)) as writing,
        writing._database.write_transaction() as connection,
    ):
        writing._database.lock(connection)
        ledger = open_ledger_to_read(ledger_location, key=KEY, lock_timeout_s=1)
        ledger.close()


@pytest.mark.parametrize("opens", [open_ledger, open_ledger_to_read])
def test_who_only_reads_makes_no_ledger_and_each_needs_its_key(
    ledger_location: str, opens: Callable[..., Ledger | None]
) -> None:
    assert [open_ledger_to_read(ledger_location, key=KEY) for _ in range(2)] == [None, None]
    open_ledger(ledger_location, key=KEY).close()
    for key, code in ((b"another key", "ledger_wrong_key"), (b"", "ledger_no_key")):
        with pytest.raises(AgentError) as caught:
            opens(ledger_location, key=key)
        assert caught.value.code == code

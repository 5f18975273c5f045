"""A prepared statement says the same as SQLAlchemy would, on both databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from ledgers import KEY, LOCATION, MAIL, REPLY, claimed
from sqlalchemy import (
    Boolean,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    true,
)

from guarantee_email_agent.ledger import agents, conversations, interventions, tables
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.ledger.prepared_statements import PreparedConnection, Statement, prepare
from guarantee_email_agent.ledger.tables import is_one_of, locations, mails

NUMBER = select(literal_column("7") % literal_column("4"), literal("50% off :now %(x)s ?"))
AT_MAIL = {"at_mail": "0" * 32}
READING: dict[str, tuple[Statement, Mapping[str, Any]]] = {
    "state": (tables.STATE, {"at_location": LOCATION}),
    "current claim": (tables.CURRENT_CLAIM, {"at_mail": MAIL}),
    "outcomes": (tables.OUTCOMES, {"places": [LOCATION, MAIL]}),
    "answered": (conversations._ANSWERED, {**AT_MAIL, "message_ids": [REPLY, "<other@example.com>"]}),
    "thread": (conversations._MAILS_OF_THREAD, {**AT_MAIL, "thread_key": MAIL}),
    "admitted": (
        conversations._ADMITTED,
        {**AT_MAIL, "thread_key": MAIL, "sender_key": None, "text_key": None, "hour_ago": 0.0},
    ),
    "mail": (interventions._MAIL, {"at_mail": MAIL}),
    "agents": (agents.ALL_AGENTS, {}),
    "signs that drivers read": (NUMBER, {}),
}


@contextmanager
def prepared(ledger: Ledger) -> Iterator[PreparedConnection]:
    with ledger._database.write_transaction() as connection:
        yield connection


def stopped(row: Any) -> tuple[Any, ...]:
    """Without the clock, which goes on between two statements."""
    return tuple(value for name, value in row._asdict().items() if name != "now")


@pytest.mark.parametrize(("statement", "values"), READING.values(), ids=READING)
def test_rows_are_those_of_sqlalchemy(ledger: Ledger, statement: Any, values: Mapping[str, Any]) -> None:
    ledger.intend_send(claimed(ledger), REPLY)
    ledger.agents.beat("one:1", agents.AgentReport("1.0", "answer"))
    with prepared(ledger) as connection:
        own = statement[ledger._database.dialect] if isinstance(statement, dict) else statement
        expected = connection.sqlalchemy.execute(own, values).all()
        rows = connection.rows(statement, values)
        assert len(rows) == 1
        assert [stopped(row) for row in rows] == [stopped(row) for row in expected]
        if statement is not NUMBER:
            assert [row._fields for row in rows] == [row._fields for row in expected]


@pytest.mark.parametrize("size", [0, 1, 40_000])
def test_a_list_of_any_length_is_one_parameter(ledger: Ledger, size: int) -> None:
    claimed(ledger)
    listed = [*(f"'{number}\"\\" for number in range(size)), LOCATION]
    with prepared(ledger) as connection:
        assert [row.place for row in connection.rows(tables.OUTCOMES, {"places": listed})] == [LOCATION]
        assert connection.rows(tables.OUTCOMES, {"places": listed[:-1]}) == []


def test_what_was_written_is_counted(ledger: Ledger) -> None:
    claimed(ledger)
    with prepared(ledger) as connection:
        assert connection.execute(tables.MARK, {"at_location": LOCATION}) == 1
        assert connection.execute(tables.MARK, {"at_location": MAIL}) == 0


@pytest.mark.parametrize("value", [True, False])
def test_truth_is_the_database_s_own(ledger: Ledger, value: bool) -> None:
    says = select(case((bindparam("value", type_=Boolean) == true(), "yes"), else_="no"))
    with prepared(ledger) as connection:
        assert connection.value(says, {"value": value}) == ("yes" if value else "no")
        read = select(literal(7), bindparam("value", type_=Boolean), cast(null(), Boolean))
        assert [repr(each) for each in connection.one(read, {"value": value})] == ["7", repr(value), "None"]


def test_values_that_an_execution_brings_stand_before_those_of_the_statement(ledger: Ledger) -> None:
    says = select(bindparam("one", 1, Integer).label("one"), bindparam("two", "b", Text).label("two"))
    with prepared(ledger) as connection:
        assert connection.one(says)._asdict() == {"one": 1, "two": "b"}
        assert connection.one(says, {"two": None})._asdict() == {"one": 1, "two": None}
        assert connection.row(says.where(says.selected_columns.one == 2)) is None


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_statement_that_lacks_a_value_is_a_bug_of_ours(dialect: str) -> None:
    with pytest.raises(TypeError, match="lacks at_fence"):
        prepare(tables.INTEND_TICKET, dialect, ("at_mail", "ticket_key"))
    of_fixed_length = select(mails.c.stage).where(mails.c.mail_key.in_(["a", "b"]))
    with pytest.raises(TypeError, match="list of fixed length"):
        prepare(of_fixed_length, dialect, ())


def test_it_is_compiled_once() -> None:
    names = ("at_mail", "at_fence", "ticket_key")
    assert prepare(tables.INTEND_TICKET, "sqlite", names) is prepare(tables.INTEND_TICKET, "sqlite", names)
    assert prepare(tables.INTEND_TICKET, "sqlite", names) is not prepare(tables.INTEND_TICKET, "postgresql", names)


def test_a_list_is_looked_up_by_the_index(ledger: Ledger, ledger_sql: Any) -> None:
    """A scan of all mails for each poll would grow with the ledger."""
    for number in range(50):
        claimed(ledger, mail=f"{number:032x}", location=f"{number:032x}")
    dialect = ledger._database.dialect
    is_listed = is_one_of(locations.c.place, "places")[dialect]
    sql = prepare(select(locations.c.mail_key).where(is_listed), dialect, ("places",)).sql
    if dialect == "sqlite":
        plan = ledger_sql.rows("EXPLAIN QUERY PLAN " + sql.replace(":places", "?"), "[]")
        assert "SEARCH ledger_places USING PRIMARY KEY" in str(plan)
    else:
        ledger_sql.rows("SET enable_seqscan = off")
        plan = ledger_sql.rows("EXPLAIN " + sql.replace("%(places)s", "?"), [MAIL])
        assert "ledger_places_pkey" in str(plan)


def test_schema_and_prepared_statements_share_one_transaction(ledger_location: str) -> None:
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        claimed(ledger)
        with suppress(KeyError), prepared(ledger) as connection:
            connection.sqlalchemy.execute(mails.update().values(reason="through_sqlalchemy"))
            connection.execute(tables.MARK, {"at_location": LOCATION})
            raise KeyError
        with prepared(ledger) as connection:
            row = connection.one(tables.STATE, {"at_location": LOCATION})
            assert (row.reason, row.marked_at) == ("", None)
            connection.sqlalchemy.execute(mails.update().values(reason="through_sqlalchemy"))
        count: Select[Any] = select(func.count()).where(mails.c.reason == "through_sqlalchemy")
        with prepared(ledger) as connection:
            assert connection.value(count) == 1

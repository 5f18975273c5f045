"""A ledger that is looked at while agents write it."""

from pathlib import Path

import pytest
from ledgers import KEY, LOCATION, MAIL, WRITES, claimed
from sqlalchemy import update

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerCount, LedgerReader, NoSuchMailError
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.ledger.tables import mails
from guarantee_email_agent.utils.errors import ConfigurationError

OTHER = "c3" * 16


def test_mails_are_listed_the_newest_first_with_what_became_of_them(ledger: Ledger, ledger_location: str) -> None:
    claim = claimed(ledger)
    WRITES["intend_ticket"](ledger, claim)
    WRITES["ticket_created"](ledger, claim)
    WRITES["intend_draft"](ledger, claim)
    ledger.finish(claim, "drafted", "valid-warranty")
    ledger.finish(claimed(ledger, mail=OTHER, location="d4" * 16), "observed", "missing-info")
    with LedgerReader(ledger_location) as reader:
        observed, drafted = reader.outcomes(("observed", "drafted"), limit=10)[::-1]
        assert (observed.mail_key, observed.outcome, observed.reason) == (OTHER, "observed", "missing-info")
        assert (drafted.mail_key, drafted.outcome, drafted.ticket_id) == (MAIL, "drafted", "TICKET-1")
        assert (drafted.stage, drafted.attempts) == ("sent", 1)
        assert sorted(reader.counts(), key=lambda each: each.reason) == [
            LedgerCount("observed", "missing-info", 1),
            LedgerCount("drafted", "valid-warranty", 1),
        ]


def test_reading_waits_for_no_writer_and_shows_what_was_written_since(ledger: Ledger, ledger_location: str) -> None:
    with LedgerReader(ledger_location) as reader:
        assert reader.unfinished(10) == []
        with ledger._database.write_transaction():
            assert reader.counts() == []
        claimed(ledger, location=LOCATION)
        assert [row.owner for row in reader.unfinished(10)] == ["one:1"]


def test_nothing_can_be_written_through_it(ledger: Ledger, ledger_location: str) -> None:
    claimed(ledger)
    change = update(mails).values(reason="changed").returning(mails.c.mail_key)
    with LedgerReader(ledger_location) as reader, pytest.raises(LedgerError, match="read-only"):
        reader._rows(change)


@pytest.mark.parametrize("content", [b"", b"no database at all\n" * 500])
def test_what_is_no_ledger_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"cannot be opened for writing \(this is a folder\)"):
        LedgerReader(str(tmp_path))
    with pytest.raises((ConfigurationError, LedgerError), match=r"There is no ledger|is damaged, or no ledger"):
        LedgerReader(str(file))
    assert file.read_bytes() == content
    if content:
        with pytest.raises(LedgerError, match=r"ledger\.db is damaged, or no ledger"):
            open_ledger(str(file), key=KEY)


def test_a_mail_is_found_by_the_beginning_of_its_key(ledger: Ledger, ledger_location: str) -> None:
    for mail in ("abcdef12" + "0" * 24, "abcdef12" + "0" * 23 + "1", "abcd" * 8):
        ledger.finish(claimed(ledger, mail=mail, location=mail), "not_answered")
    with LedgerReader(ledger_location) as reader:
        assert reader.find("abcda").mail_key == "abcd" * 8
        for prefix, code in (("abcd", "ledger_ambiguous_mail"), ("ffff", "ledger_no_mail")):
            with pytest.raises(NoSuchMailError) as raised:
                reader.find(prefix)
            assert raised.value.code == code


def test_a_mail_is_found_where_it_lies(ledger: Ledger, ledger_location: str) -> None:
    claimed(ledger)
    with LedgerReader(ledger_location) as reader:
        found = reader.at(LOCATION)
        assert found.mail_key == MAIL
        assert reader.at(OTHER) is None
        assert reader.places([MAIL]) == {LOCATION: MAIL}

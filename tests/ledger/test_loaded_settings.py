"""What an agent loaded last, kept by mailbox."""

from __future__ import annotations

from typing import Any

import pytest

from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.ledger.ledger import Ledger

INBOX, OTHER_INBOX = "b0" * 16, "b1" * 16


def test_the_last_start_or_reload_counts(ledger: Ledger) -> None:
    assert ledger.loaded_settings(INBOX) is None
    ledger.save_loaded_settings(INBOX, {"llm.model": "a"})
    before = ledger.time()
    ledger.save_loaded_settings(INBOX, {"llm.model": "b"})
    loaded = ledger.loaded_settings(INBOX)
    assert loaded is not None
    assert loaded.digests == {"llm.model": "b"}
    assert before <= loaded.at <= ledger.time()
    assert ledger.loaded_settings(OTHER_INBOX) is None


@pytest.mark.parametrize("value", ["rubbish", "[]", '{"at": "x", "digests": {}}', '{"at": 1, "digests": 3}'])
def test_what_somebody_else_wrote_is_damage(ledger: Ledger, ledger_sql: Any, value: str) -> None:
    ledger.save_loaded_settings(INBOX, {})
    ledger_sql.rows("UPDATE ledger_facts SET value = ? WHERE name = ?", value, f"loaded_settings {INBOX}")
    with pytest.raises(LedgerError) as caught:
        ledger.loaded_settings(INBOX)
    assert caught.value.code == "ledger_corrupt"

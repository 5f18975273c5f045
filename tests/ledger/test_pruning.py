from collections import Counter
from typing import Any

from ledgers import LEASE_S, LOCATION, MAIL, REPLY, claimed

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.services.ports import OUTCOMES, Outcome

DAY_S = 86_400.0
OTHER_LOCATION = "c3" * 16


def pass_days(ledger: Ledger, ledger_sql: Any, days: float) -> None:
    """An agent looks at the clock every day; here two looks will do."""
    assert ledger.prune(30) == 0
    ledger_sql.pass_time(days * DAY_S)


def end(ledger: Ledger, mail: str) -> None:
    ledger.finish(claimed(ledger, mail=mail, location=mail), "not_answered")
    ledger.marked(mail)


def pruned_after(ledger: Ledger, ledger_sql: Any, days: float) -> int:
    ledger_sql.pass_time(days * DAY_S)
    return ledger.prune(30)


def test_pruning_forgets_only_what_the_mailbox_remembers_and_no_person_has_to_look_at(
    ledger: Ledger, ledger_sql: Any
) -> None:
    outcomes: tuple[Outcome, ...] = (*OUTCOMES, "not_answered")
    for number, outcome in enumerate(outcomes):
        key = f"{number:032x}"
        claim = claimed(ledger, mail=key, location=key)
        if outcome in ("answered", "drafted"):
            ledger.intend_send(claim, REPLY, delivery="draft" if outcome == "drafted" else "send")
        ledger.finish(claim, outcome, "")
        if outcome != "observed" and number < len(OUTCOMES):
            ledger.marked(key)
    claimed(ledger, mail="0e" * 16, location="0e" * 16)
    pass_days(ledger, ledger_sql, 31)
    end(ledger, "f0" * 16)
    assert ledger.prune(30) == 4
    kept = Counter(ledger_sql.rows("SELECT outcome FROM ledger_mails"))
    assert kept == {("observed",): 1, ("quarantined",): 1, ("unknown",): 1, ("not_answered",): 2, (None,): 1}


def test_pruning_keeps_a_mail_of_which_a_copy_bears_no_mark(ledger: Ledger, ledger_sql: Any) -> None:
    ledger.finish(claimed(ledger), "not_answered")
    ledger.marked(LOCATION)
    ledger.claim(MAIL, location_key=OTHER_LOCATION, owner="two:2", lease_s=LEASE_S)
    pass_days(ledger, ledger_sql, 31)
    assert ledger.prune(30) == 0


def test_pruning_takes_more_than_one_batch(ledger: Ledger, ledger_sql: Any) -> None:
    ledger_sql.rows(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO ledger_mails "
        "(mail_key, stage, attempts, fence, since, span_s, outcome, reason, created_at, changed_at) "
        "SELECT 'mail' || i, 'sent', 1, 1, 0, 0, 'answered', '', 0, 0 FROM n"
    )
    ledger_sql.rows("INSERT INTO ledger_places SELECT mail_key, mail_key, 0, NULL FROM ledger_mails")
    pass_days(ledger, ledger_sql, 31)
    assert ledger.prune(30) == 2500
    assert ledger_sql.rows("SELECT count(*) FROM ledger_places") == [(0,)]


def test_a_clock_that_is_ahead_for_one_start_forgets_nothing(ledger: Ledger, ledger_sql: Any) -> None:
    end(ledger, MAIL)
    assert ledger.prune(30) == 0
    assert pruned_after(ledger, ledger_sql, 400) == 0
    assert ledger.prune(30) == 0  # another agent, or the same once more
    assert pruned_after(ledger, ledger_sql, -399) == 0
    assert pruned_after(ledger, ledger_sql, 1) == 0
    assert pruned_after(ledger, ledger_sql, 30) == 1


def test_a_clock_that_is_corrected_by_seconds_is_steady(ledger: Ledger, ledger_sql: Any) -> None:
    end(ledger, MAIL)
    assert ledger.prune(30) == 0
    assert pruned_after(ledger, ledger_sql, 16) == 0
    assert pruned_after(ledger, ledger_sql, -0.001) == 0
    assert pruned_after(ledger, ledger_sql, 15) == 1

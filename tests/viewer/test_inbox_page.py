"""What the agent did with the inbox, as the ledger has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ledgers import KEY, RETRY_S, claimed
from stored_runs import StoredRuns, result
from viewed_runs import ViewedRuns

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: 1_768_730_400.0)) as ledger:
        yield ledger


@pytest.fixture
def pages(tmp_path: Path) -> ViewedRuns:
    runs = StoredRuns(tmp_path / "runs.db")
    runs.write(1, [result(1)])
    return ViewedRuns(runs.file, str(tmp_path / "ledger.db"))


def key(number: int) -> str:
    return f"{number:032x}"


def test_it_counts_outcomes_and_lists_mails(ledger: Ledger, pages: ViewedRuns) -> None:
    for number, reason in ((1, "valid-warranty"), (2, "missing-info"), (3, "missing-info")):
        ledger.finish(claimed(ledger, mail=key(number), location=key(number + 100)), "observed", reason)
    waiting = claimed(ledger, mail=key(9), location=key(109))
    ledger.release(waiting, count_attempt=True, retry_after_s=RETRY_S, reason="warranty_api_timeout")
    page = pages.get("/inbox")
    assert "4 mails" in page.text
    assert "observed missing-info 2 " in page.text
    assert "unfinished warranty_api_timeout 1 " in page.text
    assert "first seen 2026-01-18 10:00:00 UTC" in page.text
    observed = pages.get(page.link("outcome=observed"))
    assert "Observed: in mode observe: nothing was done" in observed.text
    assert observed.content.count('<span class="badge">') == 3
    assert pages.get("/inbox?outcome=unfinished").content.count('<span class="badge">') == 1


def test_mails_are_paged(ledger: Ledger, pages: ViewedRuns) -> None:
    for number in range(1, 62):
        ledger.finish(claimed(ledger, mail=key(number), location=key(number + 100)), "not_answered", "no_reply")
    first = pages.get("/inbox?outcome=not_answered")
    second = pages.get(first.link("page=2"))
    assert [each.content.count('<span class="badge">') for each in (first, second)] == [50, 11]
    assert second.link("page=1") == "/inbox?page=1&outcome=not_answered"
    assert "No mail here" in pages.get("/inbox?page=99").text


def test_without_a_ledger_it_says_so_and_makes_none(pages: ViewedRuns, tmp_path: Path) -> None:
    page = pages.get("/inbox")
    assert (page.status, "'run' makes it, or correct agent.ledger" in page.text) == (200, True)
    assert not (tmp_path / "ledger.db").exists()


def test_a_server_that_is_down_is_a_line_and_the_runs_are_there(pages: ViewedRuns, tmp_path: Path) -> None:
    down = ViewedRuns(tmp_path / "runs.db", "postgresql://agent:secret-word@127.0.0.1:1/ledger")
    page = down.get("/inbox")
    assert (page.status, "postgresql://127.0.0.1:1/ledger cannot be reached" in page.text) == (503, True)
    assert "secret-word" not in page.content
    assert down.get("/").status == 200


def test_a_clock_that_was_wrong_is_no_failure(tmp_path: Path, pages: ViewedRuns) -> None:
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: 1e18)) as ledger:
        ledger.finish(claimed(ledger), "observed")
    assert "1e+18 s since 1970" in pages.get("/inbox").text


def test_an_outcome_that_there_is_not_and_what_is_damaged(pages: ViewedRuns, tmp_path: Path) -> None:
    assert pages.get("/inbox?outcome=great").status == 400
    (tmp_path / "ledger.db").write_bytes(b"no database\n" * 1_000)
    page = pages.get("/inbox")
    assert (page.status, "is damaged, or no ledger" in page.text) == (503, True)

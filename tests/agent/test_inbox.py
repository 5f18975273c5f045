import asyncio
import hashlib
from contextlib import closing
from pathlib import Path

import pytest
from mailbox_in_memory import KEY, MailboxInMemory

from guarantee_email_agent.agent.inbox import SECONDS_PER_DAY, answer_since, count_inbox, inbox_filter, require_clock
from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.ledger.ledger import Claim
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import ANY_MAIL, InboxFilter

FIRST_START = 1_800_000_000.0


@pytest.mark.parametrize(
    ("setting", "moment"), [("first-start", FIRST_START), ("all", 0.0), ("2026-01-31", 1_769_817_600.0)]
)
def test_since_when_mail_is_answered(setting: str, moment: float) -> None:
    assert answer_since(AgentSettings(answer_since=setting), FIRST_START) == moment


def test_mail_that_comes_in_the_very_second_of_the_first_start_is_answered() -> None:
    """An IMAP server tells that it came at the beginning of that second."""
    assert answer_since(AgentSettings(), FIRST_START + 0.9) == FIRST_START


def test_mail_that_waited_too_long_is_left_alone_as_time_goes_on() -> None:
    settings = AgentSettings(max_age_days=2, skip_seen=True)
    soon, later = FIRST_START + SECONDS_PER_DAY, FIRST_START + 3 * SECONDS_PER_DAY
    assert inbox_filter(settings, FIRST_START, soon) == InboxFilter(FIRST_START, skip_seen=True)
    assert inbox_filter(settings, FIRST_START, later).received_since == FIRST_START + SECONDS_PER_DAY


def mailbox_with(*received: float) -> MailboxInMemory:
    mailbox = MailboxInMemory(*(f"mail-{number}" for number in range(len(received))))
    mailbox.received = {f"mail-{number}": each for number, each in enumerate(received)}
    return mailbox


@pytest.mark.parametrize(
    ("received", "earliest"),
    [
        ((), FIRST_START - SECONDS_PER_DAY),
        ((FIRST_START - 3 * SECONDS_PER_DAY,), FIRST_START - SECONDS_PER_DAY),
        ((FIRST_START - 7200, FIRST_START - 7201), FIRST_START - 7199),
        ((FIRST_START + SECONDS_PER_DAY,), FIRST_START + SECONDS_PER_DAY + 1),  # of a clock that differs
        ((FIRST_START - 7200, 1000 * FIRST_START), None),  # milliseconds
        ((0.0,), FIRST_START - SECONDS_PER_DAY),  # not known
    ],
)
def test_a_first_start_comes_after_the_mail_that_it_finds(received: tuple[float, ...], earliest: float | None) -> None:
    assert asyncio.run(require_clock(mailbox_with(*received), FIRST_START)) == earliest


def location_key(mail_id: str) -> str:
    return hashlib.sha256(mail_id.encode()).hexdigest()


def test_observed_mails_are_not_among_those_to_answer(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("observed", "begun", "new")
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        claims = {
            name: ledger.claim(location_key(name), location_key=location_key(name), owner="this:1", lease_s=100)
            for name in ("observed", "begun")
        }
        assert isinstance(claims["observed"], Claim)
        ledger.finish(claims["observed"], "observed")
        counts = asyncio.run(count_inbox(mailbox, ledger, ANY_MAIL, location_key))
    assert (counts["unprocessed"], counts["observed"]) == (2, 1)

"""Limits and threads under any order of events, and under several agents at once."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledgers import KEY, claim_mail, mail, reply_to

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.conversations import SAME_TEXT_LIMIT
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import Admission, Thread

HOUR_S, DAY_S = 3600, 86_400
LIMITS = ReplyLimits(per_address=2, per_thread=3, per_hour=4)
MAILS = range(12)
ENDS = ("answered", "answered", "handed_over", "observed", "quarantined")
AGENTS = 4


ADMISSIONS = {
    number: Admission(
        sender_key=mail(100 + number % 5),
        text_key=mail(200) if number % 2 else None,
        thread_key=mail(0) if number % 3 == 0 else None,
    )
    for number in MAILS
}
"""Five senders, every second mail in the same words, every third in the thread of the first."""

EVENTS = st.one_of(
    st.tuples(st.just("admit"), st.sampled_from(MAILS)),
    st.tuples(st.just("admit"), st.sampled_from(MAILS)),
    st.tuples(st.sampled_from(["answered", "handed_over"]), st.sampled_from(MAILS)),
    st.tuples(st.just("time passes"), st.sampled_from([HOUR_S // 2, HOUR_S, 7 * HOUR_S, DAY_S])),
    st.tuples(st.just("clock goes back"), st.sampled_from([60, HOUR_S, 3 * DAY_S])),
)


@dataclass
class Expected:
    """What happened, on a clock that only goes on."""

    time_s: int = 0
    went_back: bool = False
    noticed_s: int = -DAY_S  # by an admission, when the clock had gone back
    admitted_s: dict[int, int] = field(default_factory=dict)
    claims: dict[int, Claim] = field(default_factory=dict)

    def counts(self, number: int) -> dict[str, int]:
        """Of the other mails that take room now, by limit."""
        mine = ADMISSIONS[number]
        others = {
            other: self.time_s - at
            for other, at in self.admitted_s.items()
            if other != number and self.time_s - at < DAY_S
        }
        thread = mine.thread_key or mail(number)
        return {
            "address": sum(ADMISSIONS[other].sender_key == mine.sender_key for other in others),
            "thread": sum(thread in (ADMISSIONS[other].thread_key, mail(other)) for other in others),
            "hour": sum(age_s < HOUR_S for age_s in others.values()),
            "text": sum(mine.text_key is not None and ADMISSIONS[other].text_key == mine.text_key for other in others),
        }


MOST = {"address": 2, "thread": 3, "hour": 4, "text": SAME_TEXT_LIMIT}


@pytest.mark.slow
@settings(max_examples=100)
@given(events=st.lists(EVENTS, min_size=10, max_size=50))
def test_no_limit_is_exceeded_and_none_is_reached_too_early(
    ledger: Ledger, ledger_sql: Any, events: list[tuple[str, int]]
) -> None:
    ledger_sql.rows("DELETE FROM ledger_mails")
    expected = Expected(claims={number: claim_mail(ledger, number) for number in MAILS})
    for event, value in events:
        if event == "time passes":
            ledger_sql.pass_time(value)
            expected.time_s += value
        elif event == "clock goes back":
            ledger_sql.pass_time(-value)
            expected.went_back = True
        elif value in expected.claims:
            write(ledger, event, value, expected)


def write(ledger: Ledger, event: str, number: int, expected: Expected) -> None:
    claim, counts = expected.claims[number], expected.counts(number)
    if event != "admit":
        if event == "answered":
            ledger.intend_send(claim, reply_to(number))
            ledger.finish(claim, "answered")
        else:
            ledger.finish(claim, "handed_over")
            expected.admitted_s.pop(number, None)
        del expected.claims[number]
        return
    if expected.went_back:
        expected.went_back, expected.noticed_s = False, expected.time_s
    limit = ledger.admit(claim, ADMISSIONS[number], LIMITS)
    if limit is None:
        assert all(counts[name] < most for name, most in MOST.items()), "let through beyond a limit"
        expected.admitted_s[number] = expected.time_s
    else:
        if expected.time_s - expected.noticed_s >= DAY_S:
            assert counts[limit] >= MOST[limit], "held back without reason"
        expected.admitted_s.pop(number, None)


@settings(max_examples=50)
@given(mails=st.lists(st.tuples(st.sets(st.integers(0, 9)), st.sampled_from(ENDS)), max_size=10))
def test_a_thread_is_what_answers_its_replies(
    ledger: Ledger, ledger_sql: Any, mails: list[tuple[set[int], Any]]
) -> None:
    ledger_sql.rows("DELETE FROM ledger_mails")
    first_mail: dict[int, int] = {}
    replied: list[int] = []
    for number, (answers, outcome) in enumerate(mails):
        claim = claim_mail(ledger, number)
        found = ledger.find_thread(claim, [reply_to(other) for other in answers])
        answered = [other for other in replied if other in answers]
        if not answered:
            assert found is None
            first_mail[number] = number
        else:
            first = first_mail[answered[-1]]
            assert (found.key, found.reply_message_id) == (mail(first), reply_to(answered[-1]))
            assert found.replies == sum(first_mail[other] == first for other in replied)
            assert found.follow_ups == sum(other == first for other in first_mail.values()) - 1
            first_mail[number] = first
        if outcome == "answered":
            ledger.intend_send(claim, reply_to(number))
            replied.append(number)
        ledger.finish(claim, outcome)


@pytest.fixture
def agents(ledger_location: str) -> Iterator[list[Ledger]]:
    """Several agents with connections of their own."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(open_ledger(ledger_location, key=KEY))) for _ in range(AGENTS)]


def at_once(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(AGENTS) as pool:
        return list(pool.map(work, range(40)))


def test_agents_that_admit_at_once_share_the_limits(agents: list[Ledger]) -> None:
    def admit(number: int) -> object:
        ledger = agents[number % AGENTS]
        return ledger.admit(claim_mail(ledger, number), Admission("a11ce" * 8), ReplyLimits(per_address=7))

    assert Counter(at_once(admit)) == {None: 7, "address": 33}


def test_of_follow_ups_that_come_at_once_each_sees_those_before_it(agents: list[Ledger]) -> None:
    claim = claim_mail(agents[0], 99)
    agents[0].intend_send(claim, reply_to(99))
    agents[0].finish(claim, "answered")

    def join(number: int) -> Thread | None:
        ledger = agents[number % AGENTS]
        return ledger.find_thread(claim_mail(ledger, number), [reply_to(99)])

    assert sorted(found.follow_ups for found in at_once(join) if found) == list(range(40))


def test_agents_that_start_at_once_have_one_first_start(agents: list[Ledger]) -> None:
    assert len(set(at_once(lambda number: agents[number % AGENTS].first_start("b0" * 16)))) == 1

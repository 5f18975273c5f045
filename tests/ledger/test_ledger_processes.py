"""Real processes on one ledger: racing for mails, and killed between two writes."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, get_args

import pytest
from ledgers import KEY, LEASE_S

from guarantee_email_agent.ledger.ledger import Claim
from guarantee_email_agent.ledger.mail_state import Done
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.ledger.tables import Stage

pytestmark = pytest.mark.slow

ROUNDS = 6

RACER = """
import random, sys
from guarantee_email_agent.ledger.ledger import Claim
from guarantee_email_agent.ledger.opening import open_ledger

ledger = open_ledger(sys.argv[1], key=b"k" * 32, lock_timeout_s=60)
mails = [f"{number:032x}" for number in range(100)]
random.Random(sys.argv[2]).shuffle(mails)
for mail in mails:
    claim = ledger.claim(mail, location_key=mail, owner=f"racer:{sys.argv[2]}", lease_s=180)
    if isinstance(claim, Claim):
        print(mail, claim.fence, claim.attempts, flush=True)
"""

WRITER = """
import sys
from guarantee_email_agent.ledger.opening import open_ledger

ledger = open_ledger(sys.argv[1], key=b"k" * 32)
for number in range(100_000):
    mail = f"{int(sys.argv[2]):016x}{number:016x}"
    claim = ledger.claim(mail, location_key=mail, owner="writer:1", lease_s=180)
    print(mail, "claimed", flush=True)
    ledger.intend_ticket(claim, f"mail-{mail}")
    print(mail, "ticketing", flush=True)
    ledger.ticket_created(claim, "TICKET-1")
    print(mail, "ticketed", flush=True)
    ledger.intend_send(claim, f"<reply-{mail}@example.com>")
    print(mail, "sending", flush=True)
    ledger.finish(claim, "answered", "valid-warranty")
    print(mail, "answered", flush=True)
"""
STEPS = (*(stage for stage in get_args(Stage) if stage != "sent"), "answered")


@contextmanager
def started(script: str, location: str, name: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", script, location, str(name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_of_many_processes_one_wins_each_mail_and_one_takes_it_over(ledger_location: str, ledger_sql: Any) -> None:
    assert sorted(race(RACER, ledger_location, 8)) == [f"{number:032x} 1 1" for number in range(100)]
    ledger_sql.pass_time(LEASE_S + 1)
    # A try that a crash cut short is none of the mail's own.
    assert sorted(race(RACER, ledger_location, 3)) == [f"{number:032x} 2 1" for number in range(100)]


def race(script: str, location: str, processes: int) -> list[str]:
    """What each process printed, or why it failed."""
    with ExitStack() as stack:
        racers = [stack.enter_context(started(script, location, name)) for name in range(processes)]
        lines: list[str] = []
        for racer in racers:
            output, problems = racer.communicate(timeout=300)
            lines += output.splitlines() if racer.returncode == 0 else [problems]
        return lines


def test_a_writer_that_is_killed_leaves_what_it_was_told_is_written(
    ledger_location: str, ledger_sql: Any, request: pytest.FixtureRequest
) -> None:
    at_random = random.Random(request.node.name)
    reached: dict[str, str] = {}
    for number in range(ROUNDS):
        with started(WRITER, ledger_location, number) as process:
            for _ in range(at_random.randrange(1, 60)):
                mail, step = process.stdout.readline().split()
                reached[mail] = step
            process.kill()
            # What it printed before it died counts as well.
            for line in process.stdout.read().splitlines():
                if len(words := line.split()) == 2 and words[1] in STEPS:
                    reached[words[0]] = words[1]
    if "://" not in ledger_location:
        assert ledger_sql.rows("PRAGMA integrity_check") == [("ok",)]
        assert ledger_sql.rows("PRAGMA foreign_key_check") == []
    ledger_sql.pass_time(LEASE_S + 1)
    found: Counter[str] = Counter()
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        for mail, step in reached.items():
            state = ledger.claim(mail, location_key=mail, owner="two:2", lease_s=LEASE_S)
            assert isinstance(state, Claim | Done)
            stage = state.outcome if isinstance(state, Done) else state.previous
            # The one write after the last that was reported may have been made as well, and no other.
            last = max(other for other in reached if other[:16] == mail[:16])  # of those reported in the same round
            assert STEPS.index(stage) - STEPS.index(step) in ((0, 1) if mail == last else (0,))
            found[stage] += 1
    assert found["answered"] > 0
    assert ROUNDS >= sum(found.values()) - found["answered"] > 0

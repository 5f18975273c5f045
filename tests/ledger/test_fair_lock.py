from __future__ import annotations

import threading
import time

from guarantee_email_agent.ledger.fair_lock import Turns

LONG_S = 60.0


def waiting(turns: Turns, order: list[str], name: str) -> threading.Thread:
    """A thread that waits for its turn, writes its name down and gives the turn on."""
    before = len(turns._waiting)

    def run() -> None:
        assert turns.take(LONG_S)
        order.append(name)
        turns.give()

    thread = threading.Thread(target=run)
    thread.start()
    while len(turns._waiting) == before:
        time.sleep(0.001)
    return thread


def test_turns_come_in_the_order_in_which_they_were_asked_for() -> None:
    turns, order = Turns(), []
    assert turns.take(LONG_S)
    threads = [waiting(turns, order, name) for name in "abc"]
    turns.give()
    assert turns.take(LONG_S)  # asks at once, and still comes last
    order.append("again")
    turns.give()
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "c", "again"]


def test_who_does_not_get_a_turn_in_time_leaves_the_queue() -> None:
    turns, order = Turns(), []
    assert turns.take(LONG_S)
    assert not turns.take(0.01)
    thread = waiting(turns, order, "next")
    turns.give()
    thread.join()
    assert order == ["next"]
    assert turns.take(0)


def test_nobody_shares_a_turn() -> None:
    turns, inside, most = Turns(), 0, 0

    def run() -> None:
        nonlocal inside, most
        for _ in range(200):
            assert turns.take(LONG_S)
            inside += 1
            time.sleep(0)  # lets another thread in, if it can
            most = max(most, inside)
            inside -= 1
            turns.give()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1

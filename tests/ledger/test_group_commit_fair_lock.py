from __future__ import annotations

import threading
import time

from guarantee_email_agent.ledger.group_commit import FairLock

LONG_S = 60.0


def waiting(lock: FairLock, order: list[str], name: str) -> threading.Thread:
    """A thread that waits for the lock, writes its name down and releases it."""
    before = len(lock._queue)

    def run() -> None:
        assert lock.acquire(LONG_S)
        order.append(name)
        lock.release()

    thread = threading.Thread(target=run)
    thread.start()
    while len(lock._queue) == before:
        time.sleep(0.001)
    return thread


def test_it_is_acquired_in_the_order_in_which_it_was_asked_for() -> None:
    lock, order = FairLock(), []
    assert lock.acquire(LONG_S)
    threads = [waiting(lock, order, name) for name in "abc"]
    lock.release()
    assert lock.acquire(LONG_S)  # asks at once, and still comes last
    order.append("again")
    lock.release()
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "c", "again"]


def test_who_does_not_get_it_in_time_leaves_the_queue() -> None:
    lock, order = FairLock(), []
    assert lock.acquire(LONG_S)
    assert not lock.acquire(0.01)
    thread = waiting(lock, order, "next")
    lock.release()
    thread.join()
    assert order == ["next"]
    assert lock.acquire(0)


def test_one_thread_at_a_time_holds_it() -> None:
    lock, inside, most = FairLock(), 0, 0

    def run() -> None:
        nonlocal inside, most
        for _ in range(200):
            assert lock.acquire(LONG_S)
            inside += 1
            time.sleep(0)  # lets another thread in, if it can
            most = max(most, inside)
            inside -= 1
            lock.release()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1

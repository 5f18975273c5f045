import threading
from itertools import count, islice

import pytest

from guarantee_email_agent.utils.parallel import LOOKAHEAD, map_in_order


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_results_come_in_the_order_of_the_items(jobs: int) -> None:
    assert list(map_in_order(lambda item: item * 2, range(5), jobs)) == [0, 2, 4, 6, 8]
    assert list(map_in_order(str, [], jobs)) == []


def test_as_many_are_under_way_as_there_are_jobs() -> None:
    meeting = threading.Barrier(3)
    assert len(list(map_in_order(lambda _: meeting.wait(60), range(3), 3))) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_reaches_whoever_waits_for_its_result(jobs: int) -> None:
    results = map_in_order(lambda item: 1 // item, [1, 0], jobs)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_rest_is_not_begun_once_nobody_wants_it(jobs: int) -> None:
    begun: list[int] = []
    may_go_on = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        if item:
            may_go_on.wait(60)
        return item

    results = map_in_order(work, range(9), jobs)
    assert next(results) == 0
    results.close()
    may_go_on.set()
    assert len(begun) <= 3


def test_items_are_taken_as_they_are_needed_however_many_there_are() -> None:
    taken = count()
    results = map_in_order(lambda item: item, taken, 2)
    assert list(islice(results, 5_000)) == list(range(5_000))
    results.close()
    assert next(taken) <= 5_000 + LOOKAHEAD

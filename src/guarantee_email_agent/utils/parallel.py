"""Work on several items at a time, with the results in the order of the items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeVar

_CTRL_C_S: Final = 0.2
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(work: Callable[[_Item], _Result], items: Sequence[_Item], jobs: int) -> Generator[_Result, None, None]:
    """`work` done on `jobs` items at a time, each in a thread; the results in the order of the items.

    Once the generator is closed no further item is begun, and nobody waits for those that are under way.
    """
    jobs = min(jobs, len(items))
    if jobs <= 1:
        yield from map(work, items)
        return
    import threading
    from concurrent.futures import Future, wait

    futures = deque[Future[_Result]](Future() for _ in items)
    waiting = deque(zip(futures, items, strict=True))

    def work_off() -> None:
        while waiting:
            try:
                future, item = waiting.popleft()
            except IndexError:  # another thread has taken the last one
                return
            try:
                future.set_result(work(item))
            except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
                future.set_exception(error)

    for _ in range(jobs):
        # Nobody has to wait for them after Ctrl-C: the processes that they started end with ours.
        threading.Thread(target=work_off, daemon=True).start()
    try:
        while futures:
            future = futures.popleft()
            # A wait without a limit may miss Ctrl-C: the signal may reach another thread, which wakes nobody.
            while not future.done():
                wait([future], timeout=_CTRL_C_S)
            yield future.result()
    finally:
        waiting.clear()

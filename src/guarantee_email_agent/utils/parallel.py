"""Work on several items at a time, with the results in the order of the items; and Ctrl-C for its threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeVar

LOOKAHEAD: Final = 1_000
"""How far the work may be ahead of a slow item, so that memory does not grow with the number of items."""

_CTRL_C_S: Final = 0.2
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(work: Callable[[_Item], _Result], items: Iterable[_Item], jobs: int) -> Generator[_Result, None, None]:
    """`work` done on `jobs` items at a time, each in a thread; the results in the order of the items.

    Once the generator is closed no further item is begun, and nobody waits for those that are under way.
    """
    if jobs <= 1:
        yield from map(work, items)
        return
    from concurrent.futures import Future, wait
    from itertools import islice
    from queue import Empty, SimpleQueue

    upcoming = iter(items)
    futures: deque[Future[_Result]] = deque()
    waiting: SimpleQueue[tuple[Future[_Result], _Item] | None] = SimpleQueue()

    def work_off() -> None:
        while (each := waiting.get()) is not None:
            future, item = each
            try:
                future.set_result(work(item))
            except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
                future.set_exception(error)

    def plan(count: int) -> None:
        for item in islice(upcoming, count):
            futures.append(Future())
            waiting.put((futures[-1], item))

    try:
        plan(LOOKAHEAD)
        jobs = min(jobs, len(futures))
        for _ in range(jobs):
            # Nobody has to wait for them after Ctrl-C: the processes that they started end with ours.
            threading.Thread(target=work_off, daemon=True).start()
        while futures:
            future = futures.popleft()
            # A wait without a limit may miss Ctrl-C: the signal may reach another thread, which wakes nobody.
            while not future.done():
                wait([future], timeout=_CTRL_C_S)
            plan(1)
            yield future.result()
    finally:
        try:
            while True:
                waiting.get_nowait()
        except Empty:
            for _ in range(jobs):
                waiting.put(None)


class Interruption:
    """event: which may be set elsewhere, too."""

    def __init__(self, event: threading.Event | None = None) -> None:
        self._event = threading.Event() if event is None else event
        self._changed = threading.Condition()
        self._working = 0

    def request(self) -> None:
        self._event.set()

    def requested(self) -> bool:
        return self._event.is_set()

    @contextmanager
    def awaited(self, by: int = 1) -> Iterator[None]:
        """Work whose end `wait` waits for."""
        self._count(by)
        try:
            yield
        finally:
            self._count(-by)

    def not_awaited(self) -> AbstractContextManager[None]:
        """For a part of that work whose end `wait` does not wait for."""
        return self.awaited(-1)

    def wait(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._working <= 0, timeout_s)

    def _count(self, by: int) -> None:
        with self._changed:
            self._working += by
            self._changed.notify_all()

"""The port that `--jobs` and `--executor ray` have in common, and `--jobs N`: N processes of this machine."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Final, Protocol, TypeVar

from guarantee_email_agent.utils.errors import WorkersLostError

RAY: Final = "ray"

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD: Final = 4
"""Items given out for each process, so that a slow one at the head holds up no other, and results do not pile up."""


class LocalPath(str):
    """Text that is a path of this machine, as every `Path` is: where it goes to another one, it is that of a copy."""

    __slots__ = ()


class Executor(Protocol):
    """Works on independent items, several at a time."""

    @property
    def slots(self) -> int:
        """How many items are worked on at a time."""

    def map_in_order(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """`work` done on each item, the results in the order of the items; items are taken as they are needed.

        Both are pickled. An item may be worked on again where a worker was lost, so `work` may change nothing but what
        it returns. Once the generator is closed, what is under way is given up. Raises AgentError as `work` does, and
        WorkersLostError.
        """


class LocalProcesses:
    """An `Executor`; its processes are started with the first item, and end with the last."""

    def __init__(self, jobs: int) -> None:
        self.slots = jobs

    def map_in_order(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        from concurrent.futures import Future, ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        upcoming = iter(items)
        under_way: deque[Future[Result]] = deque()
        pool = ProcessPoolExecutor(self.slots, initializer=_init_worker)
        try:
            under_way.extend(pool.submit(work, item) for item in islice(upcoming, _AHEAD * self.slots))
            while under_way:
                result = under_way.popleft().result()
                under_way.extend(pool.submit(work, item) for item in islice(upcoming, 1))
                yield result
        except BrokenProcessPool:
            raise WorkersLostError(
                "A worker process died before its scenarios were done. Run again with --jobs 1 to see where",
                "eval_worker_died",
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _init_worker() -> None:
    import signal

    # Ctrl-C reaches every process of the terminal's group; only the first one is to act on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the pool ends by it those that are left when one died
    logging.disable(logging.CRITICAL)

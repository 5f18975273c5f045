"""An event loop in which no time passes but what its tasks sleep, so that minutes of waiting take no time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Whenever nothing can run, it is the time of the next timer."""

    def __init__(self) -> None:
        self._now = 1000.0
        super().__init__()

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._now = max(self._now, self._scheduled[0].when())
        super()._run_once()


class VirtualClock:
    """The clock of the loop that runs; before one does, the time at which each begins."""

    def monotonic(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 1000.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SleptClock:
    """No time passes but what is slept, which takes none; every wait is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class SetTime:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def __call__(self) -> float:
        return self.now


def run_in_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)

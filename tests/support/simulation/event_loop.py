"""An asyncio event loop on virtual time, whose agents can be killed as SIGKILL kills a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any


class StalledError(Exception):
    """Nothing is left that could happen, although somebody waits."""


class Process:
    """One process of an agent. A killed one has no effect any more: whatever it asks for is never answered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0


CURRENT_PROCESS: ContextVar[Process | None] = ContextVar("CURRENT_PROCESS", default=None)


class _NumberedTask(asyncio.Task[Any]):
    """Hashed by its number: by its address, a set of tasks would have another order in every run."""

    _numbers = count()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._number = next(self._numbers)
        super().__init__(*arguments, **options)

    def __hash__(self) -> int:
        return self._number


class _VirtualTime:
    """Stands where the loop expects a selector: instead of waiting for sockets, time passes at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout_s: float | None) -> tuple[()]:
        if timeout_s is None:
            raise StalledError
        self.now += max(timeout_s, 0.0)
        return ()


class SimulatedEventLoop(asyncio.BaseEventLoop):
    """No sockets and no threads: what goes to a thread is a call like any other, at a moment that `on_thread` chooses.

    on_thread: begins such a call, by the function's name, its arguments, and what runs it.
    """

    def __init__(self, on_thread: Callable[[str, Sequence[Any], Callable[[], Any]], asyncio.Future[Any]]) -> None:
        super().__init__()
        self._selector = _VirtualTime()
        self._on_thread = on_thread
        self._tasks: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._create_task)

    def time(self) -> float:
        return self._selector.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        target, *arguments = func.args  # asyncio.to_thread: partial(Context.run, target, …)
        return self._on_thread(target.__name__, arguments, func)

    def unfinished_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    def _create_task(self, _loop: Any, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = _NumberedTask(coroutine, loop=self, **options)
        self._tasks.append(task)  # nobody else holds those of a process that was killed
        return task

    def _process_events(self, event_list: tuple[()]) -> None:
        """Of sockets, of which there are none."""

    def _write_to_self(self) -> None:
        """Nothing has to be woken up: there is one thread."""

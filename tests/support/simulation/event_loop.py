"""An asyncio event loop on virtual time, whose agents can be killed as SIGKILL kills a process."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_run_in: Callable[..., object] = Context.run


class StalledError(Exception):
    """Nothing is left that could happen, although somebody waits."""


class Process:
    """One process of an agent. A killed one has no effect any more: whatever it asks for is never answered."""

    __slots__ = ("alive", "name", "paused_until")

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0


CURRENT_PROCESS: ContextVar[Process | None] = ContextVar("CURRENT_PROCESS", default=None)


class _NumberedTask(asyncio.Task[Any]):
    """Hashed by its number: by its address, a set of tasks would have another order in every run."""

    __slots__ = ("_number",)

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class _Handle:
    """What is to be called: all of an `asyncio.Handle` that asyncio's own coroutines use."""

    __slots__ = ("call", "context")

    def __init__(self, call: tuple[Any, ...], context: Context) -> None:
        """call: the function and its arguments; empty once it was cancelled."""
        self.call = call
        self.context = context

    def cancel(self) -> None:
        self.call = ()


class SimulatedEventLoop(asyncio.AbstractEventLoop):
    """No sockets and no threads: what goes to a thread is a call like any other, at a moment that `on_thread` chooses.

    Instead of waiting, time passes at once. asyncio's own loops, of which this has what the agent uses, take several
    times as long for a callback. on_thread: begins such a call, by the function's name, its arguments, and what runs
    it. `failures` has what callbacks raised, which is a fault of the simulation itself.
    """

    def __init__(self, on_thread: Callable[[str, Sequence[Any], Callable[[], Any]], asyncio.Future[Any]]) -> None:
        self.failures: list[Exception] = []
        self._on_thread = on_thread
        self._now = 0.0
        self._ready: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._numbers = count()
        self._tasks: list[asyncio.Task[Any]] = []

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        handle = _Handle((callback, *args), context or copy_context())
        self._ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        handle = _Handle((callback, *args), context or copy_context())
        heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:
        task = _NumberedTask(next(self._numbers), coro, loop=self, context=context)
        self._tasks.append(task)  # nobody else holds those of a process that was killed
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        target, *arguments = func.args  # asyncio.to_thread: partial(Context.run, target, …)
        return self._on_thread(target.__name__, arguments, func)

    def run_until_complete(self, future: Coroutine[Any, Any, _Result]) -> _Result:
        """Raises StalledError where nothing is left that could end it."""
        asyncio._set_running_loop(self)  # what loops of other packages call, too
        try:
            task = self.create_task(future)
            self._run_ready()
            while not task.done():
                self._pass_time()
                self._run_ready()
            return task.result()
        finally:
            asyncio._set_running_loop(None)

    def cancel_all(self) -> None:
        """End every task, which may take several rounds; no time passes."""
        asyncio._set_running_loop(self)
        try:
            while tasks := [task for task in self._tasks if not task.done()]:
                for task in tasks:
                    task.cancel()
                self._run_ready()
        finally:
            asyncio._set_running_loop(None)

    def _run_ready(self) -> None:
        ready, run = self._ready, _run_in
        while ready:
            handle = ready.popleft()
            if call := handle.call:
                try:
                    run(handle.context, *call)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is the simulation's fault
                    self.failures.append(error)

    def _pass_time(self) -> None:
        """To the next moment at which something happens."""
        timers = self._timers
        while timers:
            when, _, handle = heappop(timers)
            if handle.call:
                self._now = max(self._now, when)
                self._ready.append(handle)
                return
        raise StalledError

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What the dead leave undone is nothing."""

    def get_debug(self) -> bool:
        return False

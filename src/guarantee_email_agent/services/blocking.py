"""Services that block, called from the event loop: neither a server that hangs nor a slow disk holds it up."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from guarantee_email_agent.services.call_errors import NOT_STARTED, TIMEOUT, ToolError, integration_error
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError

logger = logging.getLogger(__name__)

MAX_THREADS: Final = 16
CLOSE_S: Final = 5.0
"""That calls in progress have to end before the service is closed."""

interrupted: Final[ContextVar[bool]] = ContextVar("interrupted", default=False)
"""Whether whoever closes services was told to end at once, so that no call is waited for."""

CLOSING_S: Final = 15.0
"""That it may take to close: an access token that was just asked for is kept first."""


class Closable(Protocol):
    def close(self) -> None: ...


_Service = TypeVar("_Service", bound=Closable)
_Answer = TypeVar("_Answer")


class BlockingService(Generic[_Service]):
    """A service in this process, opened by its first call. Each call has a thread and a deadline of its own.

    A call whose deadline passes, or that is cancelled, goes on in its thread: what it does to the world must not stop
    half-way. One that still waits for a thread is not begun. The threads are daemons: the process ends without them.
    """

    def __init__(self, name: str, setting: str, open_service: Callable[[], _Service], timeout_s: float) -> None:
        """name: as error codes begin. setting: the configuration key. timeout_s: seconds for one call.

        open_service: blocks; raises ToolError for what is wrong.
        """
        self.name = name
        self._setting = setting
        self._open_service = open_service
        self._timeout_s = timeout_s
        self._opening: asyncio.Future[_Service] | None = None
        self._free = asyncio.Semaphore(MAX_THREADS)
        self._running: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def open(self) -> _Service:
        """The service. Raises MCPConnectionError: the setting, what is wrong, what to do."""
        if self._closed:
            raise self._not_open(f"{self.name}: the service is closed")
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opening = in_daemon_thread(self._open_service)
        try:
            return await asyncio.shield(opening)
        except ToolError as error:
            raise self._not_open(f"{self._setting}: {error.message}") from None

    def _not_open(self, message: str) -> MCPConnectionError:
        return MCPConnectionError(message, f"{self.name}_unavailable", retryable=True, outage=True)

    async def call(self, tool: str, work: Callable[[_Service], _Answer]) -> _Answer:
        """The result of `work`. tool: what errors call it.

        Raises IntegrationError: `{name}_timeout`, `{name}_unavailable`, or as the service does.
        """
        begun = False
        with self._errors_of(tool):
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._free.acquire()
                    try:
                        service = await self.open()  # with a thread at hand: nothing begins once it is closed
                        running = in_daemon_thread(lambda: work(service))
                    except BaseException:
                        self._free.release()
                        raise
                    begun = True
                    self._running.add(running)
                    running.add_done_callback(self._end)
                    return await asyncio.shield(running)
            except TimeoutError:
                kind, problem = (TIMEOUT, "no answer") if begun else (NOT_STARTED, "it could not be begun")
                raise integration_error(self.name, kind, f"{tool}: {problem} within {self._timeout_s:g} s") from None

    async def wait(self, tool: str, work: Callable[[_Service], _Answer]) -> _Answer:
        """As `call`, for what only waits: without a deadline, and without taking the thread of another call."""
        with self._errors_of(tool):
            service = await self.open()
            return await in_daemon_thread(lambda: work(service))

    async def close(self) -> None:
        """Calls in progress may end; then the service is closed. No call after that."""
        self._closed = True
        patience_s = 0.0 if interrupted.get() else CLOSE_S
        if self._running:
            await asyncio.wait(self._running, timeout=patience_s)
        if self._opening is None:
            return
        await asyncio.wait((self._opening,), timeout=patience_s)
        if self._opening.done() and not self._opening.cancelled() and self._opening.exception() is None:
            closing = in_daemon_thread(self._opening.result().close)
            await asyncio.wait((closing,), timeout=CLOSING_S)

    @contextmanager
    def _errors_of(self, tool: str) -> Iterator[None]:
        """Errors of the block become IntegrationErrors."""
        try:
            yield
        except MCPConnectionError as error:  # which is for the start of the agent
            raise IntegrationError.of(error) from None
        except IntegrationError:
            raise
        except Exception as error:  # noqa: BLE001 - an error of ours, without its text, which may quote the mail
            place = f"{type(error).__name__} at {error_place(error)}"
            logger.error("%s: %s: unexpected %s", self.name, tool, place)
            message = f"{self.name}: {tool} failed: {place}"
            raise IntegrationError(message, f"{self.name}_internal", uncertain=True) from None

    def _end(self, running: asyncio.Future[Any]) -> None:
        self._running.discard(running)
        self._free.release()


def in_daemon_thread(work: Callable[[], _Answer]) -> asyncio.Future[_Answer]:
    """The result of `work`, in a thread that the end of the process cuts off; it goes on after a cancellation."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Answer] = loop.create_future()
    # asyncio would log an exception that nobody awaits, with its text, which may quote the mail.
    done.add_done_callback(lambda future: future.cancelled() or future.exception())
    context = copy_context()

    def run() -> None:
        try:
            settle = partial(settle_if_waited_for, done.set_result, context.run(work))
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            settle = partial(settle_if_waited_for, done.set_exception, error)
        with suppress(RuntimeError):  # the event loop has ended meanwhile
            loop.call_soon_threadsafe(settle)

    def settle_if_waited_for(answer: Callable[[Any], None], outcome: object) -> None:
        if not done.done():
            answer(outcome)

    # Those of a ThreadPoolExecutor are no daemons: the end of the process would wait for a server that hangs.
    threading.Thread(target=run, daemon=True, name="blocking call").start()
    return done


def error_place(error: BaseException) -> str:
    """`module.py:line` where it was raised: enough to find an error of ours, without its text."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{os.path.basename(frame.f_code.co_filename)}:{line}"

"""An agent that is a function of the program that evaluates it: called in this process, with the usual deadline."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import Any, Final

from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask, Deadline, http_servers, task_as_json
from guarantee_email_agent.utils.text import printable, truncate

AgentFunction = Callable[[dict[str, Any]], object]
"""Gets `email` and `mcp_servers` as any agent does; what it returns, also as a coroutine, may be a record."""

_POLL_S: Final = 0.02
_CANCEL_S: Final = 1.0  # that a coroutine may take to end once it is cancelled
_MAX_ERROR_CHARACTERS: Final = 500


class CallableAgent:
    """A function, called in a thread; the coroutine that it may return runs in `loop`.

    A coroutine is cancelled at the deadline. A plain function cannot be: its servers are withdrawn, so that it reaches
    nothing any more, and nobody waits for it.
    """

    def __init__(self, function: AgentFunction, loop: asyncio.AbstractEventLoop) -> None:
        self._function = function
        self._loop = loop

    def check(self) -> None:
        """There is nothing to look for."""

    def run(self, task: AgentTask) -> AgentRun:
        deadline = Deadline(task)
        given = json.loads(task_as_json(task, http_servers(task)))
        called: Future[object] = Future()
        threading.Thread(target=self._call, args=(given, called), daemon=True, name="agent").start()
        if (reason := _wait(called, deadline)) is not None:
            return AgentRun(reason)
        if called.exception() is None and inspect.isawaitable(coroutine := called.result()):
            ended = threading.Event()
            called = asyncio.run_coroutine_threadsafe(_await(coroutine, ended), self._loop)
            if (reason := _wait(called, deadline)) is not None:
                called.cancel()
                ended.wait(_CANCEL_S)
                return AgentRun(reason)
        return _run_of(called)

    def _call(self, given: dict[str, Any], called: Future[object]) -> None:
        try:
            called.set_result(self._function(given))
        except BaseException as error:  # noqa: BLE001 - whatever it does is a failure of the scenario
            called.set_exception(error)


async def _await(awaitable: Awaitable[object], ended: threading.Event) -> object:
    try:
        return await awaitable
    except (SystemExit, KeyboardInterrupt) as error:  # these would end the loop
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
    finally:
        ended.set()


def _wait(future: Future[object], deadline: Deadline) -> str | None:
    """Why the agent has to stop; None once it is done."""
    while not wait([future], min(_POLL_S, deadline.left_s())).done:
        if (reason := deadline.reason_to_stop()) is not None:
            return reason
    return None


def _run_of(done: Future[object]) -> AgentRun:
    if done.cancelled():
        return AgentRun("the function cancelled itself")
    if (error := done.exception()) is not None:
        return _failed("raised", f"{type(error).__name__}: {error}")
    if not isinstance(answer := done.result(), dict) or "task_result" not in answer:
        return AgentRun()
    try:
        return AgentRun(record=json.loads(json.dumps(answer, default=str)))  # as of a function in a process of its own
    except (TypeError, ValueError, RecursionError) as error:
        return _failed("returned what is no JSON:", str(error))


def _failed(what: str, said: str) -> AgentRun:
    return AgentRun(f"the function {what} {truncate(printable(said), _MAX_ERROR_CHARACTERS)}")

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import pytest

from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask
from guarantee_email_agent.eval.agents.callable_agent import AgentFunction, CallableAgent


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with running_loop() as loop:
        yield loop


def run(function: AgentFunction, loop: asyncio.AbstractEventLoop, stop: threading.Event | None = None) -> AgentRun:
    """stop: once set, the agent has to stop."""
    reason = (lambda: "it has to stop" if stop.is_set() else None) if stop is not None else lambda: None
    return CallableAgent(function, loop).run(AgentTask({"from": "a@example.com"}, {"mail": "http://x/"}, 300.0, reason))


def test_a_function_gets_mail_and_servers(loop: asyncio.AbstractEventLoop) -> None:
    given: list[dict[str, Any]] = []
    assert run(given.append, loop) == AgentRun()
    assert given == [
        {"email": {"from": "a@example.com"}, "mcp_servers": {"mail": {"type": "http", "url": "http://x/"}}}
    ]


def test_what_it_returns_is_its_record_if_it_is_one(loop: asyncio.AbstractEventLoop) -> None:
    assert run(lambda _: {"task_result": "done"}, loop).record == {"task_result": "done"}
    assert run(lambda _: "done", loop) == AgentRun()
    assert run(lambda _: {"task_result": {"day": date(2026, 1, 2)}}, loop).record["task_result"] == {
        "day": "2026-01-02"
    }
    failure = run(lambda _: {"task_result": {(): 1}}, loop).failure
    assert failure == "the function returned what is no JSON: keys must be str, int, float, bool or None, not tuple"


async def _raises(task: dict[str, Any]) -> None:
    task["nothing"]


@pytest.mark.parametrize("function", [lambda task: task["nothing"], _raises], ids=["function", "coroutine"])
def test_an_exception_is_the_failure(loop: asyncio.AbstractEventLoop, function: AgentFunction) -> None:
    assert run(function, loop).failure == "the function raised KeyError: 'nothing'"


def test_to_exit_ends_neither_process_nor_loop(loop: asyncio.AbstractEventLoop) -> None:
    async def agent(_: object) -> None:
        raise SystemExit(3)

    assert run(agent, loop).failure == "the function raised RuntimeError: SystemExit: 3"
    assert loop.is_running()


def test_a_coroutine_that_has_to_stop_is_cancelled(loop: asyncio.AbstractEventLoop) -> None:
    stop, ended = threading.Event(), threading.Event()

    async def agent(_: object) -> None:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert run(agent, loop, stop).failure == "it has to stop"
    assert ended.wait(300)


def test_nobody_waits_for_a_function_that_has_to_stop(loop: asyncio.AbstractEventLoop) -> None:
    stop, release = threading.Event(), threading.Event()

    def agent(_: object) -> None:
        stop.set()
        release.wait()

    assert run(agent, loop, stop).failure == "it has to stop"
    release.set()


def test_one_that_cancels_itself_is_a_failure(loop: asyncio.AbstractEventLoop) -> None:
    async def agent(_: object) -> None:
        raise asyncio.CancelledError

    assert run(agent, loop).failure == "the function cancelled itself"

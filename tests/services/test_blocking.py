"""Calls of services that block, whose threads wait for events."""

import asyncio
import gc
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp_sessions import failure
from virtual_time import run_in_virtual_time
from waiting import PATIENCE_S

from guarantee_email_agent.services import blocking
from guarantee_email_agent.services.blocking import BlockingService, in_daemon_thread
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError
from guarantee_email_agent.utils.logging import JsonFormatter, add_log_fields, log_fields

pytestmark = pytest.mark.anyio


class Service:
    """Its calls end once they may."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.ended = threading.Semaphore(0)
        self.closed = threading.Event()

    def work(self) -> str:
        self.begun.release()
        assert self.may_end.wait(PATIENCE_S)
        self.ended.release()
        return "too late" if self.closed.is_set() else "done"

    def fail(self, error: Exception) -> str:
        raise error

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.may_end.set()


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all calls."""
    monkeypatch.setattr(blocking, "MAX_THREADS", 1)


def blocking_service(open_service: Callable[[], Any], timeout_s: float = PATIENCE_S) -> BlockingService[Service]:
    return BlockingService("tickets", "tickets.database", open_service, timeout_s)


async def happened(event: threading.Semaphore) -> bool:
    return await asyncio.to_thread(event.acquire, timeout=PATIENCE_S)


async def begin_work(service: Service, calls: BlockingService[Service]) -> asyncio.Task[str]:
    call = asyncio.create_task(calls.call("work", Service.work))
    assert await happened(service.begun)
    return call


class TestDeadline:
    def test_a_call_ends_at_it_and_goes_on_in_its_thread(self, service: Service, one_thread: None) -> None:
        async def main() -> None:
            calls = blocking_service(lambda: service, 30.0)
            await calls.open()
            error = await failure(calls.call("work", Service.work))
            assert (error.code, error.message) == ("tickets_timeout", "tickets: work: no answer within 30 s")
            assert (error.retryable, error.uncertain, error.outage) == (True, True, False)
            assert "could not be begun" in (await failure(calls.call("work", Service.work))).message
            service.may_end.set()
            assert await happened(service.ended)

        run_in_virtual_time(main())

    def test_a_call_that_waits_for_a_thread_is_never_begun(self, service: Service, one_thread: None) -> None:
        async def main() -> None:
            calls, begun = blocking_service(lambda: service, 30.0), list[Service]()
            await calls.open()
            _, error = await asyncio.gather(
                failure(calls.call("work", Service.work)), failure(calls.call("find", begun.append))
            )
            assert error.message == "tickets: find: it could not be begun within 30 s"
            assert (error.retryable, error.uncertain, error.outage) == (True, False, True)
            service.may_end.set()
            assert await happened(service.ended)
            await calls.close()
            assert begun == []

        run_in_virtual_time(main())

    def test_what_only_waits_has_none_and_takes_nobodys_thread(self, service: Service, one_thread: None) -> None:
        async def main() -> None:
            calls = blocking_service(lambda: service, 30.0)
            waiting = asyncio.create_task(calls.wait("wait", Service.work))
            assert await happened(service.begun)
            assert (await failure(calls.call("work", Service.work))).uncertain
            assert not waiting.done()
            service.may_end.set()
            assert await waiting == "done"

        run_in_virtual_time(main())

    def test_opening_goes_on_after_it(self, service: Service) -> None:
        opened: list[str] = []

        def open_slowly() -> Service:
            opened.append(service.work())
            return service

        async def main() -> None:
            calls = blocking_service(open_slowly, 30.0)
            error = await failure(calls.call("find", lambda _: "found"))
            assert (error.code, error.uncertain) == ("tickets_timeout", False)
            service.may_end.set()
            assert await calls.open() is service
            assert opened == ["done"]

        run_in_virtual_time(main())


class TestThreads:
    async def test_of_a_call_that_is_cancelled_goes_on(
        self, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nor is its error logged, which may quote a mail."""

        def fail(_: Service) -> None:
            service.work()
            raise KeyError("canary")

        calls = blocking_service(lambda: service)
        call = asyncio.create_task(calls.call("fail", fail))
        assert await happened(service.begun)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        service.may_end.set()
        assert await happened(service.ended)
        await calls.close()
        gc.collect()
        assert "canary" not in caplog.text

    def test_one_that_ends_after_the_event_loop_is_silent(self, service: Service) -> None:
        """pytest fails a test whose thread leaves an exception."""
        threads: list[threading.Thread] = []

        def work() -> None:
            threads.append(threading.current_thread())
            service.work()

        async def begin() -> None:
            in_daemon_thread(work)
            assert await happened(service.begun)

        asyncio.run(begin())
        service.may_end.set()
        threads[0].join()

    async def test_log_with_the_fields_of_the_call(self, service: Service) -> None:
        def logged(_: Service) -> str:
            return JsonFormatter().format(logging.makeLogRecord({"msg": "found"}))

        with log_fields():
            add_log_fields(mail="mail-1")
            line = await blocking_service(lambda: service).call("find", logged)
        assert json.loads(line)["mail"] == "mail-1"


class TestErrors:
    async def test_of_the_service_is_raised_as_it_is(self, service: Service) -> None:
        told = ToolError("tickets_locked", "another program keeps it locked", retryable=True)
        error = await failure(blocking_service(lambda: service).call("find", lambda each: each.fail(told)))
        assert error is told
        assert (error.retryable, error.uncertain, error.outage) == (True, False, False)

    @pytest.mark.parametrize("method", ["call", "wait"])
    async def test_unexpected_one_shows_its_place_and_not_its_text(
        self, method: str, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        calls = blocking_service(lambda: service)
        error = await failure(getattr(calls, method)("find", lambda each: each.fail(KeyError("canary"))))
        assert (error.code, error.retryable, error.uncertain) == ("tickets_internal", False, True)
        assert error.message.startswith("tickets: find failed: KeyError at test_blocking.py:")
        assert "tickets: find: unexpected KeyError at test_blocking.py:" in caplog.text
        assert "canary" not in error.message + caplog.text


class TestOpening:
    async def test_is_done_once_for_many_callers(self, service: Service) -> None:
        opened: list[Service] = []

        def open_service() -> Service:
            opened.append(service)
            return service

        service.may_end.set()
        calls = blocking_service(open_service)
        assert await asyncio.gather(*(calls.call("work", Service.work) for _ in range(5))) == ["done"] * 5
        assert opened == [service]

    async def test_is_tried_again_after_a_failure(self, service: Service) -> None:
        problems = ["/t.db: it is damaged", "/t.db: again"]

        def open_service() -> Service:
            if problems:
                raise ToolError("tickets_invalid", problems.pop(0))
            return service

        calls = blocking_service(open_service)
        with pytest.raises(MCPConnectionError) as caught:
            await calls.open()
        assert (caught.value.code, caught.value.outage) == ("tickets_unavailable", True)
        assert caught.value.message == "tickets.database: /t.db: it is damaged"
        error = await failure(calls.call("work", Service.work))
        assert (type(error), error.code) == (IntegrationError, "tickets_unavailable")
        assert error.message == "tickets.database: /t.db: again"
        assert (error.retryable, error.uncertain, error.outage) == (True, False, True)
        service.may_end.set()
        assert await calls.call("work", Service.work) == "done"


class TestClose:
    async def test_waits_for_calls_and_then_closes_the_service(self, service: Service) -> None:
        calls = blocking_service(lambda: service)
        call = await begin_work(service, calls)
        closing = asyncio.create_task(calls.close())
        for _ in range(10):  # so that it would have been closed too early
            await asyncio.sleep(0)
        service.may_end.set()
        assert await call == "done"
        await closing
        assert service.closed.is_set()
        assert (await failure(calls.call("work", Service.work))).message == "tickets: the service is closed"

    async def test_begins_no_call_that_waited_for_a_thread(self, service: Service, one_thread: None) -> None:
        calls = blocking_service(lambda: service)
        first = await begin_work(service, calls)
        second = asyncio.create_task(failure(calls.call("work", Service.work)))
        closing = asyncio.create_task(calls.close())
        await asyncio.sleep(0)
        service.may_end.set()
        assert await first == "done"
        assert (await second).message == "tickets: the service is closed"
        await closing

    async def test_does_not_wait_for_a_call_that_hangs(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(blocking, "CLOSE_S", 0.01)
        calls = blocking_service(lambda: service)
        call = await begin_work(service, calls)
        await calls.close()
        assert not call.done()
        assert service.closed.wait(PATIENCE_S)
        call.cancel()

"""Where a running agent can be asked, what it answers there, and what systemd is told."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Coroutine
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from metrics_port import asked, free_port
from virtual_time import VirtualClock, run_in_virtual_time

from guarantee_email_agent.agent.health import HealthLimits
from guarantee_email_agent.agent.monitoring import (
    Monitoring,
    notify_systemd,
    open_monitoring,
    require_packages,
)
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import ConfigurationError

Result = TypeVar("Result")


@pytest.fixture
def config() -> Config:
    return listening(f"127.0.0.1:{free_port()}")


def listening(place: str) -> Config:
    return Config(metrics=MetricsSettings(place))


def opened(config: Config, *, listens: bool = True) -> Any:
    return open_monitoring(config, SystemClock(), asyncio.Event(), listens=listens)


def run(test: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(test)


class TestPages:
    def test_an_agent_that_lives_cannot_answer_before_it_listed_its_inbox(self, config: Config) -> None:
        place = str(config.metrics.listen)

        async def ask() -> list[tuple[int, str]]:
            async with opened(config) as monitoring:
                answers = [await asyncio.to_thread(asked, place, page) for page in ("/healthz", "/readyz", "/metrics")]
                monitoring.standing.inbox_listed(2, None)
                return [*answers, await asyncio.to_thread(asked, place, "/readyz")]

        *health, (status, metrics), ready = run(ask())
        assert health == [(200, "ok\n"), (503, "the inbox has not been listed yet\n")]
        assert (status, "\nguarantee_email_agent_ready 0.0\n" in metrics) == (200, True)
        assert ready == (200, "ok\n")


class TestPlace:
    @pytest.mark.parametrize("problem", [None, KeyError])
    def test_it_is_free_afterwards(self, config: Config, problem: type[Exception] | None) -> None:
        async def open_and_close() -> None:
            async with opened(config):
                if problem is not None:
                    raise problem

        with nullcontext() if problem is None else pytest.raises(problem):
            run(open_and_close())
        assert config.metrics.place is not None
        with socket.create_server(config.metrics.place):
            pass

    def test_whoever_opens_it_to_others_is_told(self, caplog: pytest.LogCaptureFixture) -> None:
        async def start() -> None:
            async with opened(listening(f"0.0.0.0:{free_port()}")):
                pass

        run(start())
        assert "Whoever reaches 0.0.0.0 may read the metrics" in caplog.text


def test_without_the_package_of_the_extra(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(
        ConfigurationError,
        match=r"metrics.listen needs the package prometheus_client. Run: .*metrics",
    ):
        require_packages(config.metrics)
    require_packages(MetricsSettings())


class TestSystemd:
    """For an hour, in which the main loop gets round for ten minutes."""

    def told_in(self, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watchdog_usec: str) -> int:
        """How often the watchdog was put off."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(tmp_path / "notify"))
            manager.setblocking(False)
            monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
            monkeypatch.setenv("WATCHDOG_USEC", watchdog_usec)
            told = 0

            async def live() -> None:
                nonlocal told
                monitoring = Monitoring(Config(), VirtualClock(), asyncio.Event())
                watchdog = asyncio.create_task(monitoring.put_off_watchdog())
                for second in range(int(seconds)):
                    if second < 600:
                        monitoring.loop_watchdog.beat()
                    await asyncio.sleep(1)
                    with suppress(BlockingIOError):
                        told += manager.recv(100) == b"WATCHDOG=1"
                watchdog.cancel()

            run_in_virtual_time(live())
        return told

    @pytest.mark.parametrize(
        ("seconds", "watchdog_usec", "told"),
        [
            (595, "60000000", 20),
            (3600, "60000000", (600 + HealthLimits.of(Config()).stuck_s) // 30),  # then the main loop is stuck
            *((60, unset, 0) for unset in ("", "0", "soon")),
        ],
    )
    def test_it_is_put_off_twice_in_its_time_while_the_main_loop_gets_round(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, watchdog_usec: str, told: int
    ) -> None:
        assert self.told_in(seconds, tmp_path, monkeypatch, watchdog_usec) == told

    def test_an_abstract_socket(self, monkeypatch: pytest.MonkeyPatch) -> None:
        name = f"guarantee-email-agent-test-{os.getpid()}"
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("\0" + name)
            manager.setblocking(False)
            for _ in range(5000):  # which nobody reads, and nobody waits
                notify_systemd("READY=1")
            assert manager.recv(100) == b"READY=1"

    @pytest.mark.parametrize("address", ["", "/nowhere/notify", "vsock:2:1234"])
    def test_nobody_who_listens_is_no_failure(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify_systemd("READY=1")

"""Where a running agent can be asked, what it answers there, and what systemd is told."""

from __future__ import annotations

import asyncio
import socket
import sys
import urllib.request
from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest
from processes import free_port
from virtual_time import VirtualClock, run_in_virtual_time

from guarantee_email_agent.agent.health import HealthLimits
from guarantee_email_agent.agent.health_probe import HealthAnswer, ask_health
from guarantee_email_agent.agent.monitoring import Monitoring, check_place, open_monitoring, require_packages
from guarantee_email_agent.agent.sd_notify import ServiceNotifier
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import ConfigurationError

NOBODY = ServiceNotifier(None)
Result = TypeVar("Result")


@pytest.fixture
def config() -> Config:
    return listening(f"127.0.0.1:{free_port()}")


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def listening(place: str) -> Config:
    return Config(metrics=MetricsSettings(place))


def opened(config: Config, *, listens: bool = True) -> Any:
    return open_monitoring(config, SystemClock(), NOBODY, asyncio.Event(), listens=listens)


async def asked(config: Config, page: Any = "/healthz") -> HealthAnswer:
    return await asyncio.to_thread(ask_health, config.metrics, page)


def run(test: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(test)


class TestPages:
    def test_an_agent_that_lives_but_has_not_listed_its_inbox(self, config: Config) -> None:
        async def ask() -> tuple[HealthAnswer, HealthAnswer]:
            async with opened(config):
                return await asked(config, "/healthz"), await asked(config, "/readyz")

        lives, ready = run(ask())
        assert (lives, ready) == (HealthAnswer(True, "ok"), HealthAnswer(False, "the inbox has not been listed yet"))

    def test_an_agent_that_can_answer(self, config: Config) -> None:
        async def ask() -> HealthAnswer:
            async with opened(config) as monitoring:
                monitoring.standing.inbox_listed(2, None)
                return await asked(config, "/readyz")

        assert run(ask()) == HealthAnswer(True, "ok")

    def test_its_metrics(self, config: Config) -> None:
        def get() -> tuple[str, str]:
            with urllib.request.urlopen(f"http://{config.metrics.listen}/metrics", timeout=30) as answer:
                return answer.headers["Content-Type"], answer.read().decode()

        async def ask() -> tuple[str, str]:
            async with opened(config):
                return await asyncio.to_thread(get)

        kind, text = run(ask())
        assert kind.startswith("text/plain; version=")
        assert "\nguarantee_email_agent_ready 0.0\n" in text


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

    def test_one_that_is_taken_keeps_the_agent_from_starting(self, taken_port: int) -> None:
        async def start() -> None:
            async with opened(listening(f"127.0.0.1:{taken_port}")):
                pass

        with pytest.raises(
            ConfigurationError, match=rf"metrics\.listen: port {taken_port} of 127.0.0.1 .*another prog"
        ):
            run(start())
        check_place("127.0.0.1", taken_port)  # an agent that runs is not in the way of `check`

    def test_a_run_that_is_over_soon_takes_none(self, taken_port: int) -> None:
        async def start() -> None:
            async with opened(listening(f"127.0.0.1:{taken_port}"), listens=False):
                pass

        run(start())

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
        match=r"metrics.listen needs the package prometheus_client.*guarantee-email-agent\[metrics\]",
    ):
        require_packages(config.metrics)
    require_packages(MetricsSettings())


class TestWatchdog:
    """For an hour, in which the main loop gets round for ten minutes."""

    def told_in(self, seconds: float, tmp_path: Path, *, watchdog_s: float | None) -> int:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(tmp_path / "notify"))
            manager.setblocking(False)
            told = 0

            async def live() -> None:
                nonlocal told
                clock = VirtualClock()
                notifier = ServiceNotifier(manager.getsockname(), watchdog_s)
                monitoring = Monitoring(Config(), clock, notifier, asyncio.Event())
                watchdog = asyncio.create_task(monitoring.keep_told())
                for second in range(int(seconds)):
                    if second < 600:
                        monitoring.loop_watchdog.beat()
                    await asyncio.sleep(1)
                    told += is_told(manager)
                watchdog.cancel()

            run_in_virtual_time(live())
        return told

    def test_it_is_put_off_twice_in_its_time(self, tmp_path: Path) -> None:
        assert self.told_in(595, tmp_path, watchdog_s=60) == 20

    def test_it_is_not_put_off_once_the_main_loop_is_stuck(self, tmp_path: Path) -> None:
        stuck_s = HealthLimits.of(Config()).stuck_s
        assert self.told_in(3600, tmp_path, watchdog_s=60) == (600 + stuck_s) // 30

    def test_nobody_is_told_where_systemd_does_not_watch(self, tmp_path: Path) -> None:
        assert self.told_in(600, tmp_path, watchdog_s=None) == 0


def is_told(manager: socket.socket) -> bool:
    try:
        return manager.recv(100) == b"WATCHDOG=1"
    except BlockingIOError:
        return False

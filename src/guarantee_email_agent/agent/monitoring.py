"""What others may know of a running agent: metrics and health over HTTP, and how it stands for systemd."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from guarantee_email_agent.agent.health import Health, HealthLimits, LoopWatchdog
from guarantee_email_agent.agent.listeners import (
    check_port,
    check_unix_socket,
    listen_on_port,
    listen_on_unix_socket,
    remove_unix_socket,
)
from guarantee_email_agent.agent.observer import DaemonObserver
from guarantee_email_agent.agent.sd_notify import ServiceNotifier, ServiceStatus
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.integrations.server_launch import is_loopback
from guarantee_email_agent.utils.circuit_breaker import CircuitBreaker
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import ConfigurationError

if TYPE_CHECKING:  # loaded where metrics are wanted: 80 ms, and packages of an extra
    from guarantee_email_agent.agent.metrics import Metrics, WatchedDaemon
    from guarantee_email_agent.agent.monitoring_server import Page

logger = logging.getLogger(__name__)

_PACKAGES: Final = ("h11", "prometheus_client")
_EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
_Place: TypeAlias = tuple[str, int] | Path
"""An address and a port, or the path of a Unix socket."""


class Monitoring:
    """Watches a daemon for as long as it runs.

    observers, loop_watchdog: for the daemon and its main loop. current_config: the settings that are in use now.
    """

    def __init__(self, config: Config, clock: Clock, notifier: ServiceNotifier, stop: asyncio.Event) -> None:
        """stop: once it is set, no mail is started. Raises ConfigurationError where a package is missing."""
        self.current_config: Callable[[], Config] = lambda: config
        self.loop_watchdog = LoopWatchdog(clock)
        self.health = Health(clock, self.loop_watchdog, lambda: HealthLimits.of(self.current_config()), stop.is_set)
        self.notifier = notifier
        self.observers: tuple[DaemonObserver, ...] = (self.health, ServiceStatus(notifier))
        self._settings = config.metrics
        self._clock = clock
        self._metrics: Metrics | None = None
        if config.metrics.enabled:
            require_packages(config.metrics)
            from guarantee_email_agent.agent.metrics import Metrics

            self._metrics = Metrics(lambda: self.current_config(), self.health)
            self.observers = (*self.observers, self._metrics)

    def watch(
        self,
        daemon: WatchedDaemon,
        circuits: Callable[[], Mapping[str, CircuitBreaker]],
        scenarios: Iterable[ScenarioInstruction],
    ) -> None:
        """What the metrics look at, as in `Metrics.watch` and `Metrics.expect`."""
        if self._metrics is not None:
            self._metrics.watch(daemon, circuits)
            self._metrics.expect(scenarios)

    def expect(self, scenarios: Iterable[ScenarioInstruction]) -> None:
        """As `Metrics.expect`, once others are in use, or the settings have changed."""
        if self._metrics is not None:
            self._metrics.expect(scenarios)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer at the places that the settings name. Raises ConfigurationError for one that cannot be had."""
        if self._metrics is None:
            yield
            return
        from guarantee_email_agent.agent.monitoring_server import MonitoringServer

        server = MonitoringServer(_pages(self.health, self._metrics), self._settings.host_names)
        async with AsyncExitStack() as stack:
            opened = [(place, stack.enter_context(_opened(place))) for place in _places(self._settings)]
            stack.push_async_callback(server.close)
            for place, listener in opened:
                stack.callback((await server.serve(listener)).close)
                logger.info("Metrics and health: %s", _shown(place))
                if not isinstance(place, Path) and not is_loopback(place[0]):
                    logger.warning("Whoever reaches %s may read the metrics; let a firewall see to who does", place[0])
            yield

    async def keep_watchdog(self) -> None:
        """Put systemd's watchdog off for as long as the main loop gets round; without one it returns at once."""
        if self.notifier.watchdog_s is None:
            return
        while True:
            if (problem := self.health.stuck) is None:
                self.notifier.alive()
            else:
                logger.error("The watchdog will end the agent: %s", problem)
            await self._clock.sleep(self.notifier.watchdog_s / 2)


@asynccontextmanager
async def open_monitoring(
    config: Config, clock: Clock, notifier: ServiceNotifier, stop: asyncio.Event, *, listens: bool = True
) -> AsyncIterator[Monitoring]:
    """listens: whether it may be asked at `metrics`. Nobody asks a run that is over soon, and its port may be taken by
    the agent that watches.

    Raises ConfigurationError for a package, a port or a socket that cannot be had.
    """
    monitoring = Monitoring(config, clock, notifier, stop)
    async with AsyncExitStack() as stack:
        if listens:
            await stack.enter_async_context(monitoring.listening())
        watchdog = asyncio.create_task(monitoring.keep_watchdog())
        try:
            yield monitoring
        finally:
            watchdog.cancel()
            await asyncio.gather(watchdog, return_exceptions=True)


def require_packages(settings: MetricsSettings) -> None:
    """Raises ConfigurationError where metrics are wanted, and a package that they need is not installed."""
    if not settings.enabled:
        return
    try:
        import h11  # noqa: F401
        import prometheus_client  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        problem = (
            f"metrics need the package {error.name}. Run: pip install 'guarantee-email-agent[metrics]', or remove "
        )
        raise ConfigurationError(f"{problem}metrics.port and metrics.socket", "metrics_not_installed") from None


def check_places(settings: MetricsSettings) -> None:
    """Raises ConfigurationError for a place where no agent could listen. One that listens there is not in the way."""
    for place in _places(settings):
        if isinstance(place, Path):
            check_unix_socket(place)
        else:
            check_port(*place)


def shown_places(settings: MetricsSettings) -> list[str]:
    """Where metrics and health are told."""
    return [_shown(place) for place in _places(settings)]


def _pages(health: Health, metrics: Metrics) -> Mapping[str, Page]:
    from guarantee_email_agent.agent.monitoring_server import Answer

    def answer(problems: list[str]) -> Answer:
        text = "\n".join(problems or ["ok"])
        return Answer(503 if problems else 200, f"{text}\n".encode())

    return {
        "/metrics": lambda: Answer(200, metrics.exposition(), _EXPOSITION),
        "/healthz": lambda: answer([health.stuck] if health.stuck else []),
        "/readyz": lambda: answer(health.problems),
    }


def _places(settings: MetricsSettings) -> list[_Place]:
    places: list[_Place] = [] if settings.port is None else [(settings.address, settings.port)]
    return places if settings.socket is None else [*places, settings.socket]


@contextmanager
def _opened(place: _Place) -> Iterator[socket.socket]:
    with listen_on_unix_socket(place) if isinstance(place, Path) else listen_on_port(*place) as listener:
        try:
            yield listener
        finally:
            if isinstance(place, Path):
                listener.close()
                remove_unix_socket(place)


def _shown(place: _Place) -> str:
    if isinstance(place, Path):
        return str(place)
    address, port = place
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"

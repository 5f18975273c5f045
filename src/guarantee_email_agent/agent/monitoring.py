"""What others may know of a running agent: metrics and health over HTTP, and how it stands for systemd."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.agent.health import Health, HealthLimits, LoopWatchdog
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.extras import require_extra
from guarantee_email_agent.utils.loopback import is_loopback

if TYPE_CHECKING:  # loaded where metrics are wanted: 80 ms, and a package of an extra
    from guarantee_email_agent.agent.metrics import Metrics

logger = logging.getLogger(__name__)

_PROBLEMS: Final = {
    errno.EADDRINUSE: "another program has it, perhaps another agent. Name another port, one for each agent",
    errno.EACCES: "this user may not have it. Name one above 1023",
    errno.EADDRNOTAVAIL: "this machine has no such address. Name one of its own",
}


def notify_systemd(message: str) -> None:
    """As sd_notify(3) has it, where systemd listens. It neither waits nor fails: mail is answered without systemd."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(message.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


class Monitoring:
    """Watches a daemon for as long as it runs.

    standing, loop_watchdog: of the daemon and its main loop.
    """

    def __init__(self, config: Config, clock: Clock, stop: asyncio.Event) -> None:
        """stop: once it is set, no mail is started. Raises ConfigurationError where a package is missing."""
        self.loop_watchdog = LoopWatchdog(clock)
        self.standing = Standing.of(config, clock.monotonic)
        self.health = Health(clock, self.loop_watchdog, HealthLimits.of(config), self.standing, stop.is_set)
        self._settings = config.metrics
        self._clock = clock
        self._metrics: Metrics | None = None
        if config.metrics.place is not None:
            require_packages(config.metrics)
            from guarantee_email_agent.agent.metrics import Metrics

            self._metrics = Metrics(config, self.health, self.standing)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer where the settings say. Raises ConfigurationError for a place that cannot be had."""
        if self._metrics is None or (place := self._settings.place) is None:
            yield
            return
        from guarantee_email_agent.agent.monitoring_server import MonitoringServer

        health = self.health
        pages = {"/healthz": lambda: [health.stuck] if health.stuck else [], "/readyz": lambda: health.problems}
        with _telling_of_place(*place):
            server = MonitoringServer(*place, self._metrics.registry, pages, asyncio.get_running_loop())
        logger.info("Metrics and health: %s", shown_place(*place))
        if not is_loopback(place[0]):
            logger.warning("Whoever reaches %s may read the metrics; let a firewall see to who does", place[0])
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        try:
            yield
        finally:
            await asyncio.to_thread(server.shutdown)
            server.server_close()

    async def put_off_watchdog(self) -> None:
        """Tell systemd, where it watches, that the agent lives, for as long as the main loop gets round."""
        watchdog_usec = os.environ.get("WATCHDOG_USEC", "")
        while watchdog_usec.isdecimal() and int(watchdog_usec) > 0:
            if (problem := self.health.stuck) is None:
                notify_systemd("WATCHDOG=1")
            else:
                logger.error("The watchdog will end the agent: %s", problem)
            await self._clock.sleep(int(watchdog_usec) / 2e6)


@asynccontextmanager
async def open_monitoring(
    config: Config, clock: Clock, stop: asyncio.Event, *, listens: bool = True
) -> AsyncIterator[Monitoring]:
    """listens: whether it may be asked at `metrics`. Nobody asks a run that is over soon, and its port may be taken by
    the agent that watches.

    Raises ConfigurationError for a package or a port that cannot be had.
    """
    monitoring = Monitoring(config, clock, stop)
    async with AsyncExitStack() as stack:
        if listens:
            await stack.enter_async_context(monitoring.listening())
        watchdog = asyncio.create_task(monitoring.put_off_watchdog())
        try:
            yield monitoring
        finally:
            watchdog.cancel()
            await asyncio.gather(watchdog, return_exceptions=True)


def require_packages(settings: MetricsSettings) -> None:
    """Raises ConfigurationError where metrics are wanted, and the package that they need is not installed."""
    if settings.place is not None:
        require_extra("metrics", "metrics.listen", "prometheus_client")


def check_place(address: str, port: int) -> None:
    """Raises ConfigurationError where no agent could listen, were the port free."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with _telling_of_place(address, port), socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.bind((address, 0))


@contextmanager
def _telling_of_place(address: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = _PROBLEMS.get(error.errno or 0, f"{error.strerror or error}. Correct it")
        problem = f"metrics.listen: port {port} of {address} cannot be used: {reason}"
        raise ConfigurationError(problem, "metrics_port_unusable") from None


def shown_place(address: str, port: int) -> str:
    """As a URL."""
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"

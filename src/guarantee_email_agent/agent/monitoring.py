"""What others may know of a running agent: metrics and health over HTTP, and how it stands for systemd."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any, Final

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.mail_worker import lease_s
from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.agent.standing import Standing, wall_time
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.config.settings import Config, Mode
from guarantee_email_agent.ledger.agents import AgentReport, ReportedOutage, RunningAgents, Work, as_code
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.distribution import __version__, require_extra
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.loopback import is_loopback

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


CALLS_OF_A_ROUND: Final = 4
"""Calls of the mail server between two beats of the main loop: list; or read a mail, look for proof, and mark it."""

MARGIN_S: Final = 60.0
"""For everything that is no call: the ledger, a server that starts anew, a machine that is busy."""


def standing_of(config: Config, now: Callable[[], float], is_stopping: Callable[[], bool]) -> Standing:
    """Of an agent that starts now; a slow service alone makes it neither stuck nor silent."""
    agent, calls_s = config.agent, CALLS_OF_A_ROUND * config.agent.mail_timeout_s
    return Standing(
        config.look_ups,
        templates=config.llm.when_down == "template",
        now=now,
        stuck_s=lease_s(agent.mail_budget_s, config.mailbox.copy_wait_s) + calls_s + MARGIN_S,
        silent_s=agent.poll_interval_s + agent.mail_budget_s + calls_s + MARGIN_S,
        is_stopping=is_stopping,
    )


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Beside the block, and cancelled at its end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def monitored(
    config: Config, clock: Clock, stop: asyncio.Event, *, listens: bool = True
) -> AsyncIterator[Standing]:
    """How the daemon stands that runs in the block, told to systemd and at `metrics`.

    stop: once it is set, no mail is started. listens: whether it may be asked. Nobody asks a run that is over soon, and
    its port may be taken by the agent that watches.

    Raises ConfigurationError for a package or a port that cannot be had.
    """
    standing = standing_of(config, clock.monotonic, stop.is_set)
    require_packages(config.metrics)
    async with (
        _listening(config, standing) if listens else nullcontext(),
        in_background(put_off_watchdog(standing, clock)),
    ):
        yield standing


@asynccontextmanager
async def _listening(config: Config, standing: Standing) -> AsyncIterator[None]:
    if (place := config.metrics.place) is None:
        yield
        return
    from guarantee_email_agent.agent.metrics import Metrics
    from guarantee_email_agent.agent.monitoring_server import MonitoringServer

    pages = {"/healthz": lambda: [standing.stuck] if standing.stuck else [], "/readyz": lambda: standing.problems}
    registry = Metrics(config, standing).registry
    with _telling_of_place(*place):
        server = MonitoringServer(*place, registry, pages, asyncio.get_running_loop())
    logger.info("Metrics and health: %s", shown_place(*place))
    if not is_loopback(place[0]):
        logger.warning("Whoever reaches %s may read the metrics; let a firewall see to who does", place[0])
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


async def put_off_watchdog(standing: Standing, clock: Clock) -> None:
    """Tell systemd, where it watches, that the agent lives, for as long as the main loop gets round."""
    watchdog_usec = os.environ.get("WATCHDOG_USEC", "")
    while watchdog_usec.isdecimal() and int(watchdog_usec) > 0:
        if (problem := standing.stuck) is None:
            notify_systemd("WATCHDOG=1")
        else:
            logger.error("The watchdog will end the agent: %s", problem)
        await clock.sleep(int(watchdog_usec) / 2e6)


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


INTERVAL_S: Final = 15.0
_NO_WORK: Final = frozenset({"busy", "waiting"})


class Heartbeat:
    """Tells the ledger how the agent stands. owner: names this process there."""

    def __init__(self, ledger: RunningAgents, owner: str, mode: Mode, standing: Standing) -> None:
        self._ledger, self._owner, self._mode, self._standing = ledger, owner, mode, standing
        self._work: dict[str, Work] = {}
        self._writing: asyncio.Task[None] | None = None

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:  # noqa: ARG002 - a MailListener; the ledger knows its key
        if result.mail_key and (result.tokens or result.cost_usd != 0 or result.disposition not in _NO_WORK):
            self._add(result.mail_key, Work(result.duration_ms / 1000, result.cost_usd))

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Until the block is left; then the agent is no longer listed."""
        with suppress(LedgerError):
            await asyncio.to_thread(self._forget_killed)
        try:
            await self._beat()  # a start that is cancelled meanwhile leaves no entry either
            async with in_background(self._beat_forever()):
                yield
        finally:
            if self._writing is not None:  # a thread cannot be cancelled: it must not write after the entry went
                await asyncio.gather(self._writing, return_exceptions=True)
            with suppress(LedgerError):
                await self._beat()
                await asyncio.to_thread(self._ledger.leave, self._owner)

    def _forget_killed(self) -> None:
        """Those on this machine that run no more: this one takes their place."""
        for owner in filter(has_ended, self._ledger.names()):
            self._ledger.leave(owner)

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            await self._beat()

    async def _beat(self) -> None:
        self._writing = asyncio.create_task(self._write())
        await asyncio.shield(self._writing)

    async def _write(self) -> None:
        """A ledger that cannot be written now gets it next time: the mails themselves wait for it, too."""
        standing = self._standing
        outages = [
            ReportedOutage(as_code(each.service), as_code(each.code), round(wall_time(each.since), 1))
            for each in standing.outages
        ]
        if (silent_s := standing.silence_s) is not None:  # a main loop that stands still has found nothing down
            outages.append(ReportedOutage("inbox", "not_listed", round(time.time() - silent_s, 1)))
        report = AgentReport(__version__, self._mode, standing.waiting, standing.oldest_received, outages)
        work, self._work = self._work, {}
        try:
            await asyncio.to_thread(self._ledger.beat, self._owner, report, work)
        except LedgerError as error:
            logger.debug("%s", error.message)
            for mail_key, done in work.items():
                self._add(mail_key, done)

    def _add(self, mail_key: str, done: Work) -> None:
        before = self._work.get(mail_key, Work(0.0, 0.0))
        cost_usd = None if before.cost_usd is None or done.cost_usd is None else before.cost_usd + done.cost_usd
        self._work[mail_key] = Work(before.seconds + done.seconds, cost_usd)

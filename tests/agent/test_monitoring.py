"""Where a running agent can be asked, what it answers there, and what systemd is told."""

import asyncio
import os
import socket
import sqlite3
import sys
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from company import Company
from mailbox_in_memory import integration_error
from metrics_port import asked, free_port
from virtual_time import VirtualClock, run_in_virtual_time
from waiting import wait_until

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.monitoring import (
    Heartbeat,
    monitored,
    notify_systemd,
    put_off_watchdog,
    require_packages,
    standing_of,
)
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.agents import AgentReport, RunningAgent, RunningAgents, Work
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import ConfigurationError

Result = TypeVar("Result")


@pytest.fixture
def config() -> Config:
    return listening(f"127.0.0.1:{free_port()}")


def listening(place: str) -> Config:
    return Config(metrics=MetricsSettings(place))


def opened(config: Config, *, listens: bool = True) -> Any:
    return monitored(config, SystemClock(), asyncio.Event(), listens=listens)


def run(test: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(test)


class TestPages:
    def test_an_agent_that_lives_cannot_answer_before_it_listed_its_inbox(self, config: Config) -> None:
        place = str(config.metrics.listen)

        async def ask() -> list[tuple[int, str]]:
            async with opened(config) as standing:
                answers = [await asyncio.to_thread(asked, place, page) for page in ("/healthz", "/readyz", "/metrics")]
                standing.inbox_listed(2, None)
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
                clock = VirtualClock()
                standing = standing_of(Config(), clock.monotonic, bool)
                watchdog = asyncio.create_task(put_off_watchdog(standing, clock))
                for second in range(int(seconds)):
                    if second < 600:
                        standing.beat()
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
            (3600, "60000000", (600 + 360) // 30),  # then the main loop is stuck
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


MAIL = "a1" * 16
ENTRY = InboxEntry("first", 1)


def listed(location: str) -> list[RunningAgent]:
    with LedgerReader(location) as reader:
        return reader.agents()


@pytest.mark.parametrize("silent_s", [1000.0, -1.0])
def test_it_is_listed_while_it_runs_with_what_is_down_and_that_its_main_loop_stands_still(
    ledger: Ledger, location: str, monkeypatch: pytest.MonkeyPatch, silent_s: float
) -> None:
    monkeypatch.setattr("guarantee_email_agent.agent.monitoring.INTERVAL_S", 0.01)

    async def live() -> list[RunningAgent]:
        standing = Standing(silent_s=silent_s)
        async with Heartbeat(ledger.agents, "one:1", "drafts", standing).beating():
            standing.inbox_listed(2, 900.0)
            standing.failed(integration_error("warranty_api_timeout"))
            while "warranty_api" not in {outage.service for outage in listed(location)[0].outages}:
                await asyncio.sleep(0.01)
            return listed(location)

    (agent,) = asyncio.run(live())
    assert (agent.owner, agent.mode, agent.waiting, agent.oldest_received) == ("one:1", "drafts", 2, 900.0)
    silent = [("inbox", "not_listed")] if silent_s < 0 else []
    told = [(outage.service, outage.code) for outage in agent.outages]
    assert told == [("warranty_api", "warranty_api_timeout"), *silent]
    assert listed(location) == []


@pytest.mark.parametrize(("lost_usd", "all_usd"), [(0.25, 0.75), (None, None)])
def test_what_mails_took_is_written_at_the_end_at_the_latest(
    ledger: Ledger, location: str, lost_usd: float | None, all_usd: float | None
) -> None:
    ledger.claim(MAIL, location_key=MAIL, owner="one:1", lease_s=1)

    async def live() -> None:
        heartbeat = Heartbeat(ledger.agents, "one:1", "answer", Standing())
        async with heartbeat.beating():
            for result in (
                WorkResult("failed", mail_key=MAIL, duration_ms=1500, tokens=10, cost_usd=0.5),
                WorkResult("busy", mail_key=MAIL, duration_ms=9000),
                WorkResult(
                    "busy", mail_key=MAIL, duration_ms=1000, tokens=0 if lost_usd is None else 10, cost_usd=lost_usd
                ),  # its lease was lost
                WorkResult("answered", mail_key=MAIL, duration_ms=500),
            ):
                heartbeat.mail_worked(ENTRY, result)

    asyncio.run(live())
    with LedgerReader(location) as reader:
        assert (reader.find(MAIL).worked_s, reader.find(MAIL).cost_usd) == (3.0, all_usd)


def test_it_takes_the_place_of_one_that_was_killed_here_and_of_no_other(ledger: Ledger, location: str) -> None:
    name, _, started = process_name().rpartition(":")
    assert f":{os.getpid()}:" in name
    for owner in (f"{name}:{int(started) + 1}", "elsewhere:1"):
        ledger.agents.beat(owner, AgentReport("1.0", "answer"))

    async def live() -> list[str]:
        async with Heartbeat(ledger.agents, process_name(), "answer", Standing()).beating():
            return [agent.owner for agent in listed(location)]

    assert asyncio.run(live()) == ["elsewhere:1", process_name()]


def test_a_start_that_is_cancelled_in_its_first_entry_leaves_none(ledger: Ledger, location: str) -> None:
    begun = threading.Event()

    class Announced(RunningAgents):
        def beat(self, owner: str, report: AgentReport, work: Mapping[str, Work] | None = None) -> None:
            begun.set()
            super().beat(owner, report, work)

    async def live() -> None:
        async with Heartbeat(Announced(ledger._database), "one:1", "answer", Standing()).beating():
            pytest.fail("the start was not cancelled")

    async def cancelled() -> None:
        with closing(sqlite3.connect(location, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            start = asyncio.create_task(live())
            await asyncio.to_thread(begun.wait)
            start.cancel()
            await asyncio.sleep(0)
            other.execute("ROLLBACK")
            await asyncio.gather(start, return_exceptions=True)

    asyncio.run(cancelled())
    assert begun.is_set()
    assert listed(location) == []


class ServiceManager:
    """What an agent told its service manager, in order."""

    def __init__(self, socket_file: Path) -> None:
        self.told: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(socket_file))
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while message := self._socket.recv(4096).decode():
            self.told.append(message)

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceManager]:
    manager = ServiceManager(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    yield manager
    manager.close()


@pytest.mark.slow
def test_systemd_is_told_from_start_to_stop(company: Company, manager: ServiceManager) -> None:
    company.receive("first")
    agent = company.start()
    company.wait_for_replies(1)
    wait_until(lambda: "WATCHDOG=1" in manager.told)
    company.stop(agent)

    assert [message for message in manager.told if message != "WATCHDOG=1"] == ["READY=1", "STOPPING=1"]


@pytest.mark.slow
def test_a_port_that_is_taken_stops_a_second_agent_and_no_single_run(company: Company) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed: uv sync --group ci")
    port = free_port()
    place = f"127.0.0.1:{port}"
    company.configure(metrics={"listen": place})
    agent = company.start()
    wait_until(lambda: asked(place, "/readyz")[0] == 200)

    second = company.run("run")
    assert second.returncode == 2
    assert f"metrics.listen: port {port} of 127.0.0.1 cannot be used: another program has it" in second.stderr
    assert company.run("run", "--once").returncode == 0
    assert f"Metrics: http://127.0.0.1:{port}/\n" in company.run("check").stdout
    assert asked(place, "/readyz") == (200, "ok\n")

    company.stop(agent)

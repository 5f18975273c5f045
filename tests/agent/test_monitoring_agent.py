"""The whole agent as systemd, a probe and a second agent meet it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from company import Company
from metrics_port import asked, free_port
from waiting import wait_until

pytestmark = pytest.mark.slow


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


def test_systemd_is_told_from_start_to_stop(company: Company, manager: ServiceManager) -> None:
    company.receive("first")
    agent = company.start()
    company.wait_for_replies(1)
    wait_until(lambda: "WATCHDOG=1" in manager.told)
    company.stop(agent)

    assert [message for message in manager.told if message != "WATCHDOG=1"] == ["READY=1", "STOPPING=1"]


def test_a_port_that_is_taken_stops_a_second_agent_and_no_single_run(company: Company) -> None:
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

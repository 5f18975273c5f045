"""What systemd is told, read from a socket like systemd's own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from mailbox_in_memory import integration_error

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.sd_notify import ServiceNotifier, status_line
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.services.ports import InboxEntry


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        yield manager


@pytest.fixture
def notifier(manager: socket.socket) -> ServiceNotifier:
    return ServiceNotifier(manager.getsockname())


def told(manager: socket.socket) -> list[str]:
    messages = []
    while True:
        try:
            messages.append(manager.recv(4096).decode())
        except BlockingIOError:
            return messages


class TestMessages:
    def test_each_is_one_datagram(self, notifier: ServiceNotifier, manager: socket.socket) -> None:
        notifier.ready()
        notifier.alive()
        notifier.stopping()
        assert told(manager) == ["READY=1", "WATCHDOG=1", "STOPPING=1"]

    def test_an_abstract_socket(self) -> None:
        name = f"guarantee-email-agent-test-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("\0" + name)
            manager.setblocking(False)
            ServiceNotifier(f"@{name}").ready()
            assert told(manager) == ["READY=1"]

    @pytest.mark.parametrize("address", [None, "/nowhere/notify", "vsock:2:1234"])
    def test_nobody_who_listens_is_no_failure(self, address: str | None) -> None:
        ServiceNotifier(address).ready()

    def test_a_manager_that_reads_nothing_keeps_nobody_waiting(
        self, notifier: ServiceNotifier, manager: socket.socket
    ) -> None:
        for _ in range(5000):
            notifier.alive()
        assert 0 < len(told(manager)) < 5000

    def test_a_status_is_one_line_and_told_once(self, notifier: ServiceNotifier, manager: socket.socket) -> None:
        notifier.status("Watching\nREADY=1")
        notifier.status("Watching\nREADY=1")
        assert told(manager) == ["STATUS=Watching READY=1"]


class TestEnvironment:
    def test_the_watchdog_is_in_microseconds(self) -> None:
        environ = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"}
        assert ServiceNotifier.from_environment(environ, process_id=7).watchdog_s == 60

    @pytest.mark.parametrize(
        "environ",
        [{}, {"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "0"}],
    )
    def test_there_is_none_where_systemd_watches_nobody_or_another_process(self, environ: dict[str, str]) -> None:
        assert ServiceNotifier.from_environment(environ, process_id=7).watchdog_s is None


def test_the_status_line_has_counts_and_services() -> None:
    standing = Standing()
    assert status_line(standing) == "Watching the inbox: 0 waiting, 0 finished"
    standing.inbox_listed(3, 1.0)
    for result in (
        WorkResult("answered", ended="answered"),
        WorkResult("answered"),  # had ended before
        WorkResult("observed", ended="observed"),
        WorkResult("outage", error=integration_error("mail_auth"), outage=True),
    ):
        standing.mail_worked(InboxEntry("1", 1000), result, frozenset())
    assert status_line(standing) == "Watching the inbox: 3 waiting, 1 finished; down: mail"

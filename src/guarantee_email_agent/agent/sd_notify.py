"""What systemd is told of the agent: the protocol of sd_notify(3), one datagram a message."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final, get_args

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.observer import DaemonObserver
from guarantee_email_agent.agent.outages import Outage
from guarantee_email_agent.services.ports import InboxEntry, MailMark

logger = logging.getLogger(__name__)

MAX_STATUS_CHARS: Final = 200


class ServiceNotifier:
    """Tells the service manager how the agent stands; without one, or with one that does not listen, nothing happens.

    No message ever waits or fails: a service manager must not keep the agent from its mail.
    """

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        """address: `$NOTIFY_SOCKET`, a path or, with @ in front, an abstract name. watchdog_s: seconds, see there."""
        self.watchdog_s = watchdog_s
        """The service manager ends a service that says nothing for so long; None where it does not watch."""
        self._address = None if address is None else _socket_address(address)
        self._status = ""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], process_id: int | None = None) -> ServiceNotifier:
        """process_id: ours, by default; a watchdog that `WATCHDOG_PID` sets for another process is none of ours."""
        process_id = os.getpid() if process_id is None else process_id
        watchdog_usec = environ.get("WATCHDOG_USEC", "")
        is_watched = environ.get("WATCHDOG_PID", str(process_id)) == str(process_id)
        watchdog_s = int(watchdog_usec) / 1e6 if is_watched and watchdog_usec.isdecimal() else None
        return cls(environ.get("NOTIFY_SOCKET") or None, watchdog_s or None)

    def ready(self) -> None:
        """The agent has started."""
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Puts the watchdog off for another `watchdog_s`."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`. The same as before is not sent again."""
        text = " ".join(text.split())[:MAX_STATUS_CHARS]
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            logger.debug("The service manager was not told %s: %s", message.partition("\n")[0], error)


def _socket_address(name: str) -> str | None:
    if name.startswith("@"):
        return "\0" + name[1:]
    if name.startswith("/"):
        return name
    logger.debug("NOTIFY_SOCKET is no Unix socket")  # systemd knows vsock addresses, for virtual machines
    return None


class ServiceStatus(DaemonObserver):
    """Keeps the line of `systemctl status`, in counts and names of services."""

    def __init__(self, notifier: ServiceNotifier) -> None:
        self._notifier = notifier
        self._waiting = self._finished = 0
        self._down: tuple[str, ...] = ()

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:  # noqa: ARG002 - a DaemonObserver
        self._waiting = waiting
        self._tell()

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:  # noqa: ARG002 - a DaemonObserver
        if result.ended in get_args(MailMark):
            self._finished += 1
            self._tell()

    def outages_changed(self, outages: Sequence[Outage]) -> None:
        self._down = tuple(dict.fromkeys(outage.service for outage in outages))
        self._tell()

    def _tell(self) -> None:
        down = f"; down: {', '.join(self._down)}" if self._down else ""
        self._notifier.status(f"Watching the inbox: {self._waiting} waiting, {self._finished} finished{down}")

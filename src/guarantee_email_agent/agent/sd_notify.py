"""What systemd is told of the agent: the protocol of sd_notify(3), one datagram a message."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Final

from guarantee_email_agent.agent.standing import Standing

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

    @property
    def is_listened_to(self) -> bool:
        return self._address is not None

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


def status_line(standing: Standing) -> str:
    """For `systemctl status`, in counts and names of services."""
    finished = standing.finished.total() - standing.finished["observed"]
    down = ", ".join(outage.service for outage in standing.outages)
    waiting = f"{standing.waiting or 0} waiting, {finished} finished"
    return f"Watching the inbox: {waiting}{f'; down: {down}' if down else ''}"

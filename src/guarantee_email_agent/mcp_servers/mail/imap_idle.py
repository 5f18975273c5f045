"""Waiting for mail on an IMAP server: IDLE (RFC 2177) where the server knows it, else a look every few seconds.

On a connection of its own, since a connection that idles can do nothing else. It only wakes: what is new is for the
listing to say.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from imapclient import IMAPClient

from guarantee_email_agent.mcp_servers.mail.connection import Server
from guarantee_email_agent.mcp_servers.mail.imap_session import ImapSession

_SLICE_S: Final = 2.0  # of one wait: how long a call that is given up holds the connection
_RENEW_S: Final = 300.0  # of one IDLE; servers drop it after 30 minutes, and some firewalls much sooner
_LOOK_S: Final = 5.0  # between two looks where there is no IDLE


class ImapWatch:
    """Tells when the inbox may have grown."""

    def __init__(self, server: Server, select: Callable[[IMAPClient], Mapping[bytes, Any]]) -> None:
        """`select` selects the folder and returns what the server says of it."""
        self._select = select
        self._session = ImapSession(server, self._begin, self._hear)
        self._arrived = False  # a mail, or nobody can tell; since the last wait ended
        self._mails = -1  # in the folder, as far as the server has told
        self._numbering: tuple[Any, Any] = (None, None)  # of the folder, when this connection began
        self._one_at_a_time = threading.Lock()

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        """Whether a mail arrived since the last wait ended. Raises ToolError."""
        deadline = time.monotonic() + timeout_s
        while not self._one_at_a_time.acquire(timeout=min(_SLICE_S, max(deadline - time.monotonic(), 0))):
            if stop.is_set() or time.monotonic() >= deadline:
                return False
        try:
            return self._session.run(lambda client: self._wait(client, deadline, stop))
        finally:
            self._one_at_a_time.release()

    def close(self) -> None:
        self._session.close()

    def _begin(self, client: IMAPClient) -> None:
        selected = self._select(client)
        mails = int(selected.get(b"EXISTS", 0))
        numbering = (selected.get(b"UIDVALIDITY"), selected.get(b"UIDNEXT"))
        if (mails, numbering) != (self._mails, self._numbering):
            self._arrived = True  # perhaps, while there was no connection: as many may have left
        self._mails, self._numbering = mails, numbering

    def _wait(self, client: IMAPClient, deadline: float, stop: threading.Event) -> bool:
        idle = client.has_capability("IDLE")
        while True:
            # First what came since the last wait: the answer to IDLE may bring it in one piece, where nobody looks.
            if not self._arrived:
                self._hear(client.noop()[1])
            if not self._arrived and idle:
                self._hear(_idle(client, deadline, stop))
            if self._arrived:
                self._arrived = False
                return True
            left = deadline - time.monotonic()
            if left <= 0 or stop.is_set():
                return False
            if not idle and stop.wait(min(_LOOK_S, left)):
                return False

    def _hear(self, told: Iterable[object]) -> None:
        """A mail arrived where the server tells of more than before. What leaves the folder makes it smaller."""
        for response in told:
            match response:
                case (int() as count, b"EXISTS", *_):
                    self._arrived = self._arrived or count > self._mails
                    self._mails = count
                case (int(), b"EXPUNGE", *_):
                    self._mails -= 1


def _idle(client: IMAPClient, deadline: float, stop: threading.Event) -> list[object]:
    """What the server tells while idling, as soon as it tells of a mail."""
    end = min(deadline, time.monotonic() + _RENEW_S)
    told: list[object] = []
    client.idle()
    try:
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            began, slice_s = time.monotonic(), min(_SLICE_S, left)
            told += client.idle_check(timeout=slice_s)
            if any(isinstance(response, tuple) and b"EXISTS" in response for response in told):
                break
            if not told and time.monotonic() - began < slice_s / 2:
                break  # a closed connection answers at once with nothing; the end of the IDLE will tell
    finally:
        told += client.idle_done()[1]
    return told

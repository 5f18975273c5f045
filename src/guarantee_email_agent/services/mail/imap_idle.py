"""Waiting for mail on an IMAP server: IDLE (RFC 2177) where the server knows it, else polling.

On a connection of its own, since a connection that idles can do nothing else. It only wakes: what is new is for the
listing to tell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from imapclient import IMAPClient

from guarantee_email_agent.services.mail.imap_session import ImapSession
from guarantee_email_agent.services.mail.mail_server import MailServer

_SLICE_S: Final = 2.0  # of one wait: how long a call that is cancelled holds the connection
_RENEW_S: Final = 300.0  # of one IDLE; servers drop it after 30 minutes, and some firewalls much sooner
_POLL_S: Final = 5.0  # where there is no IDLE


class ImapIdle:
    """Tells when the inbox may have grown."""

    def __init__(self, server: MailServer, select: Callable[[IMAPClient], Mapping[bytes, Any]]) -> None:
        """`select` selects the folder and returns the server's response to that."""
        self._select = select
        self._session = ImapSession(server, self._prepare, self._on_untagged)
        self._arrived = False  # a mail, or it cannot be known; since the last wait ended
        self._mails = -1  # in the folder, as far as the server has told
        self._uid_state: tuple[Any, Any] = (None, None)  # UIDVALIDITY and UIDNEXT when this connection began
        self._waiting = threading.Lock()

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        """Whether a mail arrived since the last wait ended. Raises ToolError."""
        deadline = time.monotonic() + timeout_s
        while not self._waiting.acquire(timeout=min(_SLICE_S, max(deadline - time.monotonic(), 0))):
            if stop.is_set() or time.monotonic() >= deadline:
                return False
        try:
            return self._session.run(lambda client: self._wait(client, deadline, stop))
        finally:
            self._waiting.release()

    def close(self) -> None:
        self._session.close()

    def _prepare(self, client: IMAPClient) -> None:
        selected = self._select(client)
        mails = int(selected.get(b"EXISTS", 0))
        uid_state = (selected.get(b"UIDVALIDITY"), selected.get(b"UIDNEXT"))
        if (mails, uid_state) != (self._mails, self._uid_state):
            self._arrived = True  # perhaps, while there was no connection: as many may have left
        self._mails, self._uid_state = mails, uid_state

    def _wait(self, client: IMAPClient, deadline: float, stop: threading.Event) -> bool:
        has_idle = client.has_capability("IDLE")
        while True:
            # First what came since the last wait: the response to IDLE may bring it in one piece, and go unread.
            if not self._arrived:
                self._on_untagged(client.noop()[1])
            if not self._arrived and has_idle:
                self._on_untagged(_idle(client, deadline, stop))
            if self._arrived:
                self._arrived = False
                return True
            left = deadline - time.monotonic()
            if left <= 0 or stop.is_set():
                return False
            if not has_idle and stop.wait(min(_POLL_S, left)):
                return False

    def _on_untagged(self, responses: Iterable[object]) -> None:
        """A mail arrived where the server counts more than before. What leaves the folder makes it smaller."""
        for response in responses:
            match response:
                case (int() as count, b"EXISTS", *_):
                    self._arrived = self._arrived or count > self._mails
                    self._mails = count
                case (int(), b"EXPUNGE", *_):
                    self._mails -= 1


def _idle(client: IMAPClient, deadline: float, stop: threading.Event) -> list[object]:
    """The untagged responses while idling, as soon as there is a mail among them."""
    end = min(deadline, time.monotonic() + _RENEW_S)
    responses: list[object] = []
    client.idle()
    try:
        while not stop.is_set() and (left := end - time.monotonic()) > 0:
            began, slice_s = time.monotonic(), min(_SLICE_S, left)
            responses += client.idle_check(timeout=slice_s)
            if any(isinstance(response, tuple) and b"EXISTS" in response for response in responses):
                break
            if not responses and time.monotonic() - began < slice_s / 2:
                break  # a closed connection returns at once with nothing; the end of the IDLE will tell
    finally:
        responses += client.idle_done()[1]
    return responses

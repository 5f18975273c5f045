"""What may be seen of a daemon at work: its inbox, each mail it worked on, and what is down."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.outages import CurrentOutages, Outage
from guarantee_email_agent.services.ports import InboxEntry

logger = logging.getLogger(__name__)


class DaemonObserver:
    """Told of what happens as it happens, in the daemon's event loop: it must not wait, and raises nothing.

    What a subclass leaves out is no news for it.
    """

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:
        """The inbox has answered. waiting: mails without an outcome, those in progress among them.

        oldest_received: when the one that waits longest came, in seconds since 1970; None where none waits, or nobody
        knows.
        """

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:
        """One mail was worked on. It may come again: `disposition` tells whether this was its end."""

    def outages_changed(self, outages: Sequence[Outage]) -> None:
        """outages: all that is down now."""


class Observers(DaemonObserver):
    """All of a daemon. outages: what they are told of whenever it has changed."""

    def __init__(self, observers: Sequence[DaemonObserver], outages: CurrentOutages) -> None:
        self.outages = outages
        self._observers = observers

    def __bool__(self) -> bool:
        return bool(self._observers)

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:
        self.outages.waiting = waiting
        self._tell(lambda observer: observer.inbox_listed(waiting, oldest_received))

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:
        self._tell(lambda observer: observer.mail_worked(entry, result))

    @contextmanager
    def telling_of_outages(self) -> Iterator[CurrentOutages]:
        """For a block that may change them."""
        before = self.outages.current
        yield self.outages
        if before != (outages := self.outages.current):
            self._tell(lambda observer: observer.outages_changed(outages))

    def _tell(self, of: Callable[[DaemonObserver], None]) -> None:
        for observer in self._observers:
            try:
                of(observer)
            except Exception as error:
                # Whoever looks on must not keep a mail from being answered.
                logger.error("%s failed: unexpected %s", type(observer).__name__, type(error).__name__)
                logger.debug("Unexpected failure", exc_info=True)

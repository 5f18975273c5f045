"""What may be seen of a daemon at work: its inbox, each mail it worked on, and what is down."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, get_args

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.outages import INBOX, LEDGER, LEDGER_LIST, MAILS, MODEL, CurrentOutages, Outage
from guarantee_email_agent.services.ports import InboxEntry, MailMark
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError

logger = logging.getLogger(__name__)

_OUTCOMES: Final = (*get_args(MailMark), "observed")


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
        """A service failed, again or for the first time, or answers again. outages: all that is down now."""


class ObserverNotifier:
    """Keeps what is seen of the services, and tells every observer. outages: knows their addresses."""

    def __init__(self, observers: Sequence[DaemonObserver], outages: CurrentOutages) -> None:
        self.outages = outages
        self._observers = observers

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:
        """As DaemonObserver's."""
        self._tell(lambda observer: observer.inbox_listed(waiting, oldest_received))

    def inbox_answered(self, unfinished: Collection[str], now: float) -> None:
        """unfinished: ids of the mails that may wait for a service. now: on the ledger's clock."""
        before = self.outages.current
        self.outages.answered((INBOX, LEDGER_LIST))
        self.outages.keep_waiting(unfinished)
        self.outages.forget_cost_limit(now)
        self._tell_of_outages(before)

    def inbox_failed(self, error: AgentError) -> None:
        """error: why the inbox or the ledger could not be read."""
        if isinstance(error, ConfigurationError):  # ends the agent
            return
        self.outages.failed(error, listing=True)
        self._tell_of_outages()

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:
        """Keep what this mail shows of the services, and tell everybody."""
        before = self.outages.current
        self.outages.answered(result.answered_by)
        error = result.error
        failed_model = error is not None and error.code.startswith(f"{MODEL}_")
        if result.disposition in _OUTCOMES:
            if result.succeeded:
                self.outages.finished(entry.id, without=(MODEL,) if failed_model else ())
            else:
                self.outages.given_up(entry.id)
            self.outages.answered((MAILS, LEDGER))
        self._tell(lambda observer: observer.mail_worked(entry, result))
        if error is not None and result.outage:
            self.outages.failed(error, entry.id if result.disposition in ("outage", "waiting") else None)
            self._tell_of_outages()
        else:
            if result.disposition == "failed":  # by itself, so that it waits for no service
                self.outages.given_up(entry.id)
            self._tell_of_outages(before)

    def _tell_of_outages(self, before: Sequence[Outage] | None = None) -> None:
        """before: nothing is told where it is so still."""
        if before is None or before != self.outages.current:
            outages = self.outages.current
            self._tell(lambda observer: observer.outages_changed(outages))

    def _tell(self, of: Callable[[DaemonObserver], None]) -> None:
        for observer in self._observers:
            try:
                of(observer)
            except Exception as error:
                # Whoever looks on must not keep a mail from being answered.
                logger.error("%s failed: unexpected %s", type(observer).__name__, type(error).__name__)
                logger.debug("Unexpected failure", exc_info=True)

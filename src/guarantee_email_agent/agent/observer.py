"""What may be seen of a daemon at work: its inbox, each mail it worked on, and what is down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from guarantee_email_agent.agent.mail_worker import WorkResult
from guarantee_email_agent.agent.outages import Outage
from guarantee_email_agent.integrations.ports import InboxEntry


class DaemonObserver(Protocol):
    """Told of what happens as it happens, in the daemon's event loop: it must not wait, and raises nothing."""

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:
        """The inbox has answered. waiting: mails without an outcome, those in progress among them.

        oldest_received: when the one that waits longest came, in seconds since 1970; None where none waits, or nobody
        knows.
        """

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:
        """One mail was worked on. It may come again: `disposition` tells whether this was its end."""

    def outages_changed(self, outages: Sequence[Outage]) -> None:
        """A service failed, again or for the first time, or answers again. outages: all that is down now."""

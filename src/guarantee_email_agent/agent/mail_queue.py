"""The mails that the daemon knows of, each in one state; what it does not know is new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final, Literal

from guarantee_email_agent.agent.mail_outcome import Disposition, WorkResult
from guarantee_email_agent.services.ports import InboxEntry

GONE_S: Final = 1.0
"""Seconds for which a mail that is gone may stand in lists that are out of date."""

MailState = Literal["working", "left", "taken", "gone", "done", "observed"]
"""left: it came to no outcome, and is to be tried again. taken: the same, but it is no longer listed. gone: there is
nothing to do now. done: it has ended, and lists that are out of date hold it still. observed: it has ended and bears no
mark, so that every list holds it.
"""


@dataclass(slots=True)
class QueuedMail:
    """due_at: on a monotonic clock. why: of its last try, where that came to no outcome."""

    state: MailState
    due_at: float = inf
    why: Disposition | None = None


class MailQueue:
    """is_draining: what was tried is due again by `free` alone. Moments are those of a monotonic clock.

    Where a mail lay of which nobody remembers more, the key of that place stands for its id.
    """

    def __init__(self) -> None:
        self.is_draining = False
        self._round_at = self._settled_at = -inf  # of the lists, and of the last one that was complete
        self._mails: dict[str, QueuedMail] = {}  # in the order in which they were tried last

    def __len__(self) -> int:
        return len(self._mails)

    def __contains__(self, mail_id: str) -> bool:
        return mail_id in self._mails

    @property
    def unfinished(self) -> dict[str, Disposition]:
        """By the ids of mails: why they came to no outcome."""
        return {mail_id: mail.why for mail_id, mail in self._mails.items() if mail.why is not None}

    @property
    def next_due_at(self) -> float:
        """Of those that were not due when the inbox was listed last."""
        return min((mail.due_at for mail in self._mails.values() if mail.due_at > self._round_at), default=inf)

    def is_waiting(self, mail_id: str) -> bool:
        """Whether a mail that is listed waits for its outcome."""
        return (mail := self._mails.get(mail_id)) is None or mail.state in ("working", "left", "taken")

    def begin_round(self, now: float) -> None:
        """A list is about to be asked for: what has ended by now is not in it."""
        self._round_at = now
        self._mails = {
            mail_id: mail
            for mail_id, mail in self._mails.items()
            if mail.state != "done" and not (mail.state == "gone" and mail.due_at <= now)
        }

    def listed(self, mail_ids: Collection[str], *, is_complete: bool) -> None:
        """is_complete: no other mails are in the inbox."""
        if not is_complete:
            return
        for mail_id, mail in list(self._mails.items()):
            if mail.state == "left" and mail_id not in mail_ids:
                mail.state, mail.why = "taken", None
            elif mail.state == "taken" and mail.due_at <= self._settled_at:
                del self._mails[mail_id]
        self._settled_at = self._round_at

    def pass_over(self, mail_ids: Iterable[str], now: float) -> int:
        """Those that were observed before this agent started; how many were not known to be."""
        new = [mail_id for mail_id in mail_ids if self.is_due(mail_id, now)]
        self._mails |= {mail_id: QueuedMail("observed") for mail_id in new}
        return len(new)

    def release(self, is_released: Callable[[str], bool]) -> None:
        """A person wants these to be tried now, which are not due yet and stood in a list."""
        for mail_id, mail in list(self._mails.items()):
            if mail.state in ("left", "taken") and is_released(mail_id):
                mail.due_at = 0.0
            elif mail.state in ("observed", "gone") and is_released(mail_id):
                del self._mails[mail_id]

    def free(self, dispositions: Collection[Disposition]) -> bool:
        """Let those be tried again that were left for one of these; whether there are any."""
        freed = [mail for mail in self._mails.values() if mail.state == "left" and mail.why in dispositions]
        for mail in freed:
            mail.due_at = 0.0
        return bool(freed)

    def is_due(self, mail_id: str, now: float) -> bool:
        """Whether a mail that is listed is to be started: it is new, or its time has come."""
        return (mail := self._mails.get(mail_id)) is None or mail.due_at <= now

    def in_order(self, entries: Iterable[InboxEntry], crashed_at: Callable[[InboxEntry], float]) -> list[InboxEntry]:
        """Those that failed come last, the latest at the very end: a service may be down for one of them only.

        So do those that an agent died over, which may be the fault of one of them. crashed_at: 0 if it did not.
        """
        order = {mail_id: position for position, mail_id in enumerate(self.unfinished, 1)}
        return sorted(entries, key=lambda entry: (order.get(entry.id, 0), crashed_at(entry)))

    def in_state(self, state: MailState) -> list[str]:
        return [mail_id for mail_id, mail in self._mails.items() if mail.state == state]

    def start(self, mail_id: str) -> None:
        """A task is on it from now on."""
        mail = self._mails.setdefault(mail_id, QueuedMail("working"))
        mail.state, mail.due_at = "working", inf

    def record(self, mail_id: str, result: WorkResult, now: float, pause_s: float) -> None:
        """What the work on a mail came to. pause_s: until anything is tried, since a service is down."""
        self._mails.pop(mail_id, None)
        disposition = result.disposition
        if disposition in ("failed", "outage", "waiting", "busy"):
            due_at = self._due_at(now + max(result.retry_s, 1.0) + pause_s)
            self._mails[mail_id] = QueuedMail("left", due_at, disposition)
        elif disposition == "gone":
            self.leave_until(mail_id, now + GONE_S)
        else:
            self._mails[mail_id] = QueuedMail("observed" if disposition == "observed" else "done")

    def leave_until(self, mail_id: str, moment: float) -> None:
        self._mails[mail_id] = QueuedMail("gone", self._due_at(moment))

    def _due_at(self, moment: float) -> float:
        return inf if self.is_draining else moment

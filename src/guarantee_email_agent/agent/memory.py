"""What a process remembers of mails between two tries."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from guarantee_email_agent.ledger.ledger import Claim

MAX_MAILS: Final = 1000
"""Those whose answers are kept: the last that failed. A model's answer has some kilobytes."""

_SUSPECTS_KEPT: Final = 10_000


class Suspects:
    """The mails that failed at one step, where either they or the service may be at fault.

    A service is at fault where two mails fail and none succeeds between; a mail where others succeeded since its last
    failure, or where none but it has failed since then. waits: how often in a row a mail was found not to be.
    """

    def __init__(self) -> None:
        self._successes = 0
        self.waits: Counter[str] = Counter()
        self._failed: dict[str, int] = {}  # how many mails had succeeded when a mail failed

    def succeeded(self) -> None:
        self._successes += 1

    def is_at_fault(self, mail_key: str, *, outage: bool = False) -> bool:
        """Whether the failure that this mail just had is its own. outage: a single one tells nothing."""
        mails = list(self._failed)  # in the order in which they failed last
        since = mails[mails.index(mail_key) + 1 :] if mail_key in self._failed else mails
        is_alone = not outage and all(self._failed[each] < self._successes for each in since)
        before = self._failed.pop(mail_key, self._successes)
        if len(self._failed) >= _SUSPECTS_KEPT:
            self._failed.clear()
            self.waits.clear()
        self._failed[mail_key] = self._successes
        if is_own := is_alone or before < self._successes:
            self.waits.pop(mail_key, None)
        else:
            self.waits[mail_key] += 1
        return is_own


@dataclass(slots=True)
class Memory:
    """In memory alone, since a customer's words may stand in it; a restart may lose all of it.

    unsaved_usd: the cost of answers that came while the ledger could not be written. unreleased: claims that were to
    end then. suspects: by step. All by mail key.
    """

    unsaved_usd: float = 0.0
    unreleased: dict[str, Claim] = field(default_factory=dict)
    suspects: defaultdict[str, Suspects] = field(default_factory=lambda: defaultdict(Suspects))
    answers: OrderedDict[str, dict[str, Any]] = field(default_factory=OrderedDict)

    def answers_to(self, mail_key: str) -> dict[str, Any]:
        """The model's answers that were paid for, by request, until `forget_answers`: while another service is down,
        the mail is tried anew.
        """
        answers = self.answers.setdefault(mail_key, {})
        self.answers.move_to_end(mail_key)
        if len(self.answers) > MAX_MAILS:
            self.answers.popitem(last=False)
        return answers

    def forget_answers(self, mail_key: str) -> None:
        """The mail came to an outcome, or what the model said of it was of no use."""
        self.answers.pop(mail_key, None)

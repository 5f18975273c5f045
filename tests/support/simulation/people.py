"""What people do at the command line in a history: `release`, `retry` and `hand-over`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guarantee_email_agent.email.identity import reply_message_id
from guarantee_email_agent.ledger.interventions import RefusedError
from simulation.agent import identity_of, location_of
from simulation.letters import Letter

if TYPE_CHECKING:
    from simulation.history import History


class People:
    """The real ledger's interventions.

    `handed_over` has, by the Message-ID that its reply would have, when a person took a mail.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._steps = history.ledger.ledger.interventions
        self.handed_over: dict[str, float] = {}
        self._frees = False

    def steer(self, letter: Letter) -> None:
        mail_key = self._history.ledger.mail_keys().get(location_of(letter.id))
        if mail_key is None:
            return
        action = self._history.random.choice(("release", "retry", "hand-over", "hand-over"))
        self._history.note("a person:", action, letter.id)
        try:
            if action == "hand-over":
                self._steps.hand_over(mail_key)
                self.handed_over[reply_message_id(mail_key)] = self._history.loop.time()
            else:
                self._free(mail_key)
            letter.steered = True
        except RefusedError as error:
            self._history.note("refused:", error.code)

    def release_what_is_stuck(self) -> bool:
        """`status` shows mails that wait in vain: they bear the mark of an agent that was late. Whether any did.

        Only who freed a mail by hand has such mails: an agent sets a mark when all is written down. A restored ledger
        has them, too, and there the mark alone counts.
        """
        if self._history.conditions.restores:
            return False
        ledger, keys = self._history.ledger, self._history.ledger.mail_keys()
        waiting = {row.mail_key for row in ledger.mails() if row.outcome is None}
        marked = [each for each in self._history.inbox.letters.values() if each.mark and each.taken_care_of_at is None]
        stuck = [each for each in marked if waiting & self._keys_of(each, keys)]
        # Another row may be that of a place where the mail lay, and could not be read.
        late = [letter for letter in stuck if keys.get(location_of(letter.id)) in waiting]
        if late and not (self._frees or any(map(self.is_by_hand, marked))):
            self._history.violations.append(f"{late[0].id} bears a mark, and has no outcome")
        for letter in stuck:
            if (mail_key := keys.get(location_of(letter.id))) is None:  # it was moved since: its mark comes off by hand
                letter.mark, letter.reopened = None, True
                self._history.inbox.announce()
                continue
            self._history.note("a person: release", letter.id)
            try:
                self._free(mail_key)
            except RefusedError as error:
                self._history.note("refused:", error.code)
        return bool(stuck)

    def _keys_of(self, letter: Letter, keys: dict[str, str]) -> set[str]:
        """What the ledger may know the mail by: where it lies, or else where it lay before, or what it says."""
        if (here := keys.get(location_of(letter.id))) is not None:
            return {here}
        return {identity_of(letter.raw), *(keys.get(location_of(mail_id), "") for mail_id in letter.earlier_ids)}

    def is_by_hand(self, letter: Letter) -> bool:
        """Whether a person did something to the mail, by its mark or at the command line."""
        return letter.steered or letter.reopened

    def _free(self, mail_key: str) -> None:
        self._frees = True
        self._steps.release(mail_key, lambda owner: not self._history.is_alive(owner.removeprefix("host:")))
        self.handed_over.pop(reply_message_id(mail_key), None)

"""What people do at the command line in a history: `release`, `retry` and `hand-over`, now and then cut short."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import count
from typing import TYPE_CHECKING, Any

from guarantee_email_agent.email.identity import reply_message_id
from guarantee_email_agent.ledger.interventions import HeldMail, RefusedError
from simulation.agent import identity_of, location_of
from simulation.letters import Letter

if TYPE_CHECKING:
    from simulation.history import History

_HOLD_S = 120.0
_KILL_RATE = 0.2
_FAILURE_RATE = 0.1
_LONGEST_CALL_S = 20.0


class People:
    """The real ledger's interventions, with the calls to the mailbox that follow each, later and one by one.

    `handed_over` has, by the Message-ID that its reply would have, when a person took a mail.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._steps = history.ledger.ledger.interventions
        self.handed_over: dict[str, float] = {}
        self._frees = False
        self._commands = count(1)
        self._killed: set[str] = set()

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
                if self._history.random.random() >= _KILL_RATE:
                    self._later(self._mark, mail_key)
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
        held = self._steps.release(mail_key, f"person:{next(self._commands)}", _HOLD_S, self._has_ended)
        self.handed_over.pop(reply_message_id(mail_key), None)
        self._later(self._take_mark_off, held)

    def _take_mark_off(self, held: HeldMail) -> None:
        random = self._history.random
        if random.random() < _KILL_RATE:
            self._later(self._repeat, held)
            return
        if random.random() < _FAILURE_RATE:
            self._fail(held)
            return
        for letter in self._at(held.location_keys):
            self._take_one_off(letter)
        if random.random() < _KILL_RATE:
            self._later(self._repeat, held)
        else:
            self._later(self._give_back, held)

    def _fail(self, held: HeldMail) -> None:
        """The mailbox cannot be reached, or gives no answer: then the mark may be off, now or soon."""
        self._history.note("its mark cannot be taken off:", held.mail_key)
        if self._history.random.random() < 0.5:
            for letter in self._at(held.location_keys):
                self._later(self._take_one_off, letter)
            self._steps.give_back_later(held, _LONGEST_CALL_S)
        elif held.outcome is None:
            self._steps.give_back(held, unmarked=False)
        else:
            self._steps.put_back(held)

    def _take_one_off(self, letter: Letter) -> None:
        letter.mark, letter.reopened = None, True
        self._history.inbox.announce()

    def _give_back(self, held: HeldMail) -> None:
        if not self._steps.give_back(held):
            self._history.note("the hold is over:", held.mail_key)

    def _repeat(self, held: HeldMail) -> None:
        """The command was killed, and is run once more."""
        self._killed.add(held.owner)
        try:
            self._free(held.mail_key)
        except RefusedError as error:
            self._history.note("refused:", error.code)
            if error.code in ("ledger_mail_busy", "ledger_mail_sending"):  # which says when to try again
                self._history.later(_HOLD_S / 2, self._repeat, held)

    def _mark(self, mail_key: str) -> None:
        places = self._history.ledger.mail_keys()
        for letter in self._at([place for place, key in places.items() if key == mail_key]):
            letter.steered = True
            if self._history.ledger.outcome_of(mail_key) == "handed_over":
                letter.mark = "handed_over"
                self._history.ledger.ledger.marked(location_of(letter.id))

    def _at(self, location_keys: Collection[str]) -> list[Letter]:
        return [each for each in self._history.inbox.letters.values() if location_of(each.id) in location_keys]

    def _has_ended(self, owner: str) -> bool:
        if owner.startswith("person:"):
            return owner in self._killed
        return not self._history.is_alive(owner.removeprefix("host:"))

    def _later(self, step: Callable[[Any], object], argument: object) -> None:
        self._history.later(self._history.random.random() * _LONGEST_CALL_S, step, argument)

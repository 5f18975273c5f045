"""The inbox of a history: what customers and machines write into it, and what people and mail servers do to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.email.identity import reply_message_id
from guarantee_email_agent.services.ports import InboxEntry, MailMark, Reply
from simulation.agent import identity_of
from simulation.letters import Kind, Letter, letter_text

if TYPE_CHECKING:
    from simulation.history import History

EPOCH_S: Final = 1_800_000_000.0
FAULTS_END_S: Final = 7200.0
ROBOT: Final = "robot"
ALTERED: Final = "-altered"
_MAX_ROBOT_MAILS: Final = 12
_LIST_AGE_S: Final = 45.0
_STALE_RATE: Final = 0.3
_FORGOTTEN_RATE: Final = 0.3


class Inbox:
    """`letters` are those that lie there, by the ids of mails; `deleted` what people deleted.

    forgets_marks: whether the mail server may lose marks from now on.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._random = history.random
        self.letters: dict[str, Letter] = {}
        self.deleted: list[Letter] = []
        self.forgets_marks = history.conditions.forgets_marks
        self._arrival: asyncio.Future[None] = history.loop.create_future()
        self._robot_mails = 0
        self._troubles = ["withheld", "refused", "none"] if history.conditions.withholds else []
        self._random.shuffle(self._troubles)
        self._lists: list[tuple[float, list[InboxEntry]]] = []

    def answer(self, reply: Reply) -> None:
        """Some customers answer a reply, and robots do."""
        sender, _, _ = reply.to.partition("@")
        if sender.startswith(ROBOT):
            self._history.later(self._random.random() * 100.0, self._robot_answers, sender, reply.message_id)
        elif sender.startswith("missing") and self._random.random() < 0.5:
            self._history.later(30.0 + self._random.random() * 600.0, self._customer_answers, sender, reply.message_id)

    def as_listed(self, entries: list[InboxEntry]) -> list[InboxEntry]:
        """What the mail server says of the mails that wait: on a bad day what they were, or some of them."""
        now = self._history.loop.time()
        if not self._history.conditions.stale_lists or now > FAULTS_END_S:
            return entries
        self._lists = [(at, each) for at, each in self._lists if at > now - _LIST_AGE_S]
        self._lists.append((now, entries))
        if self._random.random() >= _STALE_RATE:
            return list(entries)
        listed = self._random.choice(self._lists)[1]
        return listed[: self._random.randint(0, len(listed))] if self._random.random() < 0.5 else list(listed)

    def set_mark(self, letter: Letter, mark: MailMark) -> None:
        """Where the mail server forgets marks, one of a parked mail counts as taken off."""
        letter.mark = mark
        forgets = self.forgets_marks and self._history.loop.time() < FAULTS_END_S and mark != "unknown"
        if forgets and self._random.random() < _FORGOTTEN_RATE:
            self._history.later(
                self._random.random() * self._random.choice((0.0, 10.0, 1000.0)), self._forget_mark, letter
            )

    def _forget_mark(self, letter: Letter) -> None:
        if letter.mark is not None and letter.mark != "unknown":
            self._history.note("its mark is forgotten:", letter.id)
            if letter.mark in ("handed_over", "quarantined"):
                self._reopen(letter)
            letter.mark = None
            self.announce()

    async def wait_for_arrival(self, timeout_s: float) -> bool:
        done, _ = await asyncio.wait([self._arrival], timeout=timeout_s)
        return bool(done)

    def write_letter(self, kind: Kind) -> None:
        content = f"{kind}-{self._history.next_number()}"
        self._put(content, kind, letter_text(content, kind, sender=content))
        if self._troubles:  # one of each: of two that fail alike nobody can tell that the server is well
            letter = next(reversed(self.letters.values()))
            trouble = self._troubles.pop()
            letter.withheld, letter.refused = trouble == "withheld", trouble == "refused"

    def _customer_answers(self, sender: str, message_id: str) -> None:
        content = f"{sender}-again-{self._history.next_number()}"
        text = "It is SN12345, thank you for asking."
        self._put(content, "valid", letter_text(content, "valid", sender, message_id, text), follow_up=True)

    def _robot_answers(self, sender: str, message_id: str) -> None:
        """It takes each of our replies for a mail to answer, and says so to nobody."""
        self._robot_mails += 1
        if self._robot_mails > _MAX_ROBOT_MAILS:
            self._history.violations.append("a robot is answered without end")
            return
        content = f"{sender}-again-{self._history.next_number()}"
        answers = self._random.choice((message_id, None))
        self._put(content, "robot", letter_text(content, "robot", sender, answers), follow_up=True)

    def _put(self, content: str, kind: Kind, raw: bytes, *, follow_up: bool = False) -> None:
        mail_id = f"mail-{self._history.next_number()}"
        self.letters[mail_id] = Letter(
            mail_id, content, kind, raw, EPOCH_S + self._history.loop.time(), follow_up=follow_up
        )
        self._history.note("arrives", mail_id, content)
        self.announce()

    def announce(self) -> None:
        arrival, self._arrival = self._arrival, self._history.loop.create_future()
        arrival.set_result(None)

    def any_letter(self) -> Letter | None:
        return self._random.choice(list(self.letters.values())) if self.letters else None

    def copy_letter(self) -> None:
        """The same mail comes a second time, over an alias, say."""
        if letter := self.any_letter():
            self._put(letter.content, letter.kind, letter.raw, follow_up=letter.follow_up)
            copy = next(reversed(self.letters.values()))
            copy.refused, copy.is_altered = letter.refused, letter.is_altered

    def alter_copy(self) -> None:
        """A gateway or a list marks the subject of a second copy."""
        if (letter := self.any_letter()) and not letter.is_altered:
            content = f"{letter.content}{ALTERED}"
            raw = letter.raw.replace(b"Subject: ", b"Subject: [EXTERNAL] ")
            self._put(content, letter.kind, raw, follow_up=letter.follow_up)
            copy = next(reversed(self.letters.values()))
            copy.refused = letter.refused
            for each in [*self.letters.values(), *self.deleted]:
                each.is_altered |= each.content in (letter.content, content)

    def outgrow_age(self) -> None:
        """It is older now than `agent.max_age_days`."""
        if (letter := self.any_letter()) and letter.mark is None and letter.taken_care_of_at is None:
            self._history.note("is too old:", letter.id)
            letter.is_too_old, letter.taken_care_of_at = True, self._history.loop.time()

    def take_care(self) -> None:
        """A person answers it, or flags it for later."""
        if (letter := self.any_letter()) and letter.mark is None and letter.taken_care_of_at is None:
            self._history.note("a person takes care of", letter.id)
            letter.taken_care_of_at = self._history.loop.time()

    def delete_letter(self) -> None:
        if letter := self.any_letter():
            self._history.note("a person deletes", letter.id)
            self.deleted.append(self.letters.pop(letter.id))

    def move_letter(self) -> None:
        """Out of the inbox and in again, its mark with it: it has another id now."""
        if letter := self.any_letter():
            del self.letters[letter.id]
            letter.earlier_ids += (letter.id,)
            letter.id = f"mail-{self._history.next_number()}"
            self.letters[letter.id] = letter
            self._history.note("is moved to", letter.id)
            self.announce()

    def remove_mark(self) -> None:
        """A person wants a parked mail to be tried again."""
        parked = [each for each in self.letters.values() if each.mark in ("handed_over", "quarantined")]
        if parked:
            letter = self._random.choice(parked)
            self._history.note("loses its mark", letter.id)
            self._reopen(letter)
            self.take_mark_off(letter)

    def take_mark_off(self, letter: Letter) -> None:
        letter.mark, letter.reopened = None, True
        self.announce()

    def _reopen(self, letter: Letter) -> None:
        letter.reopened = True
        self._history.people.handed_over.pop(reply_message_id(identity_of(letter.raw)), None)

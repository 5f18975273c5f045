"""What people sent is compared with what the agent drafted or would have sent, and nothing of either is kept."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agent_in_memory import AgentInMemory
from mailbox_in_memory import KEY, mail

from guarantee_email_agent.agent.identity_key import key_of_mailbox
from guarantee_email_agent.agent.startup import SentAnswers
from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.ledger.comparisons import AWAITED_S
from guarantee_email_agent.ledger.ledger_reader import LedgerReader

DAY_S = 86_400.0


class Desk:
    """An agent that drafts or observes one mail, and the Sent folder: when each mail was filed, and the mail."""

    def __init__(self, agent: AgentInMemory) -> None:
        self.agent = agent
        self.sent: list[tuple[float, bytes]] = []
        self.asked_since: list[float] = []
        self.answers = SentAnswers(self.list_sent, agent.ledger, key_of_mailbox(agent.worker.mailbox_name, KEY), KEY)

    async def list_sent(self, since: float, most_bytes: int, read: Callable[[bytes], Any]) -> list[Any]:
        self.asked_since.append(since)
        return [read(raw[:most_bytes]) for filed, raw in self.sent if filed >= since]

    def works(self, mode: Mode = "drafts", raw: bytes | None = None) -> str:
        self.agent.configure_policy(mode)
        self.agent.mailbox.mails["first"] = raw or mail("first")
        self.agent.work()
        return self.agent.mailbox.drafts[0].body if mode == "drafts" else ""

    def answered(self, text: str, more: str = "To: Customer@example.org\n", to: str = "first") -> None:
        head = f"From: desk@us.example\nDate: Sun, 18 Jan 2026 11:00:00 +0000\nIn-Reply-To: <{to}@example.org>\n{more}"
        self.sent.append((self.agent.now, f"{head}\n{text}\n\n> Is my dryer under warranty?\n".encode()))

    def found(self) -> list[tuple[str, int, float | None]]:
        asyncio.run(self.answers.look())
        with LedgerReader(str(self.agent.file)) as reader:
            return [(each.comparison, each.mails, each.alike_percent) for each in reader.comparisons()]


@pytest.fixture
def desk(agent: AgentInMemory) -> Iterator[Desk]:
    desk = Desk(agent)
    yield desk
    content = b"".join(file.read_bytes() for file in agent.file.parent.glob("ledger.db*"))
    assert [word for word in (b"warranty is", b"SN12345", b"dryer", b"first@") if word in content] == []


@pytest.mark.parametrize(
    ("person", "comparison"),
    [
        (lambda draft: draft.replace("[ticket number]", "TICKET-7"), "as_it_was"),
        (lambda draft: draft.replace("[ticket number]", "TICKET-7").replace("valid", "valid again"), "edited"),
        (lambda draft: draft.replace("2027", "2028"), "edited"),
        (lambda _: "Please call us, we have questions.", "another"),
        (lambda _: "", "unknown"),
    ],
)
def test_a_draft_is_compared_with_what_a_person_sent(desk: Desk, person: Callable[[str], str], comparison: str) -> None:
    draft = desk.works()
    assert desk.found() == [("not_answered", 1, None)]
    desk.answered("A day late", to="other")
    desk.answered(person(draft))
    desk.agent.now += 60
    ((found, mails, percent),) = desk.found()
    assert (found, mails) == (comparison, 1)
    assert (percent is None, percent == 100) == (comparison == "unknown", comparison == "as_it_was")
    desk.answered("A second answer")
    assert desk.found() == [(found, mails, percent)]


def test_what_was_observed_is_compared_too_and_what_a_machine_sent_is_no_answer(desk: Desk) -> None:
    desk.works("observe")
    desk.answered("Thank you for your message", "To: customer@example.org\nAuto-Submitted: auto-replied\n")
    assert desk.found() == [("not_answered", 1, None)]
    desk.answered("It is under warranty until then")
    assert [comparison for comparison, *_ in desk.found()] == ["another"]


def test_a_question_to_a_colleague_is_no_answer(desk: Desk) -> None:
    draft = desk.works()
    desk.answered("Can you help?", "To: colleague@us.example\n")
    assert desk.found() == [("unknown", 1, None)]  # who else answered, nobody can tell
    desk.answered(draft.replace("[ticket number]", "7"))
    assert desk.found() == [("as_it_was", 1, 100.0)]


def test_what_nobody_can_tell_is_unknown(desk: Desk) -> None:
    desk.works()
    with LedgerReader(str(desk.agent.file)) as reader:
        assert [each.comparison for each in reader.comparisons()] == ["unknown"]  # nobody has looked
    desk.sent.append((desk.agent.now, b""))
    assert desk.found() == [("unknown", 1, None)]  # what cannot be read may be the answer
    desk.agent.now += DAY_S
    assert desk.found() == [("unknown", 1, None)]
    assert desk.asked_since[1] > desk.asked_since[0] + 12 * DAY_S  # not all of it again


def test_a_mail_without_an_id_cannot_be_answered_by_it(desk: Desk) -> None:
    desk.works(raw=mail("first").replace(b"Message-ID: <first@example.org>\r\n", b""))
    assert desk.found() == [("unknown", 1, None)]


def test_an_answer_that_was_read_before_the_agent_came_to_the_mail_is_found(desk: Desk) -> None:
    desk.works()
    desk.answered("Call us please, thank you", to="other")
    desk.found()
    desk.agent.now += 2 * DAY_S
    desk.agent.mailbox.mails["other"] = mail("other")
    desk.agent.work("other")
    assert {comparison for comparison, *_ in desk.found()} == {"another", "not_answered"}


def test_an_answer_is_waited_for_no_longer_than_two_weeks(desk: Desk) -> None:
    draft = desk.works()
    desk.found()
    desk.agent.now += AWAITED_S + 1
    desk.answered(draft)
    assert desk.found() == [("not_answered", 1, None)]

"""What people sent beside what the agent wrote, on either database."""

from ledgers import LEASE_S, LOCATION, MAIL

from guarantee_email_agent.ledger.comparisons import AwaitedAnswer, ComparisonCount
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.services.ports import WrittenReply

MAILBOX, OTHER, THIRD, MESSAGE = "c3" * 16, "d4" * 16, "e5" * 16, "f6" * 16


def finish(ledger: Ledger, mail: str, written: WrittenReply | None) -> None:
    claim = ledger.claim(mail, location_key=mail, owner="one:1", lease_s=LEASE_S, mailbox_key=MAILBOX)
    assert isinstance(claim, Claim)
    ledger.intend_send(claim, "<reply@example.com>", delivery="draft")
    ledger.finish(claim, "drafted", "valid-warranty", written)


def test_an_answer_is_awaited_until_it_was_compared(ledger: Ledger, ledger_location: str) -> None:
    finish(ledger, MAIL, WrittenReply(MESSAGE, "00ff----"))
    finish(ledger, OTHER, WrittenReply(None, None))
    finish(ledger, THIRD, None)
    assert ledger.comparisons.awaited(LOCATION) == []  # of another mailbox
    assert ledger.comparisons.awaited(MAILBOX) == [AwaitedAnswer(MAIL, MESSAGE, "00ff----")]
    with LedgerReader(ledger_location) as reader:
        assert reader.comparisons() == [ComparisonCount("drafted", "unknown", 3, None)]
        ledger.comparisons.not_answered(MAIL)
        assert ComparisonCount("drafted", "not_answered", 1, None) in reader.comparisons()
        ledger.comparisons.save(MAIL, "edited", 97)
        ledger.comparisons.save(MAIL, "another", 3)  # the first counts
        ledger.comparisons.not_answered(MAIL)
        assert reader.comparisons() == [
            ComparisonCount("drafted", "unknown", 2, None),
            ComparisonCount("drafted", "edited", 1, 97.0),
        ]
    assert ledger.comparisons.awaited(MAILBOX) == []

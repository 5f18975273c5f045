"""What the tests of the ledger share: a mail and its claim, and every write under a claim."""

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.mail_state import Done, MailState
from guarantee_email_agent.services.ports import Admission

KEY = b"k" * 32
MAIL = "a1" * 16
LOCATION = "b2" * 16
REPLY = f"<reply-{MAIL}@example.com>"
LEASE_S = 180.0
RETRY_S = 30.0

WRITES = {
    "intend_ticket": lambda ledger, claim: ledger.intend_ticket(claim, "mail-1"),
    "ticket_created": lambda ledger, claim: ledger.ticket_created(claim, "TICKET-1"),
    "admit": lambda ledger, claim: ledger.admit(claim, Admission(claim.mail_key), ReplyLimits()),
    "intend_send": lambda ledger, claim: ledger.intend_send(claim, REPLY),
    "intend_draft": lambda ledger, claim: ledger.intend_send(claim, REPLY, delivery="draft"),
    "not_sent": lambda ledger, claim: ledger.not_sent(claim),
    "failed": lambda ledger, claim: ledger.release(claim, count_attempt=True, retry_after_s=RETRY_S),
    "outage": lambda ledger, claim: ledger.release(claim, count_attempt=False, retry_after_s=0),
    "answered": lambda ledger, claim: ledger.finish(claim, "answered"),
    "drafted": lambda ledger, claim: ledger.finish(claim, "drafted"),
    "handed_over": lambda ledger, claim: ledger.finish(claim, "handed_over"),
    "observed": lambda ledger, claim: ledger.finish(claim, "observed"),
    "not_answered": lambda ledger, claim: ledger.finish(claim, "not_answered"),
    "quarantined": lambda ledger, claim: ledger.finish(claim, "quarantined"),
    "unknown": lambda ledger, claim: ledger.finish(claim, "unknown"),
}


def claimed(ledger: Ledger, owner: str = "one:1", mail: str = MAIL, location: str = LOCATION) -> Claim:
    claim = ledger.claim(mail, location_key=location, owner=owner, lease_s=LEASE_S)
    assert isinstance(claim, Claim)
    return claim


def claim_of_another(ledger: Ledger, location: str = LOCATION) -> Claim | MailState:
    return ledger.claim(MAIL, location_key=location, owner="two:2", lease_s=LEASE_S)


def mail(number: int) -> str:
    """The key of a mail."""
    return f"{number:032x}"


def reply_to(number: int) -> str:
    """The Message-ID of our reply to it."""
    return f"<reply-{mail(number)}@example.com>"


def claim_mail(ledger: Ledger, number: int) -> Claim:
    return claimed(ledger, mail=mail(number), location=mail(number))


def reopen(ledger: Ledger, location: str, *, listed_at: float) -> bool:
    """As an agent does that has just read the mail's state."""
    state = ledger.state(location)
    return ledger.reopen(location, fence=state.fence if isinstance(state, Done) else 0, listed_at=listed_at)

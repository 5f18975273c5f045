"""Whether a scenario's raw mail is read as the scenario says: its keys tell a person, and the checks, what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from guarantee_email_agent.email.conversation import answered_message_ids
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.checks import format_value
from guarantee_email_agent.eval.models import EvalEmail, PreviousReply
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.addresses import parse_address
from guarantee_email_agent.utils.errors import ProcessingError
from guarantee_email_agent.utils.text import normalize_text


def check_raw_file(email: EvalEmail, previous: PreviousReply | None = None) -> Iterator[Check]:
    """Every key of `input.email` that the raw mail is read as something else than, and a reply that it does not answer.

    Lines of the body count, since labels and quotations go by them; blanks and empty lines do not.

    email: with `raw`. previous: of the scenario.
    """
    assert email.raw is not None
    try:
        parsed = parse_email(email.raw)
    except ProcessingError as error:
        yield Check("raw_file", f"{email.raw_file} cannot be read: {error.message}")
        return
    for name, (expected, actual) in _compared(email, parsed).items():
        if expected != actual:
            reason = f"{name} of {email.raw_file} reads otherwise"
            yield Check("raw_file", reason, format_value(expected), format_value(actual))
    if previous is not None and previous.message_id not in (answered := answered_message_ids(parsed)):
        reason = f"{email.raw_file} does not answer previous_reply by In-Reply-To or References"
        yield Check("raw_file", reason, format_value(previous.message_id), format_value(" ".join(answered)))


def _compared(email: EvalEmail, parsed: Email) -> dict[str, tuple[str, str]]:
    """What the scenario says and what was read, by key."""
    return {
        "from": (parse_address(email.from_address) or "", parsed.sender),
        "subject": (_one_line(email.subject), _one_line(parsed.subject)),
        "received": (_moment(email.received), _moment(parsed.received)),
        "body": (_lines(email.body), _lines("".join(span.text for span in parsed.spans))),
        "attachments": (", ".join(email.attachments), ", ".join(parsed.attachments)),
    }


def _one_line(text: str) -> str:
    return " ".join(_lines(text).split())


def _lines(text: str) -> str:
    """As the parser leaves it: typographic signs count as plain ones."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in normalize_text(text).split("\n"))))


def _moment(written: str) -> str:
    """In UTC where a zone is told, so that one moment is the same in each; as it is where that is no date."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return moment.isoformat() if moment.tzinfo is None else moment.astimezone(UTC).isoformat()

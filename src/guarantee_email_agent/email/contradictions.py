"""Facts of the warranty system that cannot all be true: nobody is told them but a person."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.integrations.look_up_answer import LookUpAnswer
from guarantee_email_agent.integrations.written_date import possible_dates


def contradicts(
    answer: LookUpAnswer, look_up: LookUp, instructions: Instructions, today: date | None, grace_days: int
) -> bool:
    """Whether a warranty is `valid` though it ended more than `grace_days` ago, or `expired` before its end.

    A coverage that no instruction file knows counts the same: what it says is not known. today: when the mail came;
    None where nobody knows, and nothing can be compared.
    """
    if not look_up.is_of_warranties:
        return False
    words = {fact.name: instructions.words_of(fact) for fact in look_up.facts if fact.form == "word"}
    if any(name in answer.facts and answer.facts[name] not in known for name, known in words.items()):
        return True
    written = answer.facts.get("expiration_date")
    if written is None or today is None or answer.status not in look_up.statuses:
        return False
    ends = list(possible_dates(written))
    if answer.status == "valid":
        return any(today > end + timedelta(days=grace_days) for end in ends)
    return any(today <= end for end in ends)


def day_of_mail(received: str, arrived_at: float | None) -> date | None:
    """The day on which a mail came: by its own date (ISO 8601), else when the mailbox took it (seconds since 1970)."""
    try:
        return date.fromisoformat(received[:10])
    except ValueError:
        return None if arrived_at is None else datetime.fromtimestamp(arrived_at, UTC).date()

"""Facts of the warranty system that cannot all be true: nobody is told them but a person."""

from __future__ import annotations

from datetime import date, timedelta

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.integrations.look_up_answer import LookUpAnswer
from guarantee_email_agent.integrations.written_date import possible_dates


def contradicts(
    answer: LookUpAnswer, look_up: LookUp, instructions: Instructions, received: str, grace_days: int
) -> bool:
    """Whether a warranty is `valid` though it ended more than `grace_days` ago, or `expired` before its end.

    A coverage that no instruction file knows, and a date that cannot be compared with the mail's, count the same: what
    they say is not known. received: the mail's date, ISO 8601.
    """
    if not look_up.is_of_warranties:
        return False
    words = {fact.name: instructions.words_of(fact) for fact in look_up.facts if fact.form == "word"}
    if any(name in answer.facts and answer.facts[name] not in known for name, known in words.items()):
        return True
    if (written := answer.facts.get("expiration_date")) is None or answer.status not in look_up.statuses:
        return False
    try:
        today = date.fromisoformat(received[:10])
    except ValueError:
        return True
    ends = list(possible_dates(written))
    if answer.status == "valid":
        return any(today > end + timedelta(days=grace_days) for end in ends)
    return any(today <= end for end in ends)

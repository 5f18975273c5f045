"""An earlier reply of ours, by the command line or by the ledger, so that a follow-up can be tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from guarantee_email_agent.email.conversation import answered_message_ids
from guarantee_email_agent.email.hand_over import scenario_code
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.eval.models import PreviousReply
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.services.ports import TICKET_ID, Thread
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable, truncate

UNKNOWN_SCENARIO: Final = "proved"
"""What `previous_reply` says where nobody knows which scenario it was of; the ledger calls it so, too."""

MADE_UP_ID: Final = "<our-reply@example.com>"
"""Of the reply that a mail answers without naming one."""


def with_previous_reply(
    text: str | None, email: Email, scenarios: Iterable[ScenarioInstruction]
) -> tuple[PreviousReply | None, Email]:
    """The reply that `SCENARIO` or `SCENARIO:TICKET` tells of, and the mail as one that answers it.

    A mail that names none in In-Reply-To or References gets such a header. Raises ConfigurationError(
    code="cli_bad_usage") for a scenario that sends no reply, and for what is no ticket number.
    """
    if text is None:
        return None, email
    scenario, colon, ticket = text.partition(":")
    names = [each.name for each in scenarios if each.languages]
    if scenario not in names:
        shown = printable(truncate(scenario, 60))
        listed = suggestion(scenario, names) or f"; those that do are {', '.join(names)}"
        raise ConfigurationError(f"--previous-reply: no scenario {shown!r} sends a reply{listed}", "cli_bad_usage")
    if colon and not TICKET_ID.fullmatch(ticket):
        shown = printable(truncate(ticket, 60))
        raise ConfigurationError(
            f"--previous-reply: {shown!r} is no ticket number. Write it as {scenario}:WEB-00017, or leave it out",
            "cli_bad_usage",
        )
    answered = answered_message_ids(email)
    if not answered:
        email = replace(email, headers={**email.headers, "in-reply-to": (MADE_UP_ID,)})
    message_id = answered[-1] if answered else MADE_UP_ID
    return PreviousReply(message_id=message_id, scenario=scenario, ticket_id=ticket or None), email


def reply_of_thread(thread: Thread | None, scenarios: Iterable[ScenarioInstruction]) -> PreviousReply | None:
    """The reply that the ledger knows. Of an instruction that is gone, the agent knows no more than that it wrote."""
    if thread is None:
        return None
    code = scenario_code(thread.scenario)
    name = next((each.name for each in scenarios if scenario_code(each.name) == code), UNKNOWN_SCENARIO)
    return PreviousReply(thread.reply_message_id, name, thread.ticket_id, follow_ups=thread.follow_ups)

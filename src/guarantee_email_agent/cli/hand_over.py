"""`hand-over`: leave a mail to a person."""

from __future__ import annotations

from guarantee_email_agent.cli.arguments import Commands
from guarantee_email_agent.cli.steering import add_steering_command


def add_hand_over(commands: Commands) -> None:
    add_steering_command(
        commands,
        "hand-over",
        "leave a mail to a person: no agent answers it from then on",
        "Leave a mail to a person, and mark it so in the mailbox. An agent that is working on it stops, unless its "
        "reply is about to leave or has left.",
    )

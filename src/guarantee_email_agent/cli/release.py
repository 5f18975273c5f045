"""`release`: give a mail back to the agents."""

from __future__ import annotations

from guarantee_email_agent.cli.arguments import Commands
from guarantee_email_agent.cli.steering import add_steering_command


def add_release(commands: Commands) -> None:
    add_steering_command(
        commands,
        "release",
        "give a mail back to the agents: one that waits, that a killed agent holds, or that is left to a person",
        "Let the agents work on a mail now: its wait, the claim of an agent that runs no more, or its parking for a "
        "person ends, and in the mailbox its mark. A mail whose reply may have left is answered only once it is proved "
        "that it did not.",
    )

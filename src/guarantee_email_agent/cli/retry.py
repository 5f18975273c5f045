"""`retry`: try a mail again that failed."""

from __future__ import annotations

from guarantee_email_agent.cli.arguments import Commands
from guarantee_email_agent.cli.steering import add_steering_command


def add_retry(commands: Commands) -> None:
    add_steering_command(
        commands,
        "retry",
        "try a mail again that failed, now and with all its tries",
        "Try a mail again that waits for its next try, or ran out of them and is quarantined: now, and as if it had "
        "never been tried.",
    )

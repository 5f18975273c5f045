"""`release` and `hand-over`: what a person does to one mail. Agents that run see to its mark in the mailbox."""

from __future__ import annotations

from contextlib import closing
from typing import Literal

from guarantee_email_agent.agent.identity_key import identity_key
from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.agent.status import agent_state, find_mail
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.utils.terminal import Terminal

Action = Literal["release", "hand-over"]


def steer(config: Config, action: Action, name: str, terminal: Terminal) -> None:
    """Do it, and say so. name: of the mail, as `log` shows it or as the mailbox calls it.

    Raises RefusedError where the mail's state does not allow it, ConfigurationError for an id that fits no mail or
    several, LedgerError where the ledger cannot be written.
    """
    with LedgerReader(config.ledger_location) as reader:
        row = find_mail(reader, config, name)
        now = reader.now()
        is_watched = any(agent_state(agent, now) == "running" for agent in reader.agents())
    with closing(open_ledger(config.ledger_location, key=identity_key(config))) as ledger:
        if action == "hand-over":
            is_new = ledger.interventions.hand_over(row.mail_key)
            done = "is with a person now; no agent answers it" if is_new else "was with a person before"
            terminal.outcome(f"✓ Mail {row.short_key} {done}. An agent that runs sets its mark; an older one stays")
            return
        ledger.interventions.release(row.mail_key, has_ended)
    when = f"within {config.agent.poll_interval_s:g} s" if is_watched else "once one runs: none does now"
    told = "is given back to the agents, with all its tries. One takes its mark off and looks at it"
    terminal.outcome(f"✓ Mail {row.short_key} {told} {when}")

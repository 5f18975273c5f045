"""`release` and `hand-over`: what a person does to one mail. Agents that run see to its mark in the mailbox."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Final, Literal

from guarantee_email_agent.agent.identity_key import identity_key, key_of_location, mailbox_name
from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.agent.status import agent_state
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.ledger_reader import LedgerReader, LedgerRow, NoSuchMailError
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal
from guarantee_email_agent.utils.text import printable, truncate

Action = Literal["release", "hand-over"]

MIN_ID: Final = 4
_KEY: Final = re.compile(rf"[0-9a-f]{{{MIN_ID},32}}")


def steer(config: Config, action: Action, name: str, terminal: Terminal) -> None:
    """Do it, and say so. name: of the mail, as `log` shows it or as the mailbox calls it.

    Raises RefusedError where the mail's state does not allow it, ConfigurationError for an id that fits no mail or
    several, LedgerError where the ledger cannot be written.
    """
    with LedgerReader(config.ledger_location) as reader:
        row = _find_mail(reader, config, name)
        now = reader.now()
        is_watched = any(agent_state(agent, now) == "running" for agent in reader.agents())
    with closing(open_ledger(config.ledger_location, key=identity_key(config))) as ledger:
        if action == "hand-over":
            is_new = ledger.interventions.hand_over(row.mail_key)
            done = "is with a person now; no agent answers it" if is_new else "was with a person before"
            terminal.outcome(f"✓ Mail {row.short_key} {done}. An agent that runs sets its mark; an older one stays")
            return
        ledger.interventions.release(row.mail_key, has_ended, is_paid=config.llm.provider != "offline")
    when = f"within {config.agent.poll_interval_s:g} s" if is_watched else "once one runs: none does now"
    told = "is given back to the agents, with all its tries. One takes its mark off and looks at it"
    terminal.outcome(f"✓ Mail {row.short_key} {told} {when}")


def _find_mail(reader: LedgerReader, config: Config, name: str) -> LedgerRow:
    """name: the beginning of a mail's key, or its id in the mailbox, which may have the form of a key.

    Raises NoSuchMailError, and ConfigurationError where the key is needed, which is another one than the agents'.
    """
    lowered = name.strip().lower()
    is_key = _KEY.fullmatch(lowered) is not None
    try:
        if lowered and (row := _find_by_id(reader, config, name)) is not None:
            return row
    except ConfigurationError:
        if not is_key:
            raise
    if is_key:
        return reader.find(lowered)
    shown = printable(truncate(name, 60))
    hint = "" if not re.fullmatch(r"[0-9a-f]{1,3}", lowered) else f" An id has {MIN_ID} digits at least."
    raise NoSuchMailError(f"The ledger has no mail {shown}.{hint} 'log' and 'status' list them", "ledger_no_mail")


def _find_by_id(reader: LedgerReader, config: Config, mail_id: str) -> LedgerRow | None:
    """As the agent's log names it. Raises ConfigurationError without the agents' key, by which alone it is found."""
    key = identity_key(config)
    reader.require_key(key)
    for each in dict.fromkeys((mail_id, mail_id.strip())):
        if (row := reader.at(key_of_location(mailbox_name(config), each, key))) is not None:
            return row
    return None

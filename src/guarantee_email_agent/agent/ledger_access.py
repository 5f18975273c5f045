"""How the commands that look at a running agent find its ledger, its mails by an id, and the agents that run."""

from __future__ import annotations

import re
from typing import Final, Literal

from guarantee_email_agent.agent.identity_key import identity_key, key_of_location, mailbox_name
from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.agents import ReportedOutage, RunningAgent
from guarantee_email_agent.ledger.ledger_reader import LedgerReader, LedgerRow, NoSuchMailError
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable, truncate

MIN_ID: Final = 4
SILENT_S: Final = 60.0
"""After so many seconds without a sign of life an agent may be gone."""

GONE_S: Final = 900.0
"""After so many seconds an agent that is silent is no problem, if another one runs: a container was replaced."""

AgentState = Literal["running", "silent", "killed"]

_KEY: Final = re.compile(rf"[0-9a-f]{{{MIN_ID},32}}")


def find_mail(reader: LedgerReader, config: Config, name: str) -> LedgerRow:
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


def current_outages(agent: RunningAgent, now: float) -> tuple[ReportedOutage, ...]:
    """What an agent finds down now: one that does not run any more knows nothing of now."""
    return agent.outages if agent_state(agent, now) == "running" else ()


def agent_state(agent: RunningAgent, now: float) -> AgentState:
    """now: seconds since 1970 on the ledger's clock."""
    if has_ended(agent.owner):
        return "killed"
    return "silent" if now - agent.seen_at > SILENT_S else "running"

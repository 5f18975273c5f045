"""`release` and `hand-over`: what a person does to one mail, in the ledger and by its mark in the mailbox.

The ledger comes first, since it keeps the agents away while the mark is taken off; what is cut short in between
can be repeated. An agent that runs sees the change at its next look at the inbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from typing import Final, Literal

from guarantee_email_agent.agent.identity_key import identity_key, key_of_location, mailbox_name
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.agent.process_identity import has_ended, process_name
from guarantee_email_agent.agent.status import agent_state, find_mail
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.interventions import SHORT_KEY, HeldMail, RefusedError, short_owner
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.clients import MailClient
from guarantee_email_agent.services.services import create_mail_client
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import AgentError, IntegrationError
from guarantee_email_agent.utils.terminal import Terminal
from guarantee_email_agent.utils.text import printable

logger = logging.getLogger(__name__)

Action = Literal["release", "hand-over"]

HOLD_S: Final = 120.0
"""How long a mail whose mark is being taken off is kept from the agents at most."""

SETTLE_S: Final = 30.0
"""Seconds after which a call that was cut short has had its effect, or never will."""


def steer(config: Config, action: Action, name: str, terminal: Terminal) -> None:
    """Do it, and say so. name: of the mail, as `log` shows it or as the mailbox calls it.

    Raises RefusedError where the mail's state does not allow it, ConfigurationError for an id that fits no mail or
    several, LedgerError where the ledger cannot be written, MCPConnectionError and IntegrationError where the mailbox
    is needed and cannot be used.
    """
    with LedgerReader(config.ledger_location) as reader:
        row = find_mail(reader, config, name)
        now = reader.now()
        is_watched = any(agent_state(agent, now) == "running" for agent in reader.agents())
    key = identity_key(config)
    with closing(open_ledger(config.ledger_location, key=key)) as ledger:
        if action == "hand-over":
            is_new = ledger.interventions.hand_over(row.mail_key)
            done = "is with a person now; no agent answers it" if is_new else "was with a person before"
            terminal.outcome(f"✓ Mail {row.short_key} {done}. An agent that runs sets its mark; an older one stays")
            return
        # By a name that does not tell when the command has ended: what it asked the mailbox for may still come then.
        held = ledger.interventions.release(row.mail_key, short_owner(process_name()), HOLD_S, has_ended)
        problem = asyncio.run(_take_mark_off(config, key, ledger, held))
    when = f"within {config.agent.poll_interval_s:g} s" if is_watched else "once one runs: none does now"
    terminal.outcome(f"✓ Mail {row.short_key} is given back to the agents, with all its tries; they look at it {when}")
    if problem is not None:
        terminal.line(f"    {problem}")


async def _take_mark_off(config: Config, key: bytes, ledger: Ledger, held: HeldMail) -> str | None:
    """However it ends, the ledger and the mailbox agree, or another `release` makes them.

    What could not be seen of a mail that was open, and so need not bear a mark.
    """
    tried, was_open = False, held.outcome is None
    freed = replace(held, reason="") if held.reason == NOT_WAITING else held
    try:
        async with _within(HOLD_S - SETTLE_S), AsyncExitStack() as stack:
            mailbox = await _connect(config, key, stack)
            found = await _mails_at(mailbox, config, key, held.location_keys)
            if not found and not was_open:
                raise RefusedError(
                    f"Mail {held.mail_key[:SHORT_KEY]} is no longer in the inbox. Put it back there first",
                    "mail_not_in_inbox",
                )
            for mail_id in found:
                tried = True
                await mailbox.unmark(mail_id)
    except BaseException as error:
        if not tried and was_open and isinstance(error, AgentError):
            ledger.interventions.give_back(freed, unmarked=False)
            return f"Whether it bears a mark could not be seen: {_first_line(error)}"
        if not tried:
            ledger.interventions.put_back(held)
            raise
        # The call may have had its effect. So the mail is open, and one that was unknown keeps what it has to prove.
        ledger.interventions.give_back_later(held, SETTLE_S)
        if isinstance(error, AgentError):
            error.message += (
                f". Mail {held.mail_key[:SHORT_KEY]} may bear its mark still: release it once more in {SETTLE_S:.0f} s"
            )
        raise
    if not ledger.interventions.give_back(freed):
        told = f"It took too long to take the mark off mail {held.mail_key[:SHORT_KEY]}; an agent has it now"
        raise RefusedError(told, "ledger_hold_lost")
    return None


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """Raises IntegrationError where the time is over: one call alone may take longer, by the settings."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise IntegrationError(f"The mailbox took longer than {seconds:g} s", "mail_timeout") from None


async def _connect(config: Config, key: bytes, stack: AsyncExitStack) -> MailClient:
    """As an agent that may set marks, whatever the mode."""
    allowed = replace(config, agent=replace(config.agent, mode="answer"))
    mailbox = create_mail_client(allowed, SystemClock(), key)
    stack.push_async_callback(mailbox.close)
    stack.push(_tell_of_waiting)
    return mailbox


def _tell_of_waiting(kind: type[BaseException] | None, *_: object) -> None:
    """Before the mailbox is closed, which waits for its call in progress."""
    if kind is asyncio.CancelledError:
        logger.warning("Waiting for the mail server to end its call; Ctrl-C ends it at once")


async def _mails_at(mailbox: MailClient, config: Config, key: bytes, location_keys: Collection[str]) -> dict[str, str]:
    """The location key of each mail that lies at one of these locations, by its id in the mailbox."""
    name = mailbox_name(config)
    located = {mail.id: key_of_location(name, mail.id, key) for mail in await mailbox.list_mails()}
    return {mail_id: location for mail_id, location in located.items() if location in location_keys}


def _first_line(error: AgentError) -> str:
    return printable(error.message.splitlines()[0] if error.message else error.code)

"""`log`: what became of mails, one a line or summed up; subjects and senders from the mailbox, on demand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from guarantee_email_agent.agent.identity_key import identity_key, key_of_location, mailbox_name
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.agent.status import agent_state, read_status
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.interventions import short_owner
from guarantee_email_agent.ledger.ledger_reader import LedgerReader, LedgerRow
from guarantee_email_agent.services.ports import OUTCOMES, PARKED
from guarantee_email_agent.utils.clock import LocalTime, SystemClock
from guarantee_email_agent.utils.errors import IntegrationError, ProcessingError
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import amount, duration, printable, truncate

MAX_READ_BYTES: Final = 2_000_000
_MAX_SHOWN_CHARS: Final = 100
MAX_MAILS: Final = 100_000
"""Of a summary, of which the cost is added up."""

_HEADERS_END: Final = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class Heading:
    """What a customer wrote above a mail, to be shown and never kept. problem: why neither is known."""

    sender: str = ""
    subject: str = ""
    problem: str = ""


Headings: TypeAlias = Mapping[str, Heading]
"""By mail key."""


def print_log(
    rows: Iterable[LedgerRow],
    headings: Headings | None,
    clock: LocalTime,
    now: float,
    terminal: Terminal,
) -> None:
    """now: seconds since 1970, to name the zone by."""
    terminal.line(f"Times are {clock.zone_at(now)}")
    for row in rows:
        took = row.worked_s
        worked = "" if took is None else f"  {took * 1000:.0f} ms" if took < 1 else f"  {duration(took)}"
        cost = f"  {amount(row.cost_usd)} USD" if row.cost_usd else ""
        if row.worked_s is not None and row.cost_usd is None:
            cost = "  cost not known"
        ticket = f"  {printable(row.ticket_id)}" if row.ticket_id else ""
        outcome = str(row.outcome).replace("_", " ")
        terminal.line(
            f"{clock.text(row.changed_at)}  {row.short_key}  {outcome:<12}  {row.reason or '-'}{ticket}{worked}{cost}"
        )
        if headings is not None:
            terminal.line(f"    {_shown(headings[row.mail_key])}")


def log_report(rows: Iterable[LedgerRow], headings: Headings | None) -> list[dict[str, Any]]:
    """The same as JSON: times in seconds since 1970. The oldest first, as `print_log` has them."""
    return [asdict(row) | ({} if headings is None else asdict(headings[row.mail_key])) for row in rows]


def summary_lines(reader: LedgerReader, begin: float, end: float, clock: LocalTime) -> Iterator[str]:
    """What was done in [begin, end), in seconds since 1970, and what waits now: it holds nothing a customer wrote.

    Raises LedgerError.
    """
    counts = reader.counts(begin, end)
    rows = reader.outcomes(OUTCOMES, since=begin, until=end, limit=MAX_MAILS)
    yield f"From {clock.text(begin)} to {clock.text(end)} ({clock.zone_at(end)})."
    yield ""
    for outcome in OUTCOMES:
        group = [count for count in counts if count.outcome == outcome]
        yield f"{outcome.replace('_', ' ').capitalize()}: {sum(count.mails for count in group)}"
        if outcome in PARKED:
            yield from (f"    {count.reason or 'no reason'}: {count.mails}" for count in group)
    costs = [row.cost_usd for row in rows]
    not_read = max(0, sum(count.mails for count in counts) - len(rows))
    paid, unknown = sum(filter(None, costs)), costs.count(None) + not_read
    without = f", without {pluralize(unknown, 'mail')} whose cost is not known" if unknown else ""
    yield ""
    yield f"Language model, for these: {f'{amount(paid)} USD' if paid or unknown else 'no cost'}{without}"
    status = read_status(reader)
    running = [agent for agent in status.agents if agent_state(agent, status.now) == "running"]
    outages = [(agent, outage) for agent in running for outage in agent.outages]
    yield f"Down now:{'' if outages else ' nothing' if running else ' not known, since no agent runs'}"
    yield from (
        f"    {outage.service} since {clock.text(outage.since)} ({outage.code}; {short_owner(agent.owner)})"
        for agent, outage in outages
    )
    unfinished = [row for row in reader.unfinished(MAX_MAILS) if row.reason != NOT_WAITING]  # that one is with people
    ages_s = [status.now - row.created_at for row in unfinished]
    seen = f", the oldest first seen {duration(max(ages_s))} ago" if ages_s else ""
    yield f"Unfinished now: {len(unfinished)}{seen}"
    for agent in running:
        waiting = "not known" if agent.waiting is None else agent.waiting
        yield f"Waiting in the inbox, as {short_owner(agent.owner)} saw it last: {waiting}"
    yield "Too old: not counted yet" if status.too_old is None else f"Too old, left alone: {status.too_old}"
    yield f"Left to a person after a failure, of all days: {status.failed_count}"


def read_headings(config: Config, reader: LedgerReader, rows: Iterable[LedgerRow]) -> Headings:
    """Sender and subject of each mail, read from the mailbox now.

    Raises ConfigurationError and MCPConnectionError where the mailbox cannot be reached, IntegrationError where it
    cannot list its mails, and ConfigurationError for another key than the agents'.
    """
    reader.require_key(identity_key(config))
    keys = {row.mail_key for row in rows}
    return asyncio.run(_read_headings(config, keys, reader.places(keys))) if keys else {}


async def _read_headings(config: Config, keys: set[str], places: Mapping[str, str]) -> Headings:
    from guarantee_email_agent.services.services import create_mail_client

    key, name = identity_key(config), mailbox_name(config)
    found = {each: Heading(problem="no longer in the inbox") for each in keys}
    only_reading = replace(config, agent=replace(config.agent, mode="observe"))
    async with AsyncExitStack() as stack:
        mailbox = create_mail_client(only_reading, SystemClock(), key)
        stack.push_async_callback(mailbox.close)
        for mail in await mailbox.list_mails():
            mail_key = places.get(key_of_location(name, mail.id, key))
            if mail_key is None:
                continue
            try:
                raw = await mailbox.read_raw(mail.id, MAX_READ_BYTES)
            except IntegrationError as error:
                if not error.code.endswith(("_not_found", "_too_large", "_unreadable")):
                    raise
                found[mail_key] = Heading(problem=error.code)
            else:
                found[mail_key] = _heading(raw)
    return found


def _heading(raw: bytes) -> Heading:
    from guarantee_email_agent.email.parsing.parse import parse_email

    end = _HEADERS_END.search(raw)
    headers = raw[: end.end()] if end else raw
    try:
        try:
            email = parse_email(headers)
        except ProcessingError as error:
            if error.code != "email_missing_sender":
                raise
            email = parse_email(b"From: <>\r\n" + headers)
    except ProcessingError as error:
        return Heading(problem=error.code)
    return Heading(email.sender, email.subject)


def _shown(heading: Heading) -> str:
    if heading.problem:
        return f"({printable(heading.problem)})"
    sender, subject = (printable(truncate(text, _MAX_SHOWN_CHARS)) for text in (heading.sender, heading.subject))
    return f"{sender or '(no sender)'}: {subject or '(no subject)'}"

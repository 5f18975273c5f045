"""Outages as people look back at them, in the daily summary and in `log --outages`: one a line, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from guarantee_email_agent.ledger.outages import SILENT_S, RecordedOutage
from guarantee_email_agent.reporting.terminal import Terminal, pluralize
from guarantee_email_agent.utils.local_time import LocalTime, duration

SHORT_S: Final = 60.0
"""Outages that were over so soon are only counted in a summary."""

MAX_LINES: Final = 50


def outage_line(outage: RecordedOutage, clock: LocalTime, now: float) -> str:
    """now: seconds since 1970 on the ledger's clock."""
    begin = clock.text(outage.began_at)
    if outage.ended_at is not None:
        told = f"{begin} to {clock.text(outage.ended_at)} ({duration(outage.ended_at - outage.began_at)})"
    elif now - outage.seen_at <= SILENT_S:
        told = f"since {begin} ({duration(now - outage.began_at)})"
    else:  # no agent runs that would know
        told = f"since {begin}, last seen down {clock.text(outage.seen_at)}"
    waited = f", {pluralize(outage.waiting, 'mail')} waited at most" if outage.waiting else ""
    return f"{outage.service}: {told}{waited} ({outage.code})"


def summary_lines(outages: Sequence[RecordedOutage], clock: LocalTime, now: float) -> Iterator[str]:
    """Of one day; those that were over within a minute are counted."""
    long = [each for each in outages if each.ended_at is None or each.ended_at - each.began_at >= SHORT_S]
    yield f"Outages: {'none' if not outages else ''}".rstrip()
    yield from (f"    {outage_line(outage, clock, now)}" for outage in long[:MAX_LINES])
    if len(long) > MAX_LINES:
        yield f"    and {len(long) - MAX_LINES} more: log --outages"
    if len(long) < len(outages):
        yield f"    shorter than a minute: {len(outages) - len(long)}"


def print_outages(outages: Iterable[RecordedOutage], clock: LocalTime, now: float, terminal: Terminal) -> None:
    terminal.line(f"Times are {clock.zone_at(now)}")
    for outage in outages:
        terminal.line(outage_line(outage, clock, now))


def outages_report(outages: Iterable[RecordedOutage], clock: LocalTime) -> list[dict[str, Any]]:
    """The same as JSON."""

    def moment(seconds: float) -> str:
        return clock.at(seconds).isoformat(timespec="seconds")

    return [
        {
            "service": outage.service,
            "code": outage.code,
            "began": moment(outage.began_at),
            "ended": None if outage.ended_at is None else moment(outage.ended_at),
            "last_seen_down": moment(outage.seen_at if outage.ended_at is None else outage.ended_at),
            "most_mails_waiting": outage.waiting,
        }
        for outage in outages
    ]

"""`status`: which agents run, what waits, what failed, and since when, as the ledger has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, Literal

from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.agent.process_identity import has_ended
from guarantee_email_agent.ledger.agents import ReportedOutage, RunningAgent
from guarantee_email_agent.ledger.comparisons import ComparisonCount
from guarantee_email_agent.ledger.interventions import short_owner
from guarantee_email_agent.ledger.ledger_reader import LedgerCount, LedgerReader, LedgerRow
from guarantee_email_agent.ledger.mail_state import left_s
from guarantee_email_agent.services.ports import PARKED, Comparison
from guarantee_email_agent.utils.clock import LocalTime
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import duration, printable

SILENT_S: Final = 60.0
"""After so many seconds without a sign of life, or before one that the clock has yet to come to, it may be gone."""

GONE_S: Final = 900.0
"""After so many seconds an agent that is silent is no problem, if another one runs: a container was replaced."""

AgentState = Literal["running", "silent", "killed"]


def current_outages(agent: RunningAgent, now: float) -> tuple[ReportedOutage, ...]:
    """What an agent finds down now: one that does not run any more knows nothing of now."""
    return agent.outages if agent_state(agent, now) == "running" else ()


def agent_state(agent: RunningAgent, now: float) -> AgentState:
    """now: seconds since 1970 on the ledger's clock."""
    if has_ended(agent.owner):
        return "killed"
    return "silent" if abs(now - agent.seen_at) > SILENT_S else "running"


LISTED: Final = 20
"""Mails of a kind that are named one by one."""

DAY_S: Final = 86_400.0
_STATES: Final[dict[AgentState, str]] = {"running": "runs", "silent": "may be gone", "killed": "was killed"}

_COMPARED: Final = {
    "drafted": ("draft", "were sent as they were"),
    "observed": ("observed reply", "were sent in the same words"),
}
_COMPARISONS: Final[dict[Comparison, str]] = {
    "edited": "edited",
    "another": "replaced by another answer",
    "not_answered": "not answered so far",
    "unknown": "not compared",
}


@dataclass(frozen=True, slots=True)
class Status:
    """now: seconds since 1970 on the ledger's clock. unfinished, failed: the first LISTED of so many in all.

    taken_count: further mails that somebody answered, flagged, moved or deleted before an agent was done.
    too_old: mails that are left alone for it; None where nobody counted. no_room: why the ledger cannot be written.
    """

    ledger: str
    now: float
    agents: tuple[RunningAgent, ...]
    unfinished: tuple[LedgerRow, ...]
    unfinished_count: int
    taken_count: int
    failed: tuple[LedgerRow, ...]
    failed_count: int
    last_day: tuple[LedgerCount, ...]
    comparisons: tuple[ComparisonCount, ...]
    too_old: int | None = None
    no_room: str | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What a person should look at, each in a few words; none where all is well."""
        found = [] if self.is_served else ["no agent runs"]
        found += (
            f"agent {short_owner(agent.owner)} {_STATES[agent_state(agent, self.now)]}"
            for agent in self.agents
            if self.is_problem(agent)
        )
        down = sorted({outage.service for agent in self.agents for outage in current_outages(agent, self.now)})
        found += (f"{service} is down" for service in down)
        if self.no_room:
            found.append(f"the ledger cannot be written ({self.no_room})")
        if self.failed_count:
            found.append(f"{pluralize(self.failed_count, 'mail')} failed")
        return tuple(found)

    @property
    def is_served(self) -> bool:
        """Whether an agent runs."""
        return any(agent_state(agent, self.now) == "running" for agent in self.agents)

    def is_problem(self, agent: RunningAgent) -> bool:
        """Whether a person should look after this agent. One in another container cannot be told from one that died."""
        state = agent_state(agent, self.now)
        if state == "silent" and abs(self.now - agent.seen_at) > GONE_S:
            return not self.is_served
        return state != "running"


def read_status(reader: LedgerReader) -> Status:
    """Raises LedgerError where the ledger cannot be read."""
    now, counts = reader.now(), reader.counts()
    open_count = sum(count.mails for count in counts if count.outcome is None)
    taken_count = sum(count.mails for count in counts if count.outcome is None and count.reason == NOT_WAITING)
    waiting = (row for row in reader.unfinished(LISTED + taken_count) if row.reason != NOT_WAITING)
    unfinished = tuple(islice(waiting, LISTED))
    failed = tuple(reader.outcomes(("quarantined", "unknown"), limit=LISTED))
    return Status(
        ledger=reader.name,
        now=now,
        agents=tuple(reader.agents()),
        unfinished=unfinished,
        unfinished_count=open_count - taken_count,
        taken_count=taken_count,
        failed=failed,
        failed_count=sum(count.mails for count in counts if count.outcome in ("quarantined", "unknown")),
        last_day=tuple(reader.counts(now - DAY_S)),
        comparisons=tuple(reader.comparisons()),
        too_old=reader.too_old(),
        no_room=reader.no_room(),
    )


def print_status(status: Status, clock: LocalTime, terminal: Terminal) -> None:
    terminal.line(f"{clock.text(status.now)} ({clock.zone_at(status.now)}), ledger {printable(status.ledger)}")
    if status.no_room:
        terminal.outcome(f"✗ The ledger cannot be written: {status.no_room}. Make room; no mail is answered until then")
    for agent in status.agents:
        _print_agent(agent, status, clock, terminal)
    if not status.agents:
        terminal.outcome("✗ No agent runs on this ledger")
    _print_rows("Unfinished", status.unfinished_count, status.unfinished, status, terminal)
    if status.taken_count:
        terminal.line(
            f"With people: {pluralize(status.taken_count, 'mail')} answered, flagged, moved or deleted by somebody "
            "before an agent was done"
        )
    if status.too_old:
        terminal.line(
            f"Too old: {pluralize(status.too_old, 'mail')}, left alone by agent.answer_since or agent.max_age_days"
        )
    _print_rows("Failed", status.failed_count, status.failed, status, terminal)
    terminal.line(f"Last 24 hours: {_summed_up(status.last_day) or 'nothing'}")
    for outcome, (what, as_it_was) in _COMPARED.items():
        if counts := {each.comparison: each for each in status.comparisons if each.outcome == outcome}:
            terminal.line(_compared(counts, what, as_it_was))


def _compared(counts: Mapping[Comparison, ComparisonCount], what: str, as_it_was: str) -> str:
    """`Of 212 drafts 190 were sent as they were, 12 edited (88 % of the words alike), …`."""
    total = sum(each.mails for each in counts.values())
    told = [f"Of {pluralize(total, what)} {counts['as_it_was'].mails if 'as_it_was' in counts else 0} {as_it_was}"]
    for comparison, words in _COMPARISONS.items():
        if (count := counts.get(comparison)) is not None:
            alike = "" if count.alike_percent is None else f" ({count.alike_percent:.0f} % of the words alike)"
            told.append(f"{count.mails} {words}{alike}")
    return ", ".join(told)


def _summed_up(counts: Sequence[LedgerCount]) -> str:
    """`answered 12, handed over 3 (anger 2, fire 1)`: reasons are told of what a person has to look at."""
    told: dict[str, list[LedgerCount]] = {}
    for count in counts:
        told.setdefault(str(count.outcome), []).append(count)
    return ", ".join(_counted(outcome, group) for outcome, group in sorted(told.items()))


def _counted(outcome: str, group: Sequence[LedgerCount]) -> str:
    text = f"{outcome.replace('_', ' ')} {sum(count.mails for count in group)}"
    if outcome not in PARKED:
        return text
    reasons = (f"{count.reason or 'no reason'} {count.mails}" for count in group)
    return f"{text} ({', '.join(reasons)})"


def _print_agent(agent: RunningAgent, status: Status, clock: LocalTime, terminal: Terminal) -> None:
    state, silence_s = agent_state(agent, status.now), status.now - agent.seen_at
    when = "ago" if silence_s >= 0 else "ahead of the clock, which was set back"
    seen = "" if state == "running" else f", last seen {clock.text(agent.seen_at)}, {duration(abs(silence_s))} {when}"
    text = (
        f"Agent {printable(short_owner(agent.owner))} {_STATES[state]}: mode {printable(agent.mode)}, version "
        f"{printable(agent.version)}, since {clock.text(agent.started_at)}{seen}"
    )
    if state != "running" and not status.is_problem(agent):
        terminal.line(f"⚠️ {text}")
    else:
        terminal.outcome(f"{'✓' if state == 'running' else '✗'} {text}")
    works_on = [row for row in status.unfinished if row.owner == agent.owner]
    if works_on:
        terminal.line(f"    works on {', '.join(row.short_key for row in works_on)}")
    if agent.waiting:
        oldest = f", the oldest of {clock.text(agent.oldest_received)}" if agent.oldest_received else ""
        terminal.line(f"    {pluralize(agent.waiting, 'mail')} in its inbox without an outcome{oldest}")
    for outage in current_outages(agent, status.now):
        text = f"{printable(outage.service)} is down since {clock.text(outage.since)} ({printable(outage.code)})"
        terminal.outcome(f"✗   {text}")


def _print_rows(title: str, count: int, rows: Sequence[LedgerRow], status: Status, terminal: Terminal) -> None:
    terminal.line(f"{title}: {pluralize(count, 'mail')}")
    for row in rows:
        terminal.line(f"    {row.short_key}  {', '.join(_described(row, status.now))}")
    if count > len(rows):
        terminal.line(f"    and {count - len(rows)} more")


def _described(row: LedgerRow, now: float) -> Iterator[str]:
    seconds = left_s(row.since, row.span_s, now)
    if row.outcome is not None:
        yield f"{row.outcome} {duration(now - row.changed_at)} ago"
    elif row.owner is not None and seconds > 0:
        owner = printable(short_owner(row.owner))
        is_gone = f"claimed by {owner}, which runs no more, for another {duration(seconds)}"
        yield is_gone if has_ended(row.owner) else f"in work by {owner} for {duration(row.span_s - seconds)}"
    elif row.owner is not None:
        yield f"due: the claim of {printable(short_owner(row.owner))} ran out"
    elif seconds > 0:
        yield f"next try in {duration(seconds)}"
    else:
        yield "due"
    if row.outcome is None and row.stage == "sending" and seconds <= 0:
        yield "its reply may have left"
    yield f"tries: {row.attempts}"
    if row.reason:
        yield row.reason
    yield f"first seen {duration(now - row.created_at)} ago"


def status_report(status: Status) -> dict[str, Any]:
    """The same as JSON: times in seconds since 1970, mails by their whole key."""
    agents = [asdict(agent) | {"state": agent_state(agent, status.now)} for agent in status.agents]
    return {"schema_version": 1, "problems": list(status.problems), **asdict(status), "agents": agents}

"""What goes wrong in a history: drawn call by call from its seed."""

from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias

from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.ledger.database import LedgerError
from guarantee_email_agent.utils.errors import AgentError, IntegrationError

Fault: TypeAlias = Literal[
    "none",
    "fail_before",  # refused or timed out, and nothing happened
    "fail_after",  # timed out after doing
    "fail_then_happen",  # timed out, and done some seconds later
    "repeat",  # asked twice, as a transport may
    "hang",  # no answer, for longer than a mail may take
    "crash_before",
    "crash_after",
    "crash_then_happen",  # the request had left before the process died
    "stop",  # SIGTERM, in the middle of the call
    "pause",  # the process stands still for minutes, as on a machine that is suspended, and then goes on
]

LEDGER: Final = "ledger"
LEDGER_WRITES: Final = "ledger writes"
"""Where its disk is full it can be read, and not written."""

_FAULTS: Final[tuple[Fault, ...]] = (
    "fail_before", "fail_before", "fail_after", "fail_then_happen", "repeat", "hang",
    "crash_before", "crash_before", "crash_after", "crash_after", "crash_then_happen", "stop",
)  # fmt: skip
_MODES: Final[tuple[tuple[Mode, ...], ...]] = (
    ("observe",), ("drafts",), ("observe", "answer"), ("observe", "drafts"), ("drafts", "answer"), ("answer", "drafts"),
    ("answer",),
)  # fmt: skip
"""The last one three times out of four. What an agent that answers has begun is left alone by one that observes."""

_FAULTS_WITH_PAUSES: Final[tuple[Fault, ...]] = (*_FAULTS, *["pause"] * len(_FAULTS))


@dataclass(frozen=True, slots=True)
class Conditions:
    """How bad a history is. agents: processes at a time. fault_rate: share of all calls.

    letters, outages, clock_jumps, interventions: how many. keeps_proof: whether the mailbox can tell what was sent.
    pauses: whether processes may stand still. steers: whether people release, retry and take over mails.
    modes: `agent.mode` of the agents, one after the other. changes: how often they get other settings.
    stale_lists: whether the inbox may be listed as it was, or in part. forgets_marks: whether marks may get lost.
    restores: whether the ledger is lost, and restored from a back-up. withholds: whether single mails cannot be read,
    or their replies be sent, for ever.
    """

    agents: int
    letters: int
    fault_rate: float
    outages: int
    clock_jumps: int
    interventions: int
    keeps_proof: bool
    pauses: bool
    steers: bool
    modes: tuple[Mode, ...]
    changes: int
    stale_lists: bool
    forgets_marks: bool
    restores: bool
    withholds: bool


def draw_conditions(random: Random) -> Conditions:
    """Most histories have one or two faults a mail, so that what follows from one can be told; some are wild."""
    keeps_proof = random.random() < 0.8
    steers = random.random() < 0.4
    modes = _MODES[min(random.randrange(4 * len(_MODES)), len(_MODES) - 1)]
    return Conditions(
        agents=random.choice((1, 1, 1, 2, 2, 3)),
        letters=random.choice((1, 1, 1, 1, 1, 2)),
        fault_rate=random.choice((0.0, 0.03, 0.03, 0.06, 0.06, 0.12, 0.2)),
        outages=random.choice((0, 0, 0, 1)),
        clock_jumps=random.choice((0, 0, 0, 1, 2)),
        interventions=random.choice((0, 0, 0, 1, 2)),
        keeps_proof=keeps_proof,
        pauses=random.random() < 0.4,
        steers=steers,
        modes=modes,
        changes=random.choice((0, 0, 0, 0, 1, 2)),
        stale_lists=random.random() < 0.15,
        forgets_marks=random.random() < 0.1,
        # What people did is forgotten. Of replies and drafts that are forgotten only a proof is left, each elsewhere.
        restores=random.random() < 0.1 and keeps_proof and not steers and len(modes) == 1,
        withholds=random.random() < 0.15,
    )


def draw_fault(random: Random, conditions: Conditions) -> Fault:
    rate = conditions.fault_rate
    if not rate or random.random() >= rate:
        return "none"
    return random.choice(_FAULTS_WITH_PAUSES if conditions.pauses else _FAULTS)


def draw_latency_s(random: Random) -> float:
    """One way: mostly a fraction of a second, at times long enough for others to come in between."""
    return random.random() * random.choice((0.01, 0.01, 0.5, 0.5, 5.0))


def draw_error(random: Random, service: str, *, happened: bool, repeatable: bool) -> AgentError:
    """As the ports raise it. happened: whether the call may have had its effect, so that the error may not deny it."""
    if service in (LEDGER, LEDGER_WRITES):
        return LedgerError("The ledger cannot be reached", "ledger_unreachable", outage=True)
    certain = (("rate_limited", True, True), ("invalid_argument", False, False), ("auth", False, True))
    uncertain = (("timeout", True, False), ("unavailable", True, True), ("failed", False, False))
    is_uncertain = happened or random.random() < 0.5
    kind, retryable, outage = random.choice(uncertain if is_uncertain else certain)
    if is_uncertain and not repeatable:
        retryable = False  # as forbid_repeat has it
    return service_error(f"{service}_{kind}", retryable=retryable, uncertain=is_uncertain, outage=outage)


def outage_error(service: str) -> AgentError:
    """Of a service that is down as a whole: nothing reaches it."""
    if service == LEDGER_WRITES:
        return LedgerError("The ledger cannot be written", "ledger_disk_full", outage=True)
    if service == LEDGER:
        return LedgerError("The ledger cannot be reached", "ledger_unreachable", outage=True)
    return service_error(f"{service}_unavailable", uncertain=True, outage=True)


def service_error(
    code: str, *, retryable: bool = False, uncertain: bool = False, outage: bool = False
) -> IntegrationError:
    return IntegrationError(code, code, retryable=retryable, uncertain=uncertain, outage=outage)

"""One history: letters come, agents work on them and die, services fail, people and administrators join in."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Final, TypeVar

from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.ledger.ledger import Claim
from guarantee_email_agent.services.ports import Reply
from simulation.administration import RESTORE_S, Administration
from simulation.agent import create_daemon, identity_of, location_of
from simulation.call import Call
from simulation.event_loop import CURRENT_PROCESS, Process, SimulatedEventLoop, StalledError
from simulation.faults import LEDGER, LEDGER_WRITES, Fault, draw_conditions, draw_fault, draw_latency_s
from simulation.inbox import EPOCH_S, FAULTS_END_S, Inbox
from simulation.ledger_in_memory import LedgerInMemory
from simulation.letters import Kind, Letter
from simulation.people import People

SETTLE_S: Final = 25.0
"""Seconds after the end of a call, or the death of who made it, until which it may still take effect."""

DEADLINE_S: Final = FAULTS_END_S + 12 * 3600.0
"""By then every mail has to have come to its end: no retry waits longer than an hour."""

_STEP_S: Final = 300.0
_QUIET_S: Final = 300.0
_STEERING_RATE: Final = 0.04
_LEDGER_SETTLE_S: Final = 1.0
_NEVER: Final = (0.0, 0.0)
_COPY_LAG_S: Final = 4.0
_KINDS: Final[tuple[Kind, ...]] = (
    "valid",
    "valid",
    "valid",
    "expired",
    "missing",
    "automatic",
    "angry",
    "robot",
    "old",
)
_SERVICES: Final = ("mail", "warranty_api", "ticketing", LEDGER, LEDGER_WRITES)
_READS: Final = frozenset({"time", "state", "inbox", "observed", "released"})
"""Of the ledger; also where its disk is full."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class SentReply:
    """copy_at: when its copy can be found among the sent mails."""

    message_id: str
    to: str
    at: float
    copy_at: float


@dataclass(slots=True)
class RunningAgent:
    process: Process
    stop: asyncio.Event
    daemon: Daemon | None = None


class History:
    """Everything that happens under one seed. Run it once; `invariants` says what was wrong with it.

    `violations` has what the agent itself did wrong on the way. `agents` are all that were ever started, by name.
    `trace`, where it is asked for, has a line for each call.
    """

    def __init__(self, seed: int, ledger: LedgerInMemory, *, traced: bool = False) -> None:
        self.seed = seed
        self.replies: list[SentReply] = []
        self.tickets: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self.drafts: dict[str, float] = {}
        self.violations: list[str] = []
        self.trace: list[str] | None = [] if traced else None
        self.faults = 0
        self.random = Random(seed)
        self.conditions = draw_conditions(self.random)
        self.ledger = ledger
        self.loop = SimulatedEventLoop(self._on_thread)
        self.clock = _SimulatedClock(self.loop)
        self.inbox = Inbox(self)
        self.people = People(self)
        self.administration = Administration(self)
        self._clock_offset_s = 0.0
        self._outages: dict[str, tuple[float, float]] = {}
        self._numbers = count(1)
        self.agents: dict[str, RunningAgent] = {}
        self._fences: dict[str, int] = {}
        self._pending = 0  # events that are still to come
        self._is_steered = self.conditions.steers
        self._ending = False

    def run(self) -> None:
        self.ledger.reset(self.wall_time)
        try:
            self.loop.run_until_complete(self._live())
        except StalledError:
            self.violations.append("nothing can happen any more, although somebody waits")
        finally:
            self._end()

    def wall_time(self) -> float:
        """Seconds since 1970 on the clock of the ledger, which jumps."""
        return EPOCH_S + self.loop.time() + self._clock_offset_s

    async def _live(self) -> None:
        random, conditions = self.random, self.conditions
        for _ in range(conditions.letters + 2 * conditions.withholds):
            self.later(random.choice((0.0, random.random() * 600.0)), self.inbox.write_letter, random.choice(_KINDS))
        inbox = self.inbox
        interventions = (
            inbox.copy_letter,
            inbox.alter_copy,
            inbox.take_care,
            inbox.outgrow_age,
            inbox.delete_letter,
            inbox.move_letter,
            inbox.remove_mark,
        )
        for _ in range(conditions.interventions):
            self.later(random.random() * random.choice((10.0, 100.0, FAULTS_END_S)), random.choice(interventions))
        for _ in range(conditions.clock_jumps):
            self.later(random.random() * random.choice((10.0, 1000.0)), self._jump)
        for _ in range(conditions.outages):
            start = random.random() * 60.0
            self._outages[random.choice(_SERVICES)] = (start, start + random.random() * 3600.0)
        self.administration.plan()
        for _ in range(conditions.agents):
            self._start_agent()
        while not self._is_settled():
            if self.loop.time() > DEADLINE_S:
                self.violations.append("a mail came to no end")
                return
            await asyncio.sleep(_STEP_S)
        self._is_steered, self.inbox.forgets_marks = False, False
        await asyncio.sleep(_QUIET_S)  # what is late comes now
        self._start_agent()
        await asyncio.sleep(_QUIET_S)

    def _is_settled(self) -> bool:
        is_open = any(
            letter.mark is None and letter.taken_care_of_at is None and not self._stays_unmarked(letter)
            for letter in self.inbox.letters.values()
        )
        stands_still = any(
            each.process.alive and each.process.paused_until > self.loop.time() for each in self.agents.values()
        )
        return not (is_open or stands_still or self._pending or self.people.release_what_is_stuck() or self.left_open())

    def left_open(self) -> list[str]:
        """The mails without an outcome that lie somewhere, and that nobody knows to be with people.

        Who only observes leaves what another agent has begun, and `status` has those whose release was cut short.
        """
        if self.administration.mode == "observe":
            return []
        unmarked, rows = self.ledger.unmarked(), self.ledger.mails()
        waiting = [row for row in rows if row.outcome is None and row.reason != NOT_WAITING]
        return [row.mail_key for row in waiting if row.mail_key in unmarked]

    def _stays_unmarked(self, letter: Letter) -> bool:
        """Whether it was observed, or ended otherwise and only agents run that do no more than observe."""
        if "observe" not in self.conditions.modes:
            return False
        # One that could not be read at first is known by its location.
        known_by = {identity_of(letter.raw), self.ledger.mail_keys().get(location_of(letter.id), "")}
        outcomes = {self.ledger.outcome_of(key) for key in known_by} - {None}
        return "observed" in outcomes or (bool(outcomes) and self.administration.mode == "observe")

    def _end(self) -> None:
        """Nobody has any effect from now on; what is left is cancelled."""
        self._ending = True
        for agent in self.agents.values():
            agent.process.alive = False
        self.loop.cancel_all()
        self.violations += (f"the simulation itself failed: {error!r}" for error in self.loop.failures)

    # Agents

    def _start_agent(self) -> None:
        if self.administration.is_ledger_lost:  # nobody starts one before the restored one is in its place
            self.later(RESTORE_S, self._start_agent)
            return
        process, stop = Process(f"agent-{next(self._numbers)}"), asyncio.Event()
        self.agents[process.name] = RunningAgent(process, stop)
        context = copy_context()
        context.run(CURRENT_PROCESS.set, process)
        self._note(process.name, "starts")
        self.loop.create_task(self._run_agent(process, stop), context=context)

    async def _run_agent(self, process: Process, stop: asyncio.Event) -> None:
        daemon = create_daemon(self, self.ledger.ledger, f"host:{process.name}", stop)
        self.agents[process.name].daemon = daemon
        try:
            await daemon.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the agent's fault
            self.violations.append(f"{process.name} ended with {error!r}")
        if process.alive:
            self._note(process.name, "has stopped")
            self._restart_later()

    def kill(self, process: Process) -> None:
        if process.alive:
            self._note(process.name, "is killed")
            process.alive = False
            self._restart_later()

    def pause(self, process: Process) -> None:
        process.paused_until = self.loop.time() + self.random.uniform(100.0, 1500.0)
        self._note(process.name, "stands still until", process.paused_until)

    def stop(self, process: Process) -> None:
        """As SIGTERM: mails in progress are finished."""
        self._note(process.name, "is stopped")
        self.agents[process.name].stop.set()

    def _restart_later(self) -> None:
        self.later(self.random.random() * self.random.choice((1.0, 60.0, 600.0)), self._start_agent)

    # Calls across the edge of a process

    async def call(
        self,
        service: str,
        name: str,
        effect: Callable[[], _Answer],
        *,
        about: str = "",
        repeatable: bool = True,
        prompt: bool = False,
    ) -> _Answer:
        """What a service does, at a moment and with a fault that the seed chooses.

        about: for the trace. repeatable: whether the call is harmless to repeat. prompt: whether the process does not
        stand still before it.
        """
        process = CURRENT_PROCESS.get()
        self._draw_steering()
        fault = self._draw_fault()
        if fault == "repeat" and not repeatable:
            fault = "none"
        self._note(process.name, service, name, about, fault)
        call = Call(self, process, service, effect, fault, self.random.random() * SETTLE_S, repeatable, prompt)
        if fault != "hang":
            return await call.begin()
        try:
            return await call.begin()
        finally:
            if self.random.random() < 0.5 and not self._ending:
                self.later(call.late_s, call.act)

    def _on_thread(self, name: str, arguments: Sequence[Any], effect: Callable[[], Any]) -> asyncio.Future[Any]:
        """A call of the ledger: it goes on where the coroutine that waits for it is cancelled."""
        process = CURRENT_PROCESS.get()
        lost = self.administration.lost_ledgers
        self._draw_steering()
        fault = self._draw_fault()
        if fault == "repeat":  # no transport does that to a transaction
            fault = "none"
        self._note(process.name, "ledger", name, fault)
        late_s = self.random.random() * _LEDGER_SETTLE_S

        def write() -> Any:
            if lost != self.administration.lost_ledgers:  # it goes to the one that was lost
                return None
            answer = effect()
            self._check_fence(name, arguments, answer)
            return answer

        service = LEDGER if name in _READS else LEDGER_WRITES
        return Call(self, process, service, write, fault, late_s, repeatable=True, prompt=False).begin()

    def _check_fence(self, name: str, arguments: Sequence[Any], answer: Any) -> None:
        """Whoever has lost the lease of a mail may write nothing about it any more."""
        if name == "find_thread" and answer is None:  # it has only looked
            return
        if isinstance(answer, Claim):
            self._fences[answer.mail_key] = answer.fence
        elif arguments and isinstance(claim := arguments[0], Claim) and claim.fence != self._fences[claim.mail_key]:
            self.violations.append(f"{name} was written under a lease that had been lost")

    def _draw_fault(self) -> Fault:
        if self.loop.time() > FAULTS_END_S:
            return "none"
        fault = draw_fault(self.random, self.conditions)
        self.faults += fault != "none"
        return fault

    def _draw_steering(self) -> None:
        """People who look at a mail in work: most of what they do comes close to a call."""
        if self._is_steered and self.loop.time() < FAULTS_END_S and self.random.random() < _STEERING_RATE:
            self.later(draw_latency_s(self.random), self._steer)

    def is_down(self, service: str) -> bool:
        """With the ledger its writes are."""
        if not self._outages:
            return False
        services = (LEDGER, LEDGER_WRITES) if service == LEDGER_WRITES else (service,)
        spans = (self._outages.get(each, _NEVER) for each in services)
        return any(start <= self.loop.time() < end for start, end in spans)

    # The inbox, and who else uses it

    def deliver(self, reply: Reply) -> None:
        """A reply leaves; some customers answer it."""
        now = self.loop.time()
        if reply.message_id in self.people.handed_over:
            self.violations.append("answered after a person took it")
        self.replies.append(SentReply(reply.message_id, reply.to, now, now + self.random.random() * _COPY_LAG_S))
        self._note("", "delivered", reply.message_id)
        self.inbox.answer(reply)

    def _steer(self) -> None:
        """A person releases a mail, has it tried again, or takes it over."""
        if letter := self.inbox.any_letter():
            self.people.steer(letter)

    def forget_fences(self) -> None:
        """Those of a restored ledger begin where its back-up was made."""
        self._fences.clear()

    def is_alive(self, name: str) -> bool:
        """Whether the agent of that name runs."""
        return self.agents[name].process.alive

    def note(self, *words: object) -> None:
        """For the trace."""
        self._note("", *words)

    def next_number(self) -> int:
        """For what has to have a name of its own."""
        return next(self._numbers)

    # Time

    def _jump(self) -> None:
        self._clock_offset_s += self.random.uniform(-1.0, 1.0) * self.random.choice((10.0, 200.0, 7200.0))
        self.faults += 1
        self._note("", "the clock jumps to", self._clock_offset_s)

    def later(self, delay_s: float, event: Callable[..., object], *arguments: Any) -> None:
        """Whoever makes it happen need not live until then."""
        self._pending += 1

        def happen() -> None:
            self._pending -= 1
            if not self._ending:
                event(*arguments)

        self.loop.call_later(delay_s, happen, context=copy_context())

    def _note(self, *words: object) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.loop.time():10.3f}  {' '.join(str(word) for word in words if word)}")


class _SimulatedClock:
    """A Clock on the virtual time of the loop."""

    def __init__(self, loop: SimulatedEventLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

"""What goes into processing a mail, what is found on the way, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, cast

from guarantee_email_agent.config.settings import Config, Mode, SenderCheck
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.instructions.router import NUMBER_COUNTS, NumberCount
from guarantee_email_agent.reading.number_reader import NumberReading
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError


class ModelSettings(NamedTuple):
    """What goes with every request to the model.

    max_tokens: of one answer. temperature: at 0 the same words each time, where the model takes one.
    """

    model: str
    max_tokens: int = 1024
    temperature: float = 0.0

    def parameters(self) -> dict[str, Any]:
        return {"model": self.model, "max_tokens": self.max_tokens, "temperature": self.temperature}


@dataclass(frozen=True, slots=True)
class AnswerPolicy:
    """Who is answered, and how: the settings of the same names in `agent`."""

    mode: Mode = "answer"
    sender_check: SenderCheck = "off"
    authserv_id: str | None = None
    trusted_forms: frozenset[str] = frozenset()
    own_addresses: frozenset[str] = frozenset()
    caution: int = 70
    """0 to 100: a mail with more doubt than 100 - caution goes to a person."""

    max_delay_days: float | None = None

    @classmethod
    def of(cls, config: Config) -> Self:
        """The policy of a configuration. Addresses are compared in lower case."""
        agent, address = config.agent, config.mailbox.from_address
        return cls(
            mode=agent.mode,
            sender_check=agent.sender_check,
            authserv_id=agent.authserv_id,
            trusted_forms=frozenset(map(str.lower, agent.trusted_forms)),
            own_addresses=frozenset((*agent.own_addresses, *((address,) if address else ()))),
            caution=agent.caution,
            max_delay_days=agent.max_delay_days,
        )


@dataclass(frozen=True, slots=True)
class IncomingMail:
    """A mail that may be answered. verified: whether its sender is proved, or nobody asks for a proof.

    arrived_at: when the mailbox took it, in seconds since 1970; None where nobody knows.
    """

    email: Email
    recipient: str
    verified: bool
    identity: str
    thread: Thread | None
    arrived_at: float | None = None


@dataclass(frozen=True, slots=True)
class Triage:
    """What a mail is about, the numbers of its topic's look-up that really stand in it, and reasons to leave it.

    look_up: None where none serves the topic. language: that of the customer, where the
    instructions have it. reading: all that the mail says of the numbers.
    """

    topic: str
    look_up: LookUp | None
    numbers: tuple[str, ...]
    hand_over: tuple[str, ...] = ()
    language: str = field(default="en", kw_only=True)
    reading: NumberReading = field(default=NumberReading(), kw_only=True, repr=False)

    @property
    def count(self) -> NumberCount | None:
        """How many they are, as far as that makes a difference; None without a look-up."""
        return NUMBER_COUNTS[min(len(self.numbers), 2)] if self.look_up else None


@dataclass(frozen=True, slots=True)
class ProcessingResult:
    """Everything that is known about one mail after the agent has dealt with it.

    triage: how the mail was read; None where it was not, as for one that is not answered. look_up: the name of the one
    that was asked for `number`, or would have been; `status` is what it came to. asks_back: whether the reply asks for
    a number and tells no status. reply_sentences: those with an id that the reply is made of, with a placeholder for
    the ticket's number.

    `success` means that the mail is done: answered (`email_sent`), drafted, observed, handed over (for
    `hand_over_reasons`), or deliberately not answered (`skip_reason` says why). Otherwise
    `failed_step` names the step, `error` says what was wrong, and the mail stays unprocessed.
    step_ms: milliseconds that each step took, by its name, the one that failed included. One with nothing to do is left
    out. doubt: how much of the mail nothing explains, 0 to 100; None where nobody measured it.
    """

    success: bool
    message_id: str
    scenario_used: str | None = None
    asks_back: bool = False
    look_up: str | None = None
    number: str | None = None
    status: str | None = None
    email_sent: bool = False
    recipient: str | None = None
    response_body: str | None = None
    reply_language: str | None = None
    reply_sentences: Mapping[str, str] = field(default_factory=dict)
    ticket_created: bool = False
    ticket_id: str | None = None
    ticket_fields: Mapping[str, str] = field(default_factory=dict)
    drafted: bool = False
    observed: bool = False
    hand_over_reasons: tuple[str, ...] = ()
    skip_reason: str | None = None
    failed_step: str | None = None
    error: AgentError | None = None
    processing_time_ms: int = 0
    step_ms: Mapping[str, float] = field(default_factory=dict)
    triage: Triage | None = None
    doubt: int | None = None

    @property
    def error_code(self) -> str | None:
        return None if self.error is None else self.error.code

    @property
    def error_message(self) -> str | None:
        return None if self.error is None else self.error.message


class Progress:
    """The current step of one mail and its result so far; the only thing that changes while it is processed."""

    def __init__(self, message_id: str, clock: Clock, step_ms: dict[str, float] | None = None) -> None:
        self._known: dict[str, Any] = {"success": False, "message_id": message_id}
        self._clock = clock
        self._step = "parse"
        self._step_began: float | None = clock.monotonic()
        self._step_ms = {} if step_ms is None else step_ms

    @property
    def step(self) -> str:
        return self._step

    @step.setter
    def step(self, name: str) -> None:
        self.end_step()
        self._step = name

    def skip_step(self) -> None:
        """There is nothing to do in the current one: its time is not counted."""
        self._step_began = None

    def end_step(self) -> None:
        """Count the time of the current one."""
        now = self._clock.monotonic()
        if self._step_began is not None:
            self._step_ms[self._step] = (now - self._step_began) * 1000
        self._step_began = now

    def record(self, **known: Any) -> None:
        self._known.update(known)

    @property
    def ticket_fields(self) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._known.get("ticket_fields", {}))

    def fail(self, error: AgentError) -> None:
        self.record(failed_step=self.step, error=error)

    def result(self, elapsed_s: float) -> ProcessingResult:
        return ProcessingResult(**self._known, processing_time_ms=round(elapsed_s * 1000), step_ms=self._step_ms)

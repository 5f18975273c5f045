"""Whether a running agent lives, and whether it gets mail answered; for probes, which restart it or tell somebody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from guarantee_email_agent.agent.mail_worker import lease_s
from guarantee_email_agent.agent.standing import MODEL, Standing
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.utils.clock import Clock


class LoopWatchdog:
    """The loop says before it waits for how long it means to; whoever looks sees by how much it is overdue."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at = clock.monotonic()

    def beat(self, wait_s: float = 0.0) -> None:
        """wait_s: seconds until the next beat, where the loop knows that nothing has to happen before."""
        self._due_at = self._clock.monotonic() + wait_s

    @property
    def overdue_s(self) -> float:
        """Seconds since the next beat was due; 0 before."""
        return max(0.0, self._clock.monotonic() - self._due_at)


CALLS_OF_A_ROUND: Final = 4
"""Calls of the mail server between two beats of the main loop: list; or read a mail, look for proof, and mark it."""

MARGIN_S: Final = 60.0
"""For everything that is no call: the ledger, a server that starts anew, a machine that is busy."""


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """stuck_s: seconds that the main loop may be overdue. silent_s: seconds without a sign of the inbox.

    needs_model: whether mail waits while the language model is down.
    """

    stuck_s: float
    silent_s: float
    needs_model: bool = True

    @classmethod
    def of(cls, config: Config) -> HealthLimits:
        """From the time that each step may take by the configuration: a slow service alone reaches none of them."""
        agent, calls_s = config.agent, CALLS_OF_A_ROUND * config.agent.mail_timeout_s
        return cls(
            stuck_s=lease_s(agent.mail_budget_s, config.mailbox.copy_wait_s) + calls_s + MARGIN_S,
            silent_s=agent.poll_interval_s + agent.mail_budget_s + calls_s + MARGIN_S,
            needs_model=config.llm.when_down == "wait",
        )


class Health:
    """Its sentences name services, and nothing of a mail."""

    def __init__(
        self,
        clock: Clock,
        watchdog: LoopWatchdog,
        limits: HealthLimits,
        standing: Standing,
        is_stopping: Callable[[], bool] = bool,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._watchdog = watchdog
        self._standing = standing
        self._is_stopping = is_stopping

    @property
    def stuck(self) -> str | None:
        """Why the agent should be started anew; None while its main loop gets round."""
        if (overdue_s := self._watchdog.overdue_s) <= self._limits.stuck_s:
            return None
        return f"the main loop has not got round for {overdue_s:.0f} s"

    def silence(self) -> float | None:
        """Seconds since the inbox was last listed, where that is too long ago."""
        seen_at = self._standing.seen_at
        silent_s = 0.0 if seen_at is None else self._clock.monotonic() - seen_at
        return silent_s if silent_s > self._limits.silent_s else None

    @property
    def problems(self) -> list[str]:
        """What keeps mail from being answered; empty where nothing does."""
        problems = [self.stuck] if self.stuck else []
        if self._is_stopping():
            problems.append("the agent is being stopped")
        if self._standing.seen_at is None:
            problems.append("the inbox has not been listed yet")
        elif (silent_s := self.silence()) is not None:
            problems.append(f"the inbox was last listed {silent_s:.0f} s ago")
        needed = (each.service for each in self._standing.outages if each.service != MODEL or self._limits.needs_model)
        return problems + [f"{service} is down" for service in needed]

"""One call across the edge of a process: it arrives, has its effect, and is answered, or not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.utils.errors import AgentError
from simulation.event_loop import Process
from simulation.faults import LEDGER, LEDGER_WRITES, Fault, draw_error, draw_latency_s, outage_error

if TYPE_CHECKING:
    from simulation.history import History

_TIMEOUT_S: Final = 90.0
"""Of a hanging call: longer than a mail may take in all."""

_LOCK_TIMEOUT_S: Final = 10.0


class Call:
    """A call of one process, with the fault that the seed chose for it."""

    def __init__(
        self,
        history: History,
        process: Process,
        service: str,
        effect: Callable[[], Any],
        fault: Fault,
        late_s: float,
        repeatable: bool,
        prompt: bool,
    ) -> None:
        """late_s: seconds after its end until which it may still take effect."""
        self.late_s = late_s
        self._history, self._process, self._service = history, process, service
        self._effect, self._fault, self._repeatable, self._prompt = effect, fault, repeatable, prompt
        self._answer: asyncio.Future[Any] = history.loop.create_future()

    def begin(self) -> asyncio.Future[Any]:
        history = self._history
        if not self._process.alive:
            return self._answer
        if self._fault == "hang":
            timeout_s = _LOCK_TIMEOUT_S if self._service in (LEDGER, LEDGER_WRITES) else _TIMEOUT_S
            history.loop.call_later(timeout_s, self._fail, True)
        else:
            pause_s = 0.0 if self._prompt else self._pause_s()
            self._leave_after(pause_s, draw_latency_s(history.random))
        return self._answer

    def _pause_s(self) -> float:
        return max(self._process.paused_until - self._history.loop.time(), 0.0)

    def act(self) -> Any:
        """What the effect gives, or the AgentError that it raises."""
        try:
            return self._effect()
        except AgentError as error:
            return error

    def _leave_after(self, pause_s: float, latency_s: float) -> None:
        if pause_s:
            self._history.loop.call_later(pause_s, self._leave, latency_s)
        else:
            self._leave(latency_s)

    def _leave(self, latency_s: float) -> None:
        if self._process.alive:  # one that was killed while it stood still sends nothing any more
            self._history.loop.call_later(latency_s, self._arrive)

    def _arrive(self) -> None:
        history, fault = self._history, self._fault
        if history.is_down(self._service):
            return self._respond(outage_error(self._service))
        if fault == "none":
            return self._respond_later(self.act())
        match fault:
            case "crash_before":
                history.kill(self._process)
            case "crash_then_happen":
                history.later(self.late_s, self.act)
                history.kill(self._process)
            case "crash_after":
                self.act()
                history.kill(self._process)
            case "fail_before":
                self._fail(False)
            case "fail_after":
                self.act()
                self._fail(True)
            case "fail_then_happen":
                history.later(self.late_s, self.act)
                self._fail(True)
            case "pause":
                history.pause(self._process)
                # What is about to be sent when the process stands still would be sent long after others took over.
                if self._prompt or history.random.random() < 0.5:
                    self._respond(self.act())
                else:  # it had not left yet
                    self._fault = "none"
                    self._leave_after(self._pause_s(), 0.0)
            case "stop":
                history.stop(self._process)
                self._respond_later(self.act())
            case "repeat":
                self._respond_later(self.act())
                history.later(self.late_s, self.act)
        return None

    def _respond_later(self, result: Any) -> None:
        random = self._history.random
        if random.random() < 0.5:
            self._respond(result)
        else:
            self._history.loop.call_later(draw_latency_s(random), self._respond, result)

    def _fail(self, happened: bool) -> None:
        random = self._history.random
        self._respond(draw_error(random, self._service, happened=happened, repeatable=self._repeatable))

    def _respond(self, result: Any) -> None:
        if self._answer.done() or not self._process.alive:
            return
        if pause_s := self._pause_s():
            self._history.loop.call_later(pause_s, self._respond, result)
            return
        if isinstance(result, AgentError):
            self._answer.set_exception(result)
        else:
            self._answer.set_result(result)

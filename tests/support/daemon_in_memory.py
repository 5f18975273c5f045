"""A daemon on its mailbox and warranty system, and who observes it."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from mailbox_in_memory import MailboxInMemory, Tickets, Warranties, worker_on

from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.llm.port import ClosableModel, ModelClient
from guarantee_email_agent.llm.provider import ModelWithFallback
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import AgentError, LLMError


class Observed(Standing):
    """Keeps what it was before."""

    def __init__(self) -> None:
        super().__init__(stuck_s=0.05)
        self.lists: list[tuple[int, float | None]] = []
        self.results: list[WorkResult] = []
        self.down: list[list[str]] = []

    def inbox_listed(self, waiting: int, oldest_received: float | None) -> None:
        self.lists.append((waiting, oldest_received))
        super().inbox_listed(waiting, oldest_received)

    def mail_worked(self, entry: InboxEntry, result: WorkResult) -> None:
        self.results.append(result)
        super().mail_worked(entry, result)
        self._note()

    def failed(self, error: AgentError, *, listing: bool = False) -> None:
        super().failed(error, listing=listing)
        self._note()

    def inbox_answered(self, now: float) -> None:
        super().inbox_answered(now)
        self._note()

    def _note(self) -> None:
        down = [outage.code for outage in self.outages]
        if down != (self.down[-1] if self.down else []):
            self.down.append(down)


class Inbox:
    """A mailbox, the daemon that watches it, and its warranty system."""

    def __init__(self, ledger: Ledger, *names: str) -> None:
        self.mailbox, self.warranties = MailboxInMemory(*names), Warranties()
        self.stop = asyncio.Event()
        worker = worker_on(self.mailbox, ledger, self.warranties, Tickets())
        self.observer = Observed()
        self.daemon = Daemon(worker, SystemClock(), self.stop, self.observer)

    def configure(self, **settings: Any) -> None:
        worker = self.daemon.worker
        self.daemon.worker = replace(worker, settings=replace(worker.settings, **settings))

    def use_model(self, model: ClosableModel, fallback: ClosableModel | None) -> None:
        worker = self.daemon.worker
        llm = ModelWithFallback(model, SystemClock(), fallback)
        self.daemon.worker = replace(worker, processor=replace(worker.processor, llm=llm), has_live_model=True)

    def drain(self) -> bool:
        return asyncio.run(self.daemon.drain())

    async def answered(self) -> None:
        while not self.mailbox.marks:
            await asyncio.sleep(0.02)

    def run_until(self, moment: Coroutine[Any, Any, None]) -> None:
        """Run the daemon until `moment` is over, then stop it."""

        async def run() -> None:
            watching = asyncio.create_task(self.daemon.run())
            await moment
            self.stop.set()
            await asyncio.wait_for(watching, 10)

        asyncio.run(run())


class DownModel(ModelClient):
    """A language model that cannot be reached. `calls` counts who tried."""

    def __init__(self) -> None:
        self.calls = 0

    async def create(self, **_: Any) -> Any:
        self.calls += 1
        raise LLMError("nobody there", "llm_unreachable")

    async def aclose(self) -> None:
        """Nothing is open."""

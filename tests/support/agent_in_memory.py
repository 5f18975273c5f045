"""One worker on its mailbox and its ledger, both of which a test sees into."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, worker_on

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import InboxEntry


class AgentInMemory:
    """One worker, its mailbox, and its ledger on a clock that tests set."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_800_000_000.0
        self.file = folder / "ledger.db"
        self.ledger: Ledger = open_ledger(str(self.file), key=KEY, now=lambda: self.now)
        self.mailbox = MailboxInMemory("first")
        self.warranties, self.tickets = Warranties(), Tickets()
        self.worker = worker_on(self.mailbox, self.ledger, self.warranties, self.tickets)

    def configure(self, **settings: Any) -> None:
        self.worker = replace(self.worker, settings=replace(self.worker.settings, **settings))

    def configure_policy(self, mode: Mode) -> None:
        self.configure(mode=mode)
        policy = replace(self.worker.processor.policy, mode=mode)
        self.worker = replace(self.worker, processor=replace(self.worker.processor, policy=policy))

    def work(self, name: str = "first") -> WorkResult:
        return asyncio.run(self.worker.work(self.entry(name), self.now))

    def entry(self, name: str) -> InboxEntry:
        return InboxEntry(name, len(self.mailbox.mails.get(name, b"")))

    def before(self, patch: pytest.MonkeyPatch, service: object, name: str, happens: Callable[[], object]) -> None:
        """Have something happen in each call of a service before it is done."""
        call = getattr(service, name)

        async def called(*arguments: Any, **named: Any) -> Any:
            happens()
            return await call(*arguments, **named)

        patch.setattr(service, name, called)

    def rows(self) -> list[tuple[str, str | None, int, str]]:
        with closing(sqlite3.connect(self.file)) as ledger:
            return ledger.execute("SELECT stage, outcome, attempts, reason FROM ledger_mails").fetchall()


def outcome(result: WorkResult) -> tuple[str, str]:
    return result.disposition, result.reason


def retry(result: WorkResult) -> tuple[str, float]:
    return result.disposition, result.retry_s

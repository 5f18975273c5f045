"""What a reload makes anew, what it writes down for `check`, and how soon it is noticed; in memory."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mailbox_in_memory import INSTRUCTIONS, KEY, MailboxInMemory, Tickets, Warranties, worker_on

from guarantee_email_agent.agent.changed_settings import digests
from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.identity_key import key_of_mailbox
from guarantee_email_agent.agent.outages import MODEL
from guarantee_email_agent.agent.reload import SettingsReload
from guarantee_email_agent.agent.startup import RunOptions, run_agent
from guarantee_email_agent.config.settings import Config, InstructionSettings, MailboxSettings
from guarantee_email_agent.integrations.services import create_services
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.logging import ROOT, configure_logging

logger = logging.getLogger(f"{ROOT}.somewhere")
CONFIG = Config(
    instructions=InstructionSettings(INSTRUCTIONS / "main.md", INSTRUCTIONS / "scenarios"),
    mailbox=MailboxSettings(from_address="support@example.com"),
)


class Desk:
    """An agent whose configuration `file` holds. Its services are never called."""

    def __init__(self, ledger: Ledger, override: Callable[[Config], Config], *, keeps_note: bool = True) -> None:
        self.file = CONFIG
        self.ledger = ledger
        worker = worker_on(MailboxInMemory(), ledger, Warranties(), Tickets())
        self.daemon = Daemon(worker, SystemClock(), asyncio.Event())
        services = create_services(CONFIG, SystemClock(), {}, KEY)
        self.settings = SettingsReload(
            CONFIG, self.daemon, services, lambda: self.file, lambda _: None, override, keeps_note=keeps_note
        )

    def change(self, **agent: object) -> None:
        self.file = replace(self.file, agent=replace(self.file.agent, **agent))

    def noted(self) -> dict[str, str] | None:
        loaded = self.ledger.loaded_settings(key_of_mailbox(self.daemon.worker.mailbox_name, KEY))
        return None if loaded is None else dict(loaded.digests)


def as_drafts(config: Config) -> Config:
    return replace(config, agent=replace(config.agent, mode="drafts"))


def unchanged(config: Config) -> Config:
    return config


def test_another_time_for_a_mail_makes_another_model(ledger: Ledger) -> None:
    async def run() -> None:
        desk = Desk(ledger, unchanged)
        model = desk.daemon.worker.processor.llm
        desk.change(concurrency=2)
        assert await desk.settings.reload()
        assert desk.daemon.worker.processor.llm is model
        desk.change(mail_budget_s=20.0)
        assert await desk.settings.reload()
        assert desk.daemon.worker.processor.llm is not model

    asyncio.run(run())


def test_what_a_model_was_paid_for_is_kept_over_a_reload_unless_another_one_is_asked(ledger: Ledger) -> None:
    async def run() -> None:
        desk = Desk(ledger, unchanged)
        kept = desk.daemon.worker.answer_cache
        desk.change(concurrency=2)
        assert await desk.settings.reload()
        assert desk.daemon.worker.answer_cache is kept
        desk.file = replace(desk.file, llm=replace(desk.file.llm, max_tokens=99))
        assert await desk.settings.reload()
        assert desk.daemon.worker.answer_cache is not kept

    asyncio.run(run())


def test_what_is_written_down_is_the_file_and_not_the_command_line(ledger: Ledger) -> None:
    async def run() -> None:
        desk = Desk(ledger, as_drafts)
        await desk.settings.note()
        assert desk.settings.config.agent.mode == "drafts"
        assert desk.noted() == digests(CONFIG, KEY)
        desk.change(concurrency=2)
        assert await desk.settings.reload()
        assert (desk.settings.config.agent.mode, desk.settings.config.agent.concurrency) == ("drafts", 2)
        assert desk.noted() == digests(desk.file, KEY)

    asyncio.run(run())


def test_a_run_that_is_soon_over_leaves_what_another_wrote_down(ledger: Ledger) -> None:
    desk = Desk(ledger, unchanged, keeps_note=False)
    asyncio.run(desk.settings.note())
    assert desk.noted() is None


def test_who_counts_replies_by_scenario_is_told_after_a_reload(ledger: Ledger) -> None:
    async def run() -> list[str]:
        desk = Desk(ledger, unchanged)
        told: list[str] = []
        desk.settings.tell_scenarios = lambda scenarios: told.extend(
            f"{desk.settings.config.agent.concurrency}: {each.name}" for each in scenarios
        )
        desk.change(concurrency=2)
        assert await desk.settings.reload()
        return told

    assert "2: valid-warranty" in asyncio.run(run())


def test_instructions_are_looked_at_by_the_new_interval_at_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        desk = Desk(ledger, unchanged)
        desk.change(poll_interval_s=3600.0)
        assert await desk.settings.reload()
        looked = asyncio.Event()

        def look() -> bool:
            looked.set()
            return False

        monkeypatch.setattr(desk.settings, "_instructions_changed", look)
        watching = asyncio.create_task(desk.settings.watch_instructions())
        await looked.wait()
        looked.clear()
        desk.change(poll_interval_s=0.01)
        assert await desk.settings.reload()
        for _ in range(3):
            looked.clear()
            await asyncio.wait_for(looked.wait(), 30)
        watching.cancel()

    asyncio.run(run())


def test_a_log_that_was_rotated_as_the_agent_started_is_opened_anew(tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    before = signal.getsignal(signal.SIGHUP)
    missing = replace(CONFIG, instructions=InstructionSettings(tmp_path / "main.md", tmp_path / "scenarios"))
    configure_logging("INFO", "ERROR", log, as_json=False)
    logger.info("before")
    log.rename(tmp_path / "agent.log.1")
    try:
        with pytest.raises(ConfigurationError):
            run_agent(missing, RunOptions(lambda: missing, unchanged, lambda _: None, hung_up=lambda: True))
    finally:
        signal.signal(signal.SIGHUP, before)
    logger.info("after")
    assert log.read_text().endswith("INFO after\n")


def test_a_service_that_is_asked_since_a_reload_has_its_address(ledger: Ledger) -> None:
    def with_key(config: Config) -> Config:
        return replace(config, secrets=replace(config.secrets, anthropic_api_key="sk-x"))

    async def run() -> None:
        desk = Desk(ledger, with_key)
        desk.file = replace(desk.file, llm=replace(desk.file.llm, provider="anthropic"))
        assert await desk.settings.reload()
        assert desk.daemon.outages.address_of(MODEL) == "api.anthropic.com"

    asyncio.run(run())

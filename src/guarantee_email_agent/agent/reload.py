"""SIGHUP: take over what changed in the configuration and the instructions, once all of it was checked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final

from guarantee_email_agent.agent.changed_settings import changed_secrets, changed_settings, digests, is_of_run, merged
from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.identity_key import key_of_mailbox
from guarantee_email_agent.agent.inbox import answer_since
from guarantee_email_agent.agent.outages import service_addresses
from guarantee_email_agent.agent.worker_setup import checked_instructions, create_model, create_worker
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.integrations.services import Services
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError

logger = logging.getLogger(__name__)

_OF_MODEL: Final = ("llm.", "instructions.", "agent.mail_budget_s")
"""What a model is made from: its calls wait for no longer than a mail has time for."""


class SettingsReload:
    """The settings that a daemon works with, and how others take their place.

    loaded: the configuration as it stands in its file. override: what the command line says in its place. load: reads
    the configuration anew. set_up_logging: as its section `logging` says. keeps_note: whether `check` compares with
    what this agent loaded. Belongs to one event loop. Mails in progress are finished with what they began with.
    """

    def __init__(
        self,
        loaded: Config,
        daemon: Daemon,
        services: Services,
        load: Callable[[], Config],
        set_up_logging: Callable[[Config], None],
        override: Callable[[Config], Config] = lambda config: config,
        *,
        keeps_note: bool = True,
    ) -> None:
        self.config = override(loaded)
        self._loaded, self._override, self._keeps_note = loaded, override, keeps_note
        self._daemon, self._services = daemon, services
        self._load, self._set_up_logging = load, set_up_logging
        self.tell_scenarios: Callable[[Sequence[ScenarioInstruction]], None] = lambda _: None
        """Called with those in use, once they or the settings have changed."""
        self._reloaded = asyncio.Event()
        self._models = AsyncExitStack()  # a mail in progress may still use one that was replaced
        self._instructions = daemon.worker.processor.instructions.load()

    async def aclose(self) -> None:
        await self._models.aclose()

    async def reload(self) -> bool:
        """Whether the settings are in use now; otherwise each problem is a line at ERROR, and nothing has changed."""
        try:
            found = await asyncio.to_thread(self._load)
            if self.config.source is not None and found.source is None:
                problem = f"{self.config.source} is gone. Put it back, or restart the agent without it"
                raise ConfigurationError(problem, "config_not_found")
            await self._take_over(found)
        except AgentError as error:
            for line in error.message.splitlines():
                logger.error(
                    "Not reloaded, everything stays as it was: %s", line, extra={"fields": {"code": error.code}}
                )
            return False
        except Exception as error:
            # A bug of ours here must not end the agent, nor keep it from the next reload.
            logger.error("Not reloaded: unexpected %s", type(error).__name__)
            logger.debug("Unexpected failure", exc_info=True)
            return False
        return True

    async def _take_over(self, found: Config) -> None:
        """Raises AgentError, with nothing changed, where something of it cannot be used."""
        loaded = merged(self._loaded, found)
        config = self._override(loaded)
        changed = changed_settings(self.config, config)
        worker = self._daemon.worker
        processor = worker.processor
        instructions = await asyncio.to_thread(checked_instructions, config)
        new_model = any(name.startswith(_OF_MODEL) for name in changed)
        model = await asyncio.to_thread(create_model, config, processor.clock, instructions) if new_model else None
        if model is not None:
            self._models.push_async_callback(model.aclose)
        fresh = create_worker(
            config,
            self._services,
            model or processor.llm,
            worker.ledger,
            processor.identity_key,
            processor.clock,
            instructions if new_model else processor.instructions,
        )
        since = None
        if "agent.answer_since" in changed:
            since = answer_since(config.agent, await self._first_start())
        if any(name.startswith("logging.") for name in changed):
            self._set_up_logging(config)
        other_model = any(name.startswith("llm.") for name in changed)
        kept = fresh.answer_cache if other_model else worker.answer_cache
        fresh = replace(
            fresh,
            exclusive=worker.exclusive,
            answer_cache=kept,
            unsaved_cost=worker.unsaved_cost,
            unreleased=worker.unreleased,
        )
        self._daemon.use(fresh, since, other_model=other_model)
        self._daemon.outages.use_addresses(service_addresses(config))
        self.config, self._loaded = config, loaded
        self._reloaded.set()
        told = [*changed, *(["instruction files"] if self._instructions_changed() else [])]
        self.tell_scenarios(self._instructions.scenarios)
        logger.info("Reloaded: %s", ", ".join(told) or "nothing has changed")
        self._tell_of_restart(self._override(found))
        await self.note()

    async def note(self) -> None:
        """Write down what is in use now, for `check`, which knows nothing of this command line."""
        if not self._keeps_note:
            return
        worker = self._daemon.worker
        key = worker.processor.identity_key
        found = await asyncio.to_thread(digests, self._loaded, key)
        save = partial(worker.ledger.save_loaded_settings, key_of_mailbox(worker.mailbox_name, key), found)
        try:
            await asyncio.to_thread(save)
        except AgentError as error:  # it is for `check` alone
            logger.warning("`check` cannot tell later what has changed: %s", error.code)

    async def watch_instructions(self) -> None:
        """Look at the files between mails, too, so that a mistake in one is told before a customer waits for it."""
        while True:
            if self._instructions_changed():
                logger.info("Changed instruction files are in use from now on")
                self.tell_scenarios(self._instructions.scenarios)
                await self.note()
            self._reloaded.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.config.agent.poll_interval_s):
                    await self._reloaded.wait()

    def _instructions_changed(self) -> bool:
        """Whether others are in use now than when this was asked last."""
        before, self._instructions = self._instructions, self._daemon.worker.processor.instructions.load()
        return before is not self._instructions

    async def _first_start(self) -> float:
        worker = self._daemon.worker
        mailbox_key = key_of_mailbox(worker.mailbox_name, worker.processor.identity_key)
        return await asyncio.to_thread(worker.ledger.first_start, mailbox_key)

    def _tell_of_restart(self, found: Config) -> None:
        """A line for each setting that differs from what is in use, which only a restart takes over."""
        changed = changed_settings(self.config, found)
        names = [name for name in changed if is_of_run(name, self.config)]
        for name in (*names, *changed_secrets(self.config.secrets, found.secrets)):
            logger.warning("Changed, but needs a restart: %s", name)

"""Everything that the agent talks to, opened and closed together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from guarantee_email_agent.agent.identity_key import identity_key
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.integrations.services import Services, create_services
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.ledger.ledger import Ledger, open_ledger
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.llm.provider import language_model
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError, IntegrationError, MCPConnectionError

START_S: Final = 30.0
"""Seconds that starting may take."""


@dataclass(frozen=True, slots=True)
class Connections:
    """key: what the names of mails are keyed with. clock: what all of them wait by."""

    services: Services
    model: LanguageModel
    ledger: Ledger
    key: bytes
    clock: Clock


@asynccontextmanager
async def connected(config: Config, clock: Clock) -> AsyncIterator[Connections]:
    """Open everything, each connection tried once.

    Raises ConfigurationError for what is missing or bad, instructions included, and MCPConnectionError, with a line for
    each service that cannot be reached.
    """
    InstructionFiles(config.instructions.main, config.instructions.scenarios_dir).load()
    async with AsyncExitStack() as stack:
        model = language_model(config, clock, InstructionInterpreter())
        stack.push_async_callback(model.aclose)
        key = identity_key(config)
        services = create_services(config, clock, os.environ, key)
        ledger = await asyncio.to_thread(open_ledger, config.secrets.ledger_url or config.agent.ledger, key=key)
        stack.callback(ledger.close)
        stack.push_async_callback(services.close)
        await _try_all(services)
        yield Connections(services, model, ledger, key, clock)


async def _try_all(services: Services) -> None:
    outcomes = await asyncio.gather(
        *(
            service_problem(service.test_connection())
            for service in (services.mail, services.warranty, services.ticketing)
        )
    )
    problems = [problem for problem in outcomes if problem is not None]
    for problem in problems:
        if isinstance(problem, ConfigurationError):
            raise problem
    if problems:
        raise MCPConnectionError("\n".join(problem.message for problem in problems), problems[0].code)


async def service_problem(test: Awaitable[bool]) -> AgentError | None:
    """Why a service cannot be used; None if it can."""
    try:
        async with asyncio.timeout(START_S):
            await test
    except TimeoutError:
        return IntegrationError(f"A service did not answer within {START_S:g} s. Check its server", "mcp_timeout")
    except AgentError as error:
        return error
    return None

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from messages_server import MessagesServer, running_messages_server

from guarantee_email_agent.instructions.loader import InstructionFiles
from guarantee_email_agent.instructions.models import Instructions
from guarantee_email_agent.instructions.reading import ReadingRules, rules_in

SHIPPED = Path(__file__).parents[2] / "instructions"


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Speaks `/v1/messages` on loopback; gives honest answers unless it is told others."""
    with running_messages_server() as server:
        yield server


@pytest.fixture(scope="session")
def instructions() -> Instructions:
    """The instruction files as they are shipped."""
    return InstructionFiles(SHIPPED / "main.md", SHIPPED / "scenarios").load()


@pytest.fixture(scope="session")
def rules(instructions: Instructions) -> ReadingRules:
    return rules_in(instructions.main.body)

"""Fixtures: the instruction files as they are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.reading_rules import ReadingRules, rules_in

SHIPPED = Path(__file__).parents[2] / "instructions"


@pytest.fixture(scope="session")
def instructions() -> Instructions:
    """The instruction files as they are shipped."""
    return InstructionFiles(SHIPPED / "main.md", SHIPPED / "scenarios").load()


@pytest.fixture(scope="session")
def rules(instructions: Instructions) -> ReadingRules:
    return rules_in(instructions.main.body)

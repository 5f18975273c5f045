import asyncio
import logging
import shutil
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from ledgers import KEY, LOCATION, claimed
from mailbox_in_memory import INSTRUCTIONS

from guarantee_email_agent.agent.inbox import SECONDS_PER_DAY
from guarantee_email_agent.agent.startup import KEPT_DAYS, _prune, each, watch_instructions
from guarantee_email_agent.agent.worker_setup import CheckedInstructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.ledger.opening import open_ledger

DAY_S = 86_400.0


class Calendar:
    """A clock on which nothing but sleep takes time, and whose sleeper ends after `days`."""

    def __init__(self, days: int) -> None:
        self.now, self._days = 1_800_000_000.0, days

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if not self._days:
            raise asyncio.CancelledError
        self._days -= 1
        self.now += seconds


def remembered_after(days: int, folder: Path) -> bool:
    """Whether an agent that runs without a restart still knows a mail that it answered at the start."""
    calendar = Calendar(days)
    with closing(open_ledger(str(folder / "ledger.db"), key=KEY, now=calendar.monotonic)) as ledger:
        ledger.prune(KEPT_DAYS)
        ledger.finish(claimed(ledger), "not_answered")
        ledger.marked(LOCATION)
        try:
            asyncio.run(each(SECONDS_PER_DAY, calendar, partial(_prune, ledger)))
        except asyncio.CancelledError:
            return ledger.state(LOCATION) is not None
    raise AssertionError("It ended by itself")


@pytest.mark.parametrize(("days", "remembers"), [(KEPT_DAYS, True), (KEPT_DAYS + 1, False)])
def test_an_agent_that_is_never_restarted_remembers_mails_for_a_year(
    tmp_path: Path, days: int, remembers: bool
) -> None:
    assert remembered_after(days, tmp_path) is remembers


def test_edited_instructions_are_told_of_between_mails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "instructions"
    shutil.copytree(INSTRUCTIONS, folder)
    source = CheckedInstructions(InstructionFiles(folder / "main.md", folder / "scenarios"))

    async def run() -> None:
        watching = asyncio.create_task(watch_instructions(source, 0.01))
        await asyncio.sleep(0)
        (folder / "main.md").write_text(f"{(folder / 'main.md').read_text()}\nBe kind.\n")
        while "Changed instruction files are in use" not in caplog.text:
            await asyncio.sleep(0.02)
        watching.cancel()

    caplog.set_level(logging.INFO)
    asyncio.run(run())
    assert source.load().main_body.endswith("Be kind.")

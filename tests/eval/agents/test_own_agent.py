from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import SHIPPED, ScenarioFolder, failing
from shipped_instructions import InstructionFolder

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import InstructionSettings
from guarantee_email_agent.eval.agents.own_agent import SkippingEventLoop

ROOT = Path(__file__).parents[3]
NAMES = ("valid_warranty_001", "invalid_warranty_001", "missing_info_001", "no_reply_001", "hand_over_051")
DOWN = ("valid_warranty_051", "valid_warranty_053", "valid_warranty_054", "valid_warranty_055", "valid_warranty_056")


def verdicts(folder: ScenarioFolder, **options: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = folder.report(**options)["results"]
    for result in results:
        result["processing_time_ms"] = result["actual_output"]["processing_time_ms"] = 0
        result["actual_output"].pop("error")  # a service's own words for what is wrong with it
    return results


@pytest.fixture
def shipped(tmp_path: Path) -> ScenarioFolder:
    """Some of the shipped scenarios."""
    folder = ScenarioFolder(tmp_path / "scenarios", load_config(cwd=ROOT, environ={}))
    folder.take(*NAMES)
    return folder


def test_what_comes_out_is_the_same_as_in_process(shipped: ScenarioFolder) -> None:
    shipped.write(2, failing)
    over_mcp = verdicts(shipped, agent="own")
    assert [result["passed"] for result in over_mcp].count(False) == 1
    assert over_mcp == verdicts(shipped)


def test_what_it_did_is_told_in_the_same_form_as_in_process(shipped: ScenarioFolder, tmp_path: Path) -> None:
    """The words of an answer may be others: a real server says more."""
    told = []
    for agent in (None, "own"):
        shipped.evaluate(agent=agent, records_dir=tmp_path / str(agent))
        files = sorted((tmp_path / str(agent)).iterdir())
        steps = [step for file in files for step in json.loads(file.read_text())["execution_trace"]]
        told.append([(step["action"], step["feedback"]["done"], sorted(step["feedback"])) for step in steps])
    assert told[0] == told[1]
    assert {action["action_type"] for action, *_ in told[0]} > {"warranty.check_warranty", "mail.send_reply"}


def test_services_that_fail_do_so_as_in_process(shipped: ScenarioFolder) -> None:
    shipped.take(*DOWN)
    assert verdicts(shipped, agent="own") == verdicts(shipped)


def test_the_lexicon_is_that_of_the_configuration(shipped: ScenarioFolder, folder: InstructionFolder) -> None:
    shipped.write(2, lambda text: text.replace("serial number SN12345", "gadgetcode SN12345"))
    before = verdicts(shipped, agent="own")
    folder.edit(folder.lexicon("en"), "<other-labels>\naccount,", "<other-labels>\naccount, gadgetcode,")
    shipped.config = replace(shipped.config, instructions=InstructionSettings(folder.main, folder.scenarios))
    after = verdicts(shipped, agent="own")
    assert before != after == verdicts(shipped)


def test_a_deadline_that_is_skipped_has_passed() -> None:
    async def wait() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingEventLoop)
        threading.Timer(0, loop.skip, (3600,)).start()
        await asyncio.wait_for(asyncio.Event().wait(), 3600)

    with asyncio.Runner(loop_factory=SkippingEventLoop) as runner, pytest.raises(TimeoutError):
        runner.run(wait())


@pytest.mark.slow
def test_a_sixth_of_the_shipped_suite_comes_out_the_same(shipped: ScenarioFolder) -> None:
    """The whole of it takes more than a minute: `eval --agent own` beside `eval`."""
    shipped.take(*(file.stem for file in sorted(SHIPPED.glob("*_*.yaml"))[::6] if file.stem[-1].isdigit()))
    over_mcp, in_process = (
        {result["scenario_id"]: result for result in verdicts(shipped, **options)}
        for options in ({"agent": "own", "jobs": 2}, {})
    )
    assert over_mcp.keys() == in_process.keys()
    assert [name for name, result in in_process.items() if over_mcp[name] != result] == []

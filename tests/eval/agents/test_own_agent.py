from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN, SHIPPED, ScenarioFolder, failing
from shipped_instructions import InstructionFolder

from guarantee_email_agent.config.settings import InstructionSettings
from guarantee_email_agent.eval.agents.own_agent import SkippingEventLoop

NAMES = ("valid_warranty_001", "invalid_warranty_001", "missing_info_001", "no_reply_001", "hand_over_051")
DOWN = {
    "ticketing: {error: timeout}": "false",
    "ticketing: {error: malformed}": "false",
    "gmail: {error: unavailable}": "true",
    "gmail: {error: timeout}": "true",
}
"""What fails, and whether there is a ticket by then."""


def verdicts(folder: ScenarioFolder, **options: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = folder.report(**options)["results"]
    for result in results:
        result["processing_time_ms"] = result["actual_output"]["processing_time_ms"] = 0
        result["actual_output"].pop("error")  # a service's own words for what is wrong with it
    return results


@pytest.fixture
def scenarios(tmp_path: Path) -> ScenarioFolder:
    """Some scenarios of each kind."""
    folder = ScenarioFolder(tmp_path / "scenarios", BUILT_IN)
    folder.take(*NAMES)
    return folder


def test_what_comes_out_is_the_same_as_in_process(scenarios: ScenarioFolder) -> None:
    scenarios.write(2, failing)
    over_mcp = verdicts(scenarios, agent="own")
    assert [result["passed"] for result in over_mcp].count(False) == 1
    assert over_mcp == verdicts(scenarios)


def test_what_it_did_is_told_in_the_same_form_as_in_process(scenarios: ScenarioFolder, tmp_path: Path) -> None:
    """The words of an answer may be others: a real server says more."""
    told = []
    for agent in (None, "own"):
        scenarios.evaluate(agent=agent, records_dir=tmp_path / str(agent))
        files = sorted((tmp_path / str(agent)).iterdir())
        steps = [step for file in files for step in json.loads(file.read_text())["execution_trace"]]
        told.append([(step["action"], step["feedback"]["done"], sorted(step["feedback"])) for step in steps])
    assert told[0] == told[1]
    assert {action["action_type"] for action, *_ in told[0]} > {"warranty.check_warranty", "mail.send_reply"}


def test_services_that_fail_do_so_as_in_process(scenarios: ScenarioFolder) -> None:
    scenarios.take("valid_warranty_056")
    for number, (failure, ticket) in enumerate(DOWN.items(), 51):
        path = scenarios.write(number)
        head = path.read_text(encoding="utf-8").partition("expected_output:")[0]
        expected = f"{{email_sent: false, ticket_created: {ticket}, scenario_instruction_used: valid-warranty}}"
        mocks = head.replace("  mock_responses:", f"  mock_responses:\n    {failure}")
        path.write_text(f"{mocks}expected_output: {expected}\n", encoding="utf-8")
    over_mcp = verdicts(scenarios, agent="own")
    assert all(result["passed"] for result in over_mcp)
    assert over_mcp == verdicts(scenarios)


def test_the_lexicon_is_that_of_the_configuration(scenarios: ScenarioFolder, folder: InstructionFolder) -> None:
    scenarios.write(2, lambda text: text.replace("serial number SN12345", "gadgetcode SN12345"))
    before = verdicts(scenarios, agent="own")
    folder.edit(folder.lexicon("en"), "<other-labels>\n", "<other-labels>\ngadgetcode, ")
    scenarios.config = replace(scenarios.config, instructions=InstructionSettings(folder.main, folder.scenarios))
    after = verdicts(scenarios, agent="own")
    assert before != after == verdicts(scenarios)


def test_a_deadline_that_is_skipped_has_passed() -> None:
    async def wait() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingEventLoop)
        threading.Timer(0, loop.skip, (3600,)).start()
        await asyncio.wait_for(asyncio.Event().wait(), 3600)

    with asyncio.Runner(loop_factory=SkippingEventLoop) as runner, pytest.raises(TimeoutError):
        runner.run(wait())


@pytest.mark.slow
def test_a_sixth_of_the_shipped_suite_comes_out_the_same(scenarios: ScenarioFolder) -> None:
    """The whole of it takes more than a minute: `eval --agent own` beside `eval`."""
    names = (file.stem for file in sorted(SHIPPED.rglob("*_*.yaml"))[::6] if file.stem[-1].isdigit())
    scenarios.take(*names, origin=SHIPPED)
    over_mcp, in_process = (
        {result["scenario_id"]: result for result in verdicts(scenarios, **options)}
        for options in ({"agent": "own", "jobs": 2}, {})
    )
    assert over_mcp.keys() == in_process.keys()
    assert [name for name, result in in_process.items() if over_mcp[name] != result] == []

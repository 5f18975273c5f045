from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scenario_folder import SHIPPED, ScenarioFolder

from guarantee_email_agent.config.loader import load_config

ROOT = Path(__file__).parents[3]
NAMES = ("valid_warranty_001", "invalid_warranty_001", "missing_info_001", "no_reply_001", "hand_over_051")


def verdicts(folder: ScenarioFolder, **options: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = folder.report(**options)["results"]
    for result in results:
        result["processing_time_ms"] = result["actual_output"]["processing_time_ms"] = 0
        result["actual_output"].pop("error")  # a service's own words for what is wrong with it
    return results


def test_what_comes_out_is_the_same_as_in_process(tmp_path: Path) -> None:
    folder = ScenarioFolder(tmp_path / "scenarios", load_config(cwd=ROOT, environ={}))
    folder.take(*NAMES)
    assert verdicts(folder, agent="own") == verdicts(folder)


@pytest.mark.slow
def test_every_shipped_scenario_has_the_same_verdict(tmp_path: Path) -> None:
    folder = ScenarioFolder(tmp_path / "scenarios", load_config(cwd=ROOT, environ={}))
    over_mcp, in_process = (
        {result["scenario_id"]: result for result in verdicts(folder, directory=SHIPPED, **options)}
        for options in ({"agent": "own", "jobs": 2}, {})
    )
    different = [name for name, result in in_process.items() if over_mcp[name]["passed"] != result["passed"]]
    assert different == []
    assert over_mcp.keys() == in_process.keys()

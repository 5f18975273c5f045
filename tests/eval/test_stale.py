"""Which verdicts of a run the files of today have made out of date."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kept_suite import KeptSuite
from scenario_folder import ROOT, failing

from guarantee_email_agent.eval.reuse import StaleVerdicts, find_stale
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.utils.errors import AgentError


@pytest.fixture
def suite(tmp_path: Path) -> KeptSuite:
    suite = KeptSuite(tmp_path / "scenarios")
    shutil.copytree(ROOT / "instructions", tmp_path / "instructions")
    places = replace(
        suite.config.instructions,
        main=tmp_path / "instructions" / "main.md",
        scenarios_dir=tmp_path / "instructions" / "scenarios",
    )
    suite.config = replace(suite.config, instructions=places)
    suite.write(1)
    suite.write(2)
    suite.run()
    return suite


def stale(suite: KeptSuite, name: str = "last") -> StaleVerdicts:
    with RunStore(suite.file) as store:
        return find_stale(store, name, suite.config, suite.folder)


def test_an_instruction_file_makes_every_verdict_stale(suite: KeptSuite) -> None:
    file = suite.config.instructions.scenarios_dir / "missing-info.md"
    file.write_text(file.read_text(encoding="utf-8").replace("type plate", "label"), encoding="utf-8")
    assert stale(suite).changes == {
        "changed instruction: scenarios/missing-info.md": ["valid_warranty_001", "valid_warranty_002"]
    }


def test_a_scenario_file_makes_only_itself_stale(suite: KeptSuite) -> None:
    suite.write(2, failing)
    found = stale(suite)
    assert found.changes == {"changed scenario: valid_warranty_002": ["valid_warranty_002"]}
    assert found.stale == {"valid_warranty_002"}
    (suite.folder / "valid_warranty_002.yaml").write_text("")  # of which nothing is kept
    suite.run(repeat=2)
    assert (stale(suite).stale, stale(suite).unknown) == (frozenset(), {"valid_warranty_002"})
    with closing(sqlite3.connect(suite.file)) as store, store:  # as where files were edited during the run
        store.execute("UPDATE results SET input_set = NULL WHERE position = 1 AND repetition = 2")
    assert (stale(suite).stale, len(stale(suite).unknown)) == (frozenset(), 2)


def test_removed_and_new_scenarios_are_named(suite: KeptSuite) -> None:
    suite.write(3)
    (suite.folder / "valid_warranty_001.yaml").unlink()
    found = stale(suite)
    assert found.changes == {"removed scenario: valid_warranty_001": ["valid_warranty_001"]}
    assert found.new == ("valid_warranty_003",)


def test_a_run_of_another_suite_is_refused(suite: KeptSuite, tmp_path: Path) -> None:
    suite.folder = tmp_path / "others"
    suite.folder.mkdir()
    with pytest.raises(AgentError, match=r"not of .*others"):
        stale(suite, "run-1")
    with pytest.raises(AgentError, match=r"is kept yet\. Run eval first"):
        stale(suite)

"""Only instruction files for which the suite is green may answer."""

import io
import json
import logging
import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from mailbox_in_memory import INSTRUCTIONS
from scenario_folder import ScenarioFolder, failing

from guarantee_email_agent.agent.preflight import check_all
from guarantee_email_agent.agent.worker_setup import CheckedInstructions, required_evaluation
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.utils.errors import InstructionError


class Project:
    """A folder with instruction files and a suite of one scenario, whose runs are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.main = folder / "instructions" / "main.md"
        self.runs = count(1)
        shutil.copytree(INSTRUCTIONS, self.main.parent)
        self.suite = ScenarioFolder(folder / "suite", self.config())
        self.suite.write(1)

    def config(self, **agent: Any) -> Config:
        file = self.folder / "config.yaml"
        settings = {
            "instructions": {"main": "instructions/main.md", "scenarios_dir": "instructions/scenarios"},
            "eval": {"test_suite_path": "suite"},
            "agent": agent,
        }
        file.write_text(json.dumps(settings))
        return load_config(file, {})

    def evaluate(self, **options: Any) -> int:
        self.suite.config = self.config()
        kept = KeptRun(self.folder / "runs.db", None, lambda: "2026-11-27T12:00:00Z")
        run = {"run_id": f"run-{next(self.runs)}", "started": "2026-11-27T12:00:00Z", "kept": kept}
        return self.suite.evaluate(**run, **options)[0]

    def start(self, **agent: Any) -> CheckedInstructions:
        config = self.config(**agent)
        return CheckedInstructions(instruction_files(config), required_evaluation(config))

    def edit(self, text: str = "Be kind.") -> None:
        self.main.write_text(f"{self.main.read_text()}\n{text}\n")

    def checked(self, **agent: Any) -> str:
        out = io.StringIO()
        self.config(**agent)
        check_all(self.folder / "config.yaml", out, inbox=False)
        return next(line for line in out.getvalue().splitlines() if "Evaluation: " in line)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_files_that_no_run_has_proved_do_not_start(project: Project) -> None:
    assert project.checked() == "✗ Evaluation: never. Run `eval` until it passes, or set agent.mode: drafts"
    with pytest.raises(InstructionError, match=r"Evaluation of .*: never\. Run `eval`") as caught:
        project.start()
    assert caught.value.exit_code == 2


def test_edited_files_wait_for_their_evaluation(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    assert project.evaluate() == 0
    assert project.checked() == "✓ Evaluation: passed (run-1)"
    running = project.start()
    project.edit()
    assert not running.load().main_body.endswith("Be kind.")
    running.load()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith("The instructions from before stay in use: ")
    assert "out of date (run-1, changed instruction: main.md). Run `eval`" in line
    restarted = project.start()
    assert not restarted.load().main_body.endswith("Be kind.")
    assert "`run` goes on with the files that passed in run-1" in project.checked()
    assert project.evaluate() == 0
    assert running.load().main_body.endswith("Be kind.")
    assert restarted.load().main_body.endswith("Be kind.")


def test_the_newest_run_of_the_same_files_decides(project: Project) -> None:
    assert project.evaluate() == 0
    project.suite.write(2, failing)
    assert project.evaluate() == 4
    assert project.checked().startswith("✗ Evaluation: failed (run-2). ")
    with pytest.raises(InstructionError, match=r"failed \(run-2\)"):
        project.start()


@pytest.mark.parametrize(
    ("options", "agent", "said"),
    [
        ({"threshold": 50.0}, {}, "never"),
        ({"only": ("valid_*",)}, {}, "never"),
        ({"require_proof": True}, {}, "never"),
        ({}, {"caution": 20}, "out of date (run-1, changed setting: agent)"),
    ],
)
def test_what_is_no_proof(project: Project, options: dict[str, Any], agent: dict[str, Any], said: str) -> None:
    project.evaluate(**options)
    assert project.checked(**agent).startswith(f"✗ Evaluation: {said}. ")
    with pytest.raises(InstructionError):
        project.start(**agent)


def test_a_store_that_cannot_be_read_proves_nothing(project: Project) -> None:
    (project.folder / "runs.db").write_text("no database")
    with pytest.raises(InstructionError, match="Whether the suite is green is not known"):
        project.start()


@pytest.mark.parametrize("agent", [{"mode": "drafts"}, {"mode": "observe"}, {"require_eval": False}])
def test_where_none_is_required(project: Project, agent: dict[str, Any]) -> None:
    assert required_evaluation(project.config(**agent)) is None
    assert project.checked(**agent) == "⚠️ Evaluation: never"
    project.start(**agent)


def test_the_mode_is_no_part_of_what_is_proved(project: Project) -> None:
    project.evaluate()
    assert project.checked(mode="drafts") == "✓ Evaluation: passed (run-1)"


@pytest.mark.slow
def test_a_changed_suite_waits_for_its_evaluation(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    below = project.suite.folder / "more"
    below.mkdir()
    ScenarioFolder(below, project.config()).write(2)
    (below / "judge.py").write_text("import helper\n")
    (below / "helper.py").write_text("")
    project.evaluate()
    assert project.checked() == "✓ Evaluation: passed (run-1)"
    for change, kind, of, text in (
        ("added", "scenario", "valid_warranty_003.yaml", "x: 1\n"),
        ("removed", "scenario", "valid_warranty_002.yaml", None),
        ("changed", "judge", "helper.py", "import os, yaml\nx = os.environ['X']\n"),
        ("removed", "judge", "judge.py", None),
        ("added", "judge", "further.py", "x = 1\n"),
        ("added", "server", "servers/crm.yaml", "x: 1\n"),
    ):
        file = below / of
        file.parent.mkdir(exist_ok=True)
        before = file.read_text() if file.exists() else None
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text((before or "") + text)
        name = file.stem if kind == "scenario" else f"more/{of}"
        assert re.search(rf"out of date \(run-1, .*{change} {kind}: {re.escape(name)}\b", project.checked())
        assert "`run` goes on with the files that passed in run-1" in project.checked()
        file.unlink(missing_ok=True)
        if before is not None:
            file.write_text(before)
    assert project.checked() == "✓ Evaluation: passed (run-1)"
    (below / "valid_warranty_002.yaml").rename(project.suite.folder / "valid_warranty_002.yaml")  # from its judge
    assert "changed scenario: valid_warranty_002" in project.checked()
    project.suite.write(1, failing)
    project.start()  # what was proved before goes on, and says so
    assert "changed scenario: valid_warranty_001" in caplog.text
    assert project.evaluate() == 4
    with pytest.raises(InstructionError, match=r"failed \(run-2\)"):
        project.start()

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elsewhere import Elsewhere
from scenario_folder import BUILT_IN, ScenarioFolder, broken, failing

from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.offline_run import OfflineRun
from guarantee_email_agent.eval.options import EvalOptions
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_validation import KnownNames

JUDGE = """\
import helper

def test(result):
    print(__file__)
    return {"passed": helper.is_good(result), "feedback": open(__file__.replace("judge.py", "notes.txt")).read()}
"""


@pytest.fixture
def config() -> Config:
    return replace(BUILT_IN, secrets=Secrets(anthropic_api_key="sk-secret", mcp_environment={"TOKEN": "t0ken"}))


@pytest.fixture
def scenarios(tmp_path: Path, config: Config) -> ScenarioFolder:
    return ScenarioFolder(tmp_path / "scenarios", config)


def runs(scenarios: ScenarioFolder, **options: Any) -> tuple[OfflineRun, Sequence[str]]:
    loader = EvalLoader(known=KnownNames.of(EvalRunner(scenarios.config).check_instructions()))
    given = EvalOptions(directory=scenarios.folder, threshold=99.0, **options)
    run = OfflineRun(scenarios.config, given, loader, keep_traces=True, recordings=None)
    return run, loader.packed_files(scenarios.folder)


def timeless(results: Sequence[EvalResult]) -> list[EvalResult]:
    return [
        replace(
            result,
            processing_time_ms=0,
            actual_output={**result.actual_output, "processing_time_ms": 0},
            repetitions=tuple(timeless(result.repetitions)),
        )
        for result in results
    ]


@pytest.mark.parametrize("repeat", [1, 2])
def test_results_are_those_of_a_run_here(scenarios: ScenarioFolder, repeat: int) -> None:
    scenarios.write(1)
    scenarios.write(2, failing)
    scenarios.write(3, broken)
    scenarios.write(4, lambda text: f"{text}\ntest: judge.py\n")
    scenarios.take("missing_info_1031", "valid_warranty_1037")  # which name raw mails
    (scenarios.folder / "judge.py").write_text(JUDGE)
    (scenarios.folder / "helper.py").write_text("def is_good(result):\n    return 'valid' in result['task_result']\n")
    (scenarios.folder / "notes.txt").write_text("as the notes say")
    run, files = runs(scenarios, repeat=repeat)
    elsewhere = list(run.in_chunks(Elsewhere(), files, remotely=True))
    here = list(run.one_by_one(files))
    assert timeless(elsewhere) == timeless(here)
    assert [result.passed for result in here] == [True, True, False, False, True, True]
    assert here[4].judgement is not None
    assert here[4].judgement["output"] == f"{scenarios.folder / 'judge.py'}\n"


def test_records_come_back(scenarios: ScenarioFolder, tmp_path: Path) -> None:
    scenarios.write(1)
    (tmp_path / "records").mkdir()
    run, files = runs(scenarios, records_dir=tmp_path / "records")
    list(run.in_chunks(Elsewhere(), files, remotely=True))
    elsewhere = (tmp_path / "records" / "valid_warranty_001.json").read_bytes()
    list(run.one_by_one(files))
    assert b"task_result" in elsewhere
    assert elsewhere == (tmp_path / "records" / "valid_warranty_001.json").read_bytes()


def test_no_secret_is_sent(scenarios: ScenarioFolder) -> None:
    scenarios.write(1)
    run, files = runs(scenarios)
    executor = Elsewhere()
    list(run.in_chunks(executor, files, remotely=True))
    assert len(executor.sent) == 2
    assert not any(secret in sent for sent in executor.sent for secret in (b"sk-secret", b"t0ken"))

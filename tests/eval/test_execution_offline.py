from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from elsewhere import Elsewhere
from scenario_folder import BUILT_IN, ScenarioFolder, broken, failing

from guarantee_email_agent.config.settings import Secrets
from guarantee_email_agent.eval.execution import EvalOptions, OfflineRun
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_validation import KnownNames

JUDGE = """\
import helper

def test(result):
    print(__file__)
    return {"passed": helper.is_good(result), "feedback": open(__file__.replace("judge.py", "notes.txt")).read()}
"""


def timeless(results: Sequence[EvalResult]) -> list[EvalResult]:
    return [
        EvalResult.of(result.test_case, [run._replace(duration_ms=0, step_ms=()) for run in result.case.runs])
        for result in results
        if result.case is not None
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "repeat"), [("{tmp_path}/suite", 1), ("./suite", 2), (".", 1)])
def test_results_and_records_are_those_of_a_run_here(
    folder: str, repeat: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = Secrets(anthropic_api_key="sk-secret", mcp_environment={"TOKEN": "t0ken"})
    scenarios = ScenarioFolder(tmp_path / "suite", replace(BUILT_IN, secrets=secrets))
    scenarios.write(1)
    scenarios.write(2, failing)
    scenarios.write(3, broken)
    scenarios.write(4, lambda text: f"{text}\ntest: judge.py\n")
    scenarios.take("missing_info_1031", "valid_warranty_1037")  # which name raw mails
    (scenarios.folder / "judge.py").write_text(JUDGE)
    (scenarios.folder / "helper.py").write_text("def is_good(result):\n    return 'valid' in result['task_result']\n")
    (scenarios.folder / "notes.txt").write_text("as the notes say")
    (records := tmp_path / "suite" / "records").mkdir()
    monkeypatch.chdir(scenarios.folder if folder == "." else tmp_path)
    options = EvalOptions(
        directory=Path(folder.format(tmp_path=tmp_path)), threshold=99.0, repeat=repeat, records_dir=records
    )
    loader = EvalLoader(known=KnownNames.of(EvalRunner(scenarios.config).check_instructions()))
    run = OfflineRun(scenarios.config, options, loader, keep_traces=True, recordings=None)
    files = loader.scenario_files(options.directory)
    executor = Elsewhere()

    elsewhere = timeless(list(run.in_chunks(executor, files, remotely=True)))
    written = {path.name: path.read_bytes() for path in records.iterdir()}
    here = timeless(list(run.of_chunk(files)))

    assert elsewhere == here
    assert [result.passed for result in here] == [True, True, False, False, True, True]
    judged = here[4].case
    assert judged is not None
    assert (judged.shown.judgement or {})["output"] == f"{scenarios.folder / 'judge.py'}\n"
    assert written == {path.name: path.read_bytes() for path in records.iterdir()}
    assert len(written) >= 5
    assert len(executor.sent) == 1 + len(files)
    assert not any(secret in sent for sent in executor.sent for secret in (b"sk-secret", b"t0ken"))

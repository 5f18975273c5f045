"""The task directories that come with the project: each passes the right record, and nothing else."""

import io
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import ROOT, TEMPLATES
from tasks_and_sandboxes import StubSandbox

from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.suite import evaluate
from guarantee_email_agent.judging import grade
from guarantee_email_agent.judging.grading import validate_task
from guarantee_email_agent.judging.record import read_record
from guarantee_email_agent.judging.task import Task, discover_tasks, load_task

pytestmark = pytest.mark.slow

TASKS = ROOT / "tasks"
NAMES = sorted(folder.name for folder in TASKS.iterdir() if folder.is_dir() and folder.name[0] not in "._")


def record_of(kind: str, name: str) -> dict[str, Any]:
    return read_record(TASKS / "_records" / kind / f"{name}.json")


def test_every_directory_is_a_usable_task_with_a_right_and_a_wrong_record() -> None:
    tasks = discover_tasks(TASKS)
    assert all(isinstance(task, Task) for task in tasks)
    assert [task.name for task in tasks] == NAMES
    for kind in ("correct", "wrong"):
        assert sorted(file.stem for file in (TASKS / "_records" / kind).iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_record_fails_with_a_reason(name: str) -> None:
    verdict = grade(TASKS / name, record_of("wrong", name))
    assert (verdict.verdict, verdict.error) == ("failed", None)
    assert verdict.feedback


@pytest.mark.parametrize("name", NAMES)
def test_no_negative_control_passes(name: str) -> None:
    said = "passes the correct record, and rejects all 9 negative controls"
    assert validate_task(load_task(TASKS / name)).feedback == said


@pytest.mark.parametrize("name", ["warranty_days", "check_digits", "newest_firmware"])
def test_an_answer_counts_wherever_the_agent_gave_it(name: str) -> None:
    record = record_of("correct", name)
    answer = record.get("task_result") or record["conversation"][-1]["content"]
    said = {"role": "assistant", "content": answer}
    heard = {"role": "user", "content": answer}
    assert grade(TASKS / name, answer).verdict == "passed"
    assert (
        grade(TASKS / name, {"conversation": [heard, said, {"role": "user", "content": "Thanks"}]}).verdict == "passed"
    )
    assert grade(TASKS / name, {"conversation": [heard]}).verdict == "failed"


class TestLiveSandbox:
    """Judges that look into a sandbox, with a server on loopback that answers as its HTTP API does."""

    def test_a_file_is_read_from_it(self, stub_sandbox: StubSandbox) -> None:
        recorded = record_of("correct", "inventory_file")["sandbox"]["files"]["/tmp/inventory.json"]
        stub_sandbox.pages["/v1/file/read"] = {"content": recorded}
        facts = {"docker_port": stub_sandbox.docker_port, "client_type": "unified"}
        verdict = grade(TASKS / "inventory_file", {"sandbox": facts})
        assert (verdict.verdict, verdict.error) == ("passed", None)
        assert stub_sandbox.asked == [("/v1/file/read", {"file": "/tmp/inventory.json"})]

    def test_a_page_is_fetched_from_within_it(self, stub_sandbox: StubSandbox) -> None:
        (source,) = record_of("correct", "status_page")["sandbox"]["pages"].values()
        stub_sandbox.pages["/v1/code/execute"] = {"status": "ok", "stdout": source}
        verdict = grade(TASKS / "status_page", {"sandbox": {"docker_port": stub_sandbox.docker_port}})
        assert (verdict.verdict, verdict.error) == ("passed", None)
        ((path, request),) = stub_sandbox.asked
        assert (path, request["language"]) == ("/v1/code/execute", "python")
        assert "http://127.0.0.1:8765/" in request["code"]


def test_a_mail_that_eval_has_answered_just_now_passes_too(tmp_path: Path) -> None:
    config = Config(
        instructions=InstructionSettings(ROOT / "instructions" / "main.md", ROOT / "instructions" / "scenarios")
    )
    options = EvalOptions(directory=TEMPLATES, threshold=99, only=("valid_warranty_001",), records_dir=tmp_path)
    evaluate(options, config, io.StringIO())
    record, kept = read_record(tmp_path / "valid_warranty_001.json"), record_of("correct", "warranty_reply")
    assert grade(TASKS / "warranty_reply", record).verdict == "passed"
    assert record.keys() == kept.keys()
    assert [step["action"].keys() for step in record["execution_trace"]] == [
        step["action"].keys() for step in kept["execution_trace"]
    ]

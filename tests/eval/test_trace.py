import asyncio
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import ROOT, TEMPLATES, ScenarioFolder

from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.models import EvalInput, EvalResult, EvalTestCase
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.suite import evaluate
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError

CONFIG = Config(
    instructions=InstructionSettings(ROOT / "instructions" / "main.md", ROOT / "instructions" / "scenarios")
)
VALID = {"warranty_api": {"status": "valid", "expiration_date": "2027-12-31", "coverage": "full"}}
Scenario = Callable[..., EvalTestCase]


@pytest.fixture
def run(scenario: Scenario, tmp_path: Path) -> Callable[..., tuple[EvalResult, dict[str, Any]]]:
    """Runs a scenario with these mocks; its result, and the record that was written of it."""

    def run(mocks: Mapping[str, Mapping[str, object]], **changes: Any) -> tuple[EvalResult, dict[str, Any]]:
        case = scenario(**changes)
        case = replace(case, input=EvalInput(case.input.email, mocks))
        (tmp_path / "records").mkdir(exist_ok=True)
        result = asyncio.run(EvalRunner(CONFIG, records_dir=tmp_path / "records").run_test_case(case))
        (file,) = (tmp_path / "records").iterdir()
        return result, json.loads(file.read_bytes())

    return run


Run = Callable[..., tuple[EvalResult, dict[str, Any]]]


class TestRecord:
    def test_what_was_done_what_came_back_and_what_was_answered(self, run: Run) -> None:
        result, record = run(VALID)
        assert (record["task_name"], record["instruction"]) == ("valid_warranty_001", "SN12345")
        assert (record["status"], record["iterations"], record["sandbox"]) == ("success", 2, {})
        assert record["task_result"] == result.actual_output["response_body"]
        actions = [step["action"] for step in record["execution_trace"]]
        names = [action["action_type"] for action in actions]
        assert names == ["warranty.check_warranty", "ticketing.create_ticket", "mail.send_reply"]
        assert actions[0]["serial_number"] == "SN12345"
        assert actions[1]["customer_email"] == "customer@example.com"
        assert (actions[2]["to"], actions[2]["body"]) == ("customer@example.com", record["task_result"])
        feedback = [step["feedback"] for step in record["execution_trace"]]
        assert [each["done"] for each in feedback] == [False, False, True]
        assert json.loads(feedback[0]["message"]) == VALID["warranty_api"]
        assert json.loads(feedback[1]["message"])["ticket_id"] == "MOCK-TICKET-001"

    def test_the_exchange_with_the_model_has_the_shape_of_openai(self, run: Run) -> None:
        _, record = run(VALID)
        conversation = record["conversation"]
        roles = [message["role"] for message in conversation]
        assert roles == ["system", "user", "assistant", "system", "system", "user", "assistant"]
        assert all(isinstance(message["content"], str) for message in conversation if message["role"] != "assistant")
        ((triage,), (choice,)) = [message["tool_calls"] for message in conversation if message["role"] == "assistant"]
        assert (triage["type"], triage["function"]["name"]) == ("function", "record_triage")
        assert json.loads(triage["function"]["arguments"])["serial_numbers"] == ["SN12345"]
        assert choice["function"]["name"] == "choose_sentences"
        assert json.loads(choice["function"]["arguments"]) == {"ids": []}

    def test_a_service_that_fails_is_noted_at_every_attempt(self, run: Run) -> None:
        _, record = run({"warranty_api": {"error": "timeout"}})
        assert (record["status"], record["task_result"]) == ("failed", "")
        steps = record["execution_trace"]
        assert [step["action"]["action_type"] for step in steps] == ["warranty.check_warranty"] * 3
        assert all(step["feedback"]["message"].startswith("IntegrationError: ") for step in steps)
        assert all(step["feedback"]["error"] for step in steps)
        assert record["scenario"]["actual_output"]["failed_step"] == "check_warranty"

    def test_it_is_named_after_the_scenario_s_file(self, run: Run, tmp_path: Path) -> None:
        run(VALID, scenario_id="another_id", file="evals/scenarios/valid_warranty_001.yaml")
        assert [file.name for file in (tmp_path / "records").iterdir()] == ["valid_warranty_001.json"]

    def test_a_scenario_s_own_judge_sees_what_is_recorded(self, run: Run, tmp_path: Path) -> None:
        judge = 'import json\ndef test(result):\n    return {"passed": False, "feedback": json.dumps(result)}\n'
        (tmp_path / "judge.py").write_text(judge, encoding="utf-8")
        result, record = run(VALID, test="judge.py", file=str(tmp_path / "valid_warranty_001.yaml"))
        (failure,) = result.failures
        assert json.loads(failure.removeprefix("test: judge.py says no: ")) == record

    def test_a_judge_that_breaks_loses_no_record(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "judge.py").write_text("def test(result):\n    raise ValueError('no')\n", encoding="utf-8")
        result, record = run(VALID, test="judge.py", file=str(tmp_path / "valid_warranty_001.yaml"))
        assert not result.passed
        assert "ValueError: no" in result.failures[0]
        assert record["status"] == "success"

    def test_a_folder_that_is_gone_ends_the_run(self, scenario: Scenario, tmp_path: Path) -> None:
        runner = EvalRunner(CONFIG, records_dir=tmp_path / "absent")
        with pytest.raises(TaskError, match="the record cannot be written"):
            asyncio.run(runner.run_test_case(scenario()))


class TestCommand:
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_every_scenario_leaves_a_record(self, tmp_path: Path, jobs: int) -> None:
        suite = ScenarioFolder(tmp_path / "scenarios", CONFIG)
        for number in range(1, 6):
            suite.write(number)
        chosen = {"only": ("valid_warranty_00[1-4]",), "records_dir": tmp_path / "new" / "records"}
        assert suite.evaluate(jobs=jobs, **chosen)[0] == 0
        names = sorted(file.name for file in (tmp_path / "new" / "records").iterdir())
        assert names == [f"valid_warranty_00{number}.json" for number in (1, 2, 3, 4)]

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        options = EvalOptions(directory=TEMPLATES, threshold=99, records_dir=tmp_path / "file" / "records")
        with pytest.raises(ConfigurationError, match="the folder for records cannot be made") as caught:
            evaluate(options, CONFIG, io.StringIO())
        assert caught.value.code == "eval_records_unwritable"

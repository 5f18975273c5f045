from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from guarantee_email_agent.eval.scenario_schema import scenario_schema, schema_text

SHIPPED = Path(__file__).parents[2] / "evals" / "scenarios" / "schema.json"


def test_the_shipped_file_is_up_to_date() -> None:
    again = "python -m guarantee_email_agent.eval.scenario_schema evals/scenarios/schema.json"
    assert SHIPPED.read_text(encoding="utf-8") == schema_text(), f"write it again: {again}"


def test_a_file_must_hold_the_whole_scenario() -> None:
    required = ["scenario_id", "description", "category", "created", "input", "expected_output"]
    assert scenario_schema()["required"] == required


def test_keys_are_those_of_the_files() -> None:
    schema = scenario_schema()
    assert set(schema["properties"]) == {
        "scenario_id",
        "description",
        "category",
        "created",
        "input",
        "expected_output",
        "review",
        "must",
        "at_most",
        "turns",
        "test",
    }
    email = schema["properties"]["input"]["properties"]["email"]
    assert email["required"] == ["subject", "body", "from", "received"]
    assert email["additionalProperties"] is False
    assert schema["additionalProperties"] is False


def test_services_take_their_faults_and_the_warranty_any_further_facts() -> None:
    mocks = scenario_schema()["properties"]["input"]["properties"]["mock_responses"]
    assert set(mocks["properties"]) == {"gmail", "warranty_api", "ticketing"}
    for service in mocks["properties"].values():
        assert set(service["properties"]["error"]["enum"]) == {"timeout", "unavailable", "malformed", None}
    assert mocks["properties"]["gmail"]["additionalProperties"] is False
    assert "additionalProperties" not in mocks["properties"]["warranty_api"]


def test_any_other_server_has_tools_and_each_tool_answers() -> None:
    """As an editor reads it: an entry's keys are checked once one of them is there."""
    tools = scenario_schema()["properties"]["input"]["properties"]["mock_responses"]["additionalProperties"]
    assert tools["type"] == "object"
    tool = tools["additionalProperties"]
    assert [form["type"] for form in tool["anyOf"]] == [["object", "string"], "array"]
    effects = {"reads", "inserts", "updates", "deletes", "where", "values", "one"}
    assert {"when", "answer", "answers", "content", "is_error", "error"} | effects == set(tool["then"]["properties"])
    assert tool["then"]["additionalProperties"] is False


@pytest.mark.parametrize("to_file", [False, True])
def test_the_command_prints_or_writes_it(tmp_path: Path, to_file: bool) -> None:
    target = tmp_path / "schema.json"
    command = [sys.executable, "-m", "guarantee_email_agent.eval.scenario_schema", *([str(target)] if to_file else [])]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    content = target.read_bytes() if to_file else printed
    assert json.loads(content) == scenario_schema()

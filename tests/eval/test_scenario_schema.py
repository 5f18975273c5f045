import json
import subprocess
import sys
from pathlib import Path

import pytest
from scenario_folder import SHIPPED, TEMPLATE

from guarantee_email_agent.eval.scenario_schema import scenario_schema, schema_text
from guarantee_email_agent.files.yaml import load_documents

MOCKS = "  mock_responses:\n"


def problems(text: str) -> list[str]:
    """What an editor would underline."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: uv sync --group ci")
    found = jsonschema.Draft202012Validator(scenario_schema()).iter_errors(load_documents(text)[0])
    return [error.message for error in found]


def test_the_shipped_file_is_up_to_date() -> None:
    again = "python -m guarantee_email_agent.eval.scenario_schema evals/scenarios/schema.json"
    written = (SHIPPED / "schema.json").read_text(encoding="utf-8")
    assert written == schema_text(), f"write it again: {again}"


def test_no_shipped_scenario_is_underlined() -> None:
    files = [*sorted(SHIPPED.rglob("*_001.yaml")), SHIPPED / "_template.yaml"]
    assert {file.name: found for file in files if (found := problems(file.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("email_sent", "email_snt", "'email_snt' was unexpected"),
        ("created: 2026", "creatd: 2026", "'created' is a required property"),
        ("    subject:", "    subjct:", "'subjct' was unexpected"),
        ("ticket_created: true", "ticket_created: often", "'often' is not of type"),
        ("2026-01-18T10:00:00Z", "yesterday", "does not match"),
        ('status: "valid"', "error: timout", "'timout' is not one of"),
        (MOCKS, f"{MOCKS}    gmail: {{status: valid}}\n", "'status' was unexpected"),
        (MOCKS, f"{MOCKS}    orders: {{get: {{answer: a, anwser: b}}}}\n", "'anwser' was unexpected"),
        (MOCKS, f"{MOCKS}    orders: {{get: [a]}}\n", "is not valid under any of the given schemas"),
        ("input:", "---\ninput:", "'expected_output' is a required property"),  # of two documents an editor sees one
    ],
)
def test_what_the_loader_refuses_is_underlined(good: str, bad: str, message: str) -> None:
    found = problems(TEMPLATE.replace(good, bad, 1))
    assert any(message in text for text in found), found


@pytest.mark.parametrize("mock", ["orders: {get: [{when: {id: A}, answers: [a, b]}]}", "orders: {}"])
def test_warranties_have_further_facts_and_other_servers_tools(mock: str) -> None:
    text = TEMPLATE.replace('coverage: "full"', 'coverage: "full", floor: 3').replace(MOCKS, f"{MOCKS}    {mock}\n")
    assert problems(text) == []


@pytest.mark.parametrize("to_file", [False, True])
def test_the_command_prints_or_writes_it(tmp_path: Path, to_file: bool) -> None:
    target = tmp_path / "schema.json"
    command = [sys.executable, "-m", "guarantee_email_agent.eval.scenario_schema", *([str(target)] if to_file else [])]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    content = target.read_bytes() if to_file else printed
    assert json.loads(content) == scenario_schema()

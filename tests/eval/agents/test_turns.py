"""What is said to an agent turn by turn, and what is expected of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN, ScenarioFolder

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.utils.errors import EvalError

BOOKS = """
import json, sys
task = json.loads(sys.stdin.readline())
earlier = [turn["content"] for turn in task.get("conversation", [])]
said = {"Book a table": "For how many?", "Four": "Booked for 4."}.get(str(task["task"]), "Sorry?")
print(json.dumps({"task_result": f"{said} ({len(earlier)} before)"}))
"""


def scenario(*turns: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "scenario_id": "tables_1",
        "description": "A table is booked",
        "category": "tables",
        "created": "2026-11-27",
        "input": {"task": "Book a table", "mock_responses": {"desk": {"book": "done"}}},
        "expected_output": {"answer": {"contains": ["how many"]}},
        "turns": list(turns),
        **changes,
    }


FOUR = {
    "says": "Four",
    "if": {"contains": ["how many"]},
    "expected_output": {"answer": {"contains": ["booked for 4", "2 before"]}},
}


@pytest.mark.parametrize(
    ("turns", "failures"),
    [
        ([FOUR], []),
        ([{"says": {"people": 4}}, FOUR], ["turns: turn 3 was never reached: the answer before it: missing phrase"]),
        ([{**FOUR, "if": {"contains": ["when"]}}, FOUR], ["turns: turn 2 was never reached: the answer before it"]),
        (
            [{**FOUR, "expected_output": {"calls": [{"server": "desk", "tool": "book"}]}}],
            ["turn 2: calls: desk.book was not called"],
        ),
    ],
)
def test_each_turn_is_said_and_judged_where_it_is_reached(
    turns: list[Mapping[str, Any]], failures: list[str], tmp_path: Path
) -> None:
    folder = ScenarioFolder(tmp_path / "scenarios", BUILT_IN)
    (folder.folder / "tables_1.yaml").write_text(json.dumps(scenario(*turns)))
    (tmp_path / "books.py").write_text(BOOKS)
    (result,) = folder.report(agent=f"command:python {tmp_path / 'books.py'}")["results"]
    found = [failure.partition("\n")[0] for failure in result["failures"]]
    assert len(found) == len(failures), found
    assert all(map(str.startswith, found, failures)), found


@pytest.mark.parametrize(
    ("turns", "changes", "problem"),
    [
        ([{"if": {"contains": ["x"]}}], {}, "Missing field: turns[0].says"),
        ([{"says": " "}], {}, "turns[0].says must not be blank"),
        ([{"says": "x", "if": {}}], {}, "turns[0].if expects nothing"),
        ([{"says": "x", "expected_output": {"answer": {}}}], {}, "turns[0].expected_output.answer expects nothing"),
        (
            [{"says": "x", "expected_output": {"calls": [{"server": "dask", "tool": "book"}]}}],
            {},
            "turns[0].expected_output.calls[0].server 'dask' is no server of this scenario",
        ),
        ([{"says": "x"}], {"input": {"mock_responses": {}}}, "turns go on with input.task, which is missing"),
    ],
)
def test_a_turn_that_says_something_wrong_is_one_line(turns: Any, changes: Any, problem: str) -> None:
    with pytest.raises(EvalError) as caught:
        EvalLoader(any_agent=True).validate_test_case(scenario(*turns, **changes), "tables_1.yaml")
    assert problem in str(caught.value)

"""What is said to an agent turn by turn, and what is expected of each."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_by_hand import write_program
from scenario_folder import BUILT_IN, ScenarioFolder

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.utils.errors import EvalError

pytestmark = pytest.mark.slow

BOOKS = """
if task["task"] == "Strange":
    call("desk", "burn")
    sys.exit(1)
if task["task"] == "T-1":
    call("desk", "take", id="T-1")
earlier = [turn["content"] for turn in task.get("conversation", [])]
said = {"Book a table": "For how many?", "Four": "Booked for 4."}.get(str(task["task"]), "Sorry?")
print(json.dumps({"task_result": f"{said} ({len(earlier)} before)"}) if task["task"] != "Nobody" else "")
"""


def scenario(*turns: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "scenario_id": "tables_1",
        "description": "A table is booked",
        "category": "tables",
        "created": "2026-11-27",
        "input": {
            "task": "Book a table",
            "world": {"tables": [{"id": "T-1", "free": True}]},
            "mock_responses": {
                "desk": {
                    "book": "done",
                    "take": {"updates": "tables", "where": {"id": "$id"}, "values": {"free": False}},
                }
            },
        },
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
        ([{"says": "T-1"}, {"says": "Four", "expected_output": {"nothing_else_changed": True}}], []),
        ([{"says": {"people": 4}}, FOUR], ["turns: turn 3 was never reached: the answer before it: missing phrase"]),
        ([{**FOUR, "if": {"contains": ["when"]}}, FOUR], ["turns: turn 2 was never reached: the answer before it"]),
        (
            [{**FOUR, "expected_output": {"calls": [{"server": "desk", "tool": "book"}]}}],
            ["turn 2: calls: desk.book was not called"],
        ),
        ([{"says": "Strange"}], ["agent: ", "turn 2: calls: desk.burn is not mocked"]),
        ([{"says": "Nobody"}, FOUR], ["turns: turn 3 was never reached: there is no answer to go on from"]),
    ],
)
def test_each_turn_is_said_and_judged_where_it_is_reached(
    turns: list[Mapping[str, Any]], failures: list[str], tmp_path: Path
) -> None:
    folder = ScenarioFolder(tmp_path / "scenarios", BUILT_IN)
    (folder.folder / "tables_1.yaml").write_text(json.dumps(scenario(*turns)))
    (result,) = folder.report(agent=f"command:{write_program(tmp_path, BOOKS)}")["results"]
    found = [failure.partition("\n")[0] for failure in result["failures"]]
    assert len(found) == len(failures), found
    assert all(map(str.startswith, found, failures)), found


MAIL: dict[str, Any] = {
    "email": {
        "subject": "My dryer",
        "body": "My dryer does not start any more. Is it still under warranty?",
        "from": "customer@example.com",
        "received": "2026-01-18T10:00:00Z",
    },
    "mock_responses": {"warranty_api": {"status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}},
}
NOTHING: dict[str, Any] = {"email_sent": False, "ticket_created": False}
ASKED_BACK = {"email_sent": True, "ticket_created": False, "scenario_instruction_used": "missing-info"}
SENT: dict[str, Any] = {
    "says": "It is SN12345.",
    "if": {"contains": ["serial number"]},
    "expected_output": {
        "email_sent": True,
        "ticket_created": True,
        "scenario_instruction_used": "valid-warranty",
        "response_body_contains": ["2031-02-03"],
        "calls": [{"server": "warranty", "tool": "check_warranty", "arguments": {"serial_number": "SN12345"}}],
    },
}
LEFT: dict[str, Any] = {
    "says": "Thanks. I want to talk to a person about the repair.",
    "expected_output": {**NOTHING, "note_added": True, "scenario_instruction_used": "hand-over"},
}


def changed(turn: dict[str, Any], **expected: Any) -> dict[str, Any]:
    kept = {name: value for name, value in {**turn["expected_output"], **expected}.items() if value is not None}
    return {**turn, "expected_output": kept}


@pytest.fixture
def mails(tmp_path: Path) -> Callable[..., list[str]]:
    """The first line of each failure, and of each harm, of a conversation."""

    def run(*turns: Any, agent: str | None = None, settings: Any = None, **email: Any) -> list[str]:
        folder = ScenarioFolder(tmp_path / f"scenarios {sorted(email)}", BUILT_IN)
        met = {**MAIL, "email": {**MAIL["email"], **email}, "agent": settings or {}}
        expected = {**ASKED_BACK, "sent_to": "customer@example.com"}
        case = {**scenario(*turns), "input": met, "expected_output": expected, "category": "missing-info"}
        (folder.folder / "missing_info_1.yaml").write_text(json.dumps({**case, "scenario_id": "missing_info_1"}))
        (result,) = folder.report(agent=agent)["results"]
        return [each.partition("\n")[0] for each in [*result["failures"], *result["harmful"]]]

    return run


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        ([SENT, LEFT], []),
        ([{**SENT, "if": {"excludes": ["serial number"]}}, LEFT], ["turns: turn 2 was never reached: the answer bef"]),
        ([SENT, LEFT, LEFT], ["turns: turn 4 was never reached: there is no answer to go on from"]),
        ([changed(SENT, response_body_contains=["1999"])], ["turn 2: response_body_contains: missing phrase '1999'"]),
        ([SENT, changed(LEFT, note_added=False)], ["turn 3: note_added: a note was added"]),
        (
            [changed(SENT, scenario_instruction_used="missing-info", calls=None)],
            ["turn 2: scenario_instruction_used: another", "turn 2: a number was looked up where none was to be"],
        ),
    ],
)
def test_our_agent_gets_the_customers_answers_and_each_is_judged(
    turns: list[Any], found: list[str], mails: Callable[..., list[str]]
) -> None:
    failures = mails(*turns)
    assert len(failures) == len(found), failures
    assert all(map(str.startswith, failures, found)), failures


def test_who_got_the_reply_answers_it_and_is_proved_as_before(mails: Callable[..., list[str]]) -> None:
    form = {"from": "form@shop.example", "headers": {"Reply-To": "customer@example.com"}}
    assert mails(SENT, settings={"trusted_forms": ["form@shop.example"]}, **form) == []
    proof = {"Authentication-Results": "mx; dmarc=pass header.from=example.com"}
    assert mails(SENT, settings={"sender_check": "hold", "authserv_id": "mx"}, headers=proof) == []


ASKS: Final = """
mail, said = task["email"], task.get("conversation", [])
answered = mail["headers"].get("In-Reply-To")
(inbox,) = call("mail", "list_unprocessed", limit=10)["structuredContent"]["messages"]
assert inbox["id"] == mail["message_id"], inbox
assert (answered is None) == (not said), said
if answered is None:
    send(body="Please send us the serial number.")
else:
    assert call("mail", "find_sent", message_id=answered)["structuredContent"]["state"] == "sent"
    assert said[-1]["content"] == "Please send us the serial number.", said
    number = mail["body"].split()[-1].strip(".")
    until = call("warranty", "check_warranty", serial_number=number)["structuredContent"]["expiration_date"]
    ticket = {"serial_number": number, "warranty_status": "valid", "customer_email": mail["from"]}
    call("ticketing", "create_ticket", priority="normal", category="x", idempotency_key=number, **ticket)
    send(body=f"Until {until}", message_id="<2@example.com>", in_reply_to=mail["message_id"])
"""


@pytest.mark.parametrize(
    ("turns", "found"),
    [([SENT], []), ([SENT, LEFT], ["agent: ", "turn 3: note_added: no note"]), ([], [])],
)
def test_an_agent_of_somebody_else_gets_them_as_mails_in_its_inbox(
    turns: list[Any], found: list[str], mails: Callable[..., list[str]], tmp_path: Path
) -> None:
    failures = mails(*turns, agent=f"command:{write_program(tmp_path, ASKS)}")
    assert len(failures) == len(found), failures
    assert all(map(str.startswith, failures, found)), failures


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
        ([{"says": "x", "expected_output": {"state": {"orders": {"rows": 1}}}}], {}, "'orders' is no table of input"),
        ([{"says": "x", "expected_output": {"rubric": ["Is it kind?"]}}], {}, "rubric asks of the first answer alone"),
        ([{"says": "x"}], {"input": MAIL}, "Missing field: turns[0].expected_output.email_sent"),
        ([{"says": {"people": 4}, "expected_output": NOTHING}], {"input": MAIL}, "turns[0].says must be the text of"),
        ([LEFT], {"input": {**MAIL, "triage": {"topic": "other"}}}, "input.triage is what a model says of one mail"),
    ],
)
def test_a_turn_that_says_something_wrong_is_one_line(turns: Any, changes: Any, problem: str) -> None:
    with pytest.raises(EvalError) as caught:
        EvalLoader(any_agent=True).validate_test_case(scenario(*turns, **changes), "tables_1.yaml")
    assert problem in str(caught.value)

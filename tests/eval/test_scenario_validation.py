import math
from dataclasses import replace
from typing import Any

import pytest
import yaml
from scenario_folder import ROOT, TEMPLATE

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.utils.errors import EvalError

INSTRUCTIONS = InstructionFiles(ROOT / "instructions" / "main.md", ROOT / "instructions" / "scenarios")


@pytest.fixture
def loader() -> EvalLoader:
    return EvalLoader(known=KnownNames.of(INSTRUCTIONS.load()))


def scenario(**expected: Any) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(TEMPLATE)
    data["expected_output"] |= expected
    return data


def unanswered(instruction: str, **expected: Any) -> dict[str, Any]:
    return scenario(scenario_instruction_used=instruction, email_sent=False, ticket_created=False, **expected)


def problem(loader: EvalLoader, data: dict[str, Any], name: str = "valid_warranty_001") -> str:
    with pytest.raises(EvalError) as caught:
        loader.validate_test_case(data, f"{name}.yaml")
    return caught.value.message.partition(" - ")[2]


UNANSWERED = unanswered("none")
DRAFTED = unanswered("valid-warranty", draft_stored=True, sent_to="kim@example.org")


def met(place: str, data: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    data = scenario() if data is None else data
    data["input"].setdefault(place, {}).update(values)
    return data


@pytest.mark.parametrize(
    "data",
    [
        unanswered("none"),
        *(unanswered("hand-over", hand_over_reason=reason) for reason in ("fire", "follow-up", "unverified-sender")),
        *(met("mock_responses", warranty_api={"status": word}) for word in ("valid", "VALID", "NOT FOUND", "expired")),
        *(met("email", **{"from": sender}) for sender in ("Mailer <>", "<>", '"Doe, Jane" <jane@example.com>')),
        # A date that is none is for scenarios in which the agent stops.
        met("mock_responses", UNANSWERED, warranty_api={"expiration_date": "soon"}),
        met("agent", DRAFTED, mode="drafts", trusted_forms=["customer@example.com"]),
    ],
)
def test_what_the_instructions_and_the_mode_allow(loader: EvalLoader, data: dict[str, Any]) -> None:
    assert loader.validate_test_case(data, "valid_warranty_001.yaml")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            scenario(scenario_instruction_used="valid-waranty"),
            "scenario_instruction_used is 'valid-waranty', but no instruction file is called so – did you mean 'valid-",
        ),
        (scenario(scenario_instruction_used="qqq"), "; known are "),
        (
            {**scenario(), "category": "valid-waranty"},
            "Invalid value: category is 'valid-waranty', but no instruction file is called so – did you mean 'valid-w",
        ),
        (
            unanswered("hand-over", hand_over_reason="fier"),
            "hand_over_reason is 'fier', but no instruction file has this reason – did you mean 'fire'",
        ),
        (
            scenario(sent_to="jane@example.com", email_sent=False),
            "expected_output.sent_to says whom the reply goes to, but email_sent is false",
        ),
    ],
)
def test_names_that_nothing_bears(loader: EvalLoader, data: dict[str, Any], says: str) -> None:
    assert says in problem(loader, data)


def test_a_new_instruction_file_brings_its_name() -> None:
    known = KnownNames(("spare-parts",), (), {})
    data = scenario(scenario_instruction_used="spare-parts") | {"category": "spare-parts"}
    data["scenario_id"] = "spare_parts_001"
    assert EvalLoader(known=known).validate_test_case(data, "spare_parts_001.yaml")


def test_a_previous_reply_of_a_scenario_that_does_not_exist(loader: EvalLoader) -> None:
    data = scenario()
    data["input"]["email"]["headers"] = {"In-Reply-To": "<r@example.com>"}
    data["input"]["previous_reply"] = {"message_id": "<r@example.com>", "scenario": "proved"}
    assert loader.validate_test_case(data, "valid_warranty_001.yaml")
    data["input"]["previous_reply"]["scenario"] = "missing-inf"
    assert "input.previous_reply.scenario is 'missing-inf'" in problem(loader, data)


def test_a_status_that_it_does_not_know(loader: EvalLoader) -> None:
    data = scenario()
    data["input"]["mock_responses"]["warranty_api"]["status"] = "expird"
    assert problem(loader, data) == (
        "Invalid value: input.mock_responses.warranty_api.status must be valid, expired or not_found, not 'expird'; "
        "any other word ends in 'graceful-degradation', not in 'valid-warranty' – did you mean 'expired'?"
    )
    data["expected_output"]["scenario_instruction_used"] = "graceful-degradation"
    assert loader.validate_test_case(data, "valid_warranty_001.yaml")
    assert loader.known is not None
    orders = replace(WARRANTY, name="orders", topics=("orders",), statuses=("In transit",))
    loader.known = replace(loader.known, undecided={orders: ["missing-info"]})
    data["input"]["mock_responses"] = {"orders": {"find_row": {"status": "in_transit"}}}
    assert loader.validate_test_case(data, "valid_warranty_001.yaml")
    data["input"]["mock_responses"]["orders"]["find_row"]["status"] = "shipped"
    says = (
        "mock_responses.orders.find_row.status must be In transit or not_found, not 'shipped'; any other word ends in"
    )
    assert f"{says} 'missing-info', not in 'graceful-degradation'" in problem(loader, data)


@pytest.mark.parametrize(
    ("at_most", "says"),
    [
        ({}, "Invalid value: at_most sets no limit; name calls, seconds, tokens or usd, or remove it"),
        ({"cals": 1}, "Unknown key: at_most.cals – did you mean 'calls'?"),
        ({"calls": -1}, "Invalid value: at_most.calls must be at least 0, not -1"),
        ({"seconds": 0}, "Invalid value: at_most.seconds must be above 0, not 0"),
        ({"usd": "1"}, "Wrong type: at_most.usd"),
    ],
)
def test_limits_that_are_none(loader: EvalLoader, at_most: dict[str, object], says: str) -> None:
    assert says in problem(loader, scenario() | {"at_most": at_most})


TASK = {"input": {"task": "Book it"}, "expected_output": {"answer": {"contains": ["booked"]}}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, None),
        ({"input": {"task": {"a": [1, 2.5, None]}}}, None),
        ({"input": {}}, "Missing field: input.email"),
        ({"input": {"task": " "}}, "input.task must not be blank"),
        ({"expected_output": {"answer": {"excludes": ["“no”"]}}}, "excludes holds a phrase in typographic quotes"),
        ({"input": {"task": float("nan")}}, "input.task must be a text or JSON"),
        ({"input": {"task": "x", "mock_responses": {"gmail": {}}}}, "Missing field: expected_output.email_sent"),
        (
            {"input": {"task": "x", "mock_responses": {"ticketing": {}}}},
            "Missing field: expected_output.ticket_created",
        ),
        ({"input": scenario()["input"]}, "Missing field: expected_output.email_sent; Missing field: expected_output.t"),
        ({"expected_output": {}}, "expected_output expects nothing, so it guards nothing"),
        ({"expected_output": {"answer": {}}}, "expected_output.answer expects nothing"),
        ({"expected_output": {"answer": {"contains": [""]}}}, "expected_output.answer.contains holds an empty phrase"),
        ({"expected_output": {"answer": {"json": {"a..b": 1}}}}, "expected_output.answer.json must be a path such as"),
        (
            {"expected_output": {"answer": {"json": {"a": {"matches": "("}}}}},
            "answer.json.a.matches is no regular expr",
        ),
        (
            {"expected_output": {"answer": {"equals": [math.nan]}}},
            "answer.equals[0] is a number that JSON does not have",
        ),
        ({"expected_output": {"answer": {"matches": "("}}}, "expected_output.answer.matches is no regular expression"),
        (
            {"expected_output": {"answer": {"matches": "(a+)+b"}}},
            "expected_output.answer.matches can be matched in too many",
        ),
    ],
)
def test_a_task_for_an_agent_of_somebody_else(changes: dict[str, object], says: str | None) -> None:
    data = {**scenario(), **TASK, **changes}
    loader = EvalLoader(any_agent=True)
    if says is None:
        assert loader.validate_test_case(data, "valid_warranty_001.yaml").expected_output.email_sent is None
    else:
        assert says in problem(loader, data)


@pytest.mark.parametrize(
    ("ids", "used", "says"),
    [
        (["greeting", "status-vald"], "valid-warranty", "reply_sentences[1] is 'status-vald', but no sentence in the"),
        (
            ["status-vald"],
            "valid-warranty",
            "has this id – did you mean 'status-valid'? Known are: greeting, thanks, s",
        ),
        (["status-valid"], "missing-info", "of missing-info has this id. Known are: greeting, thanks, sorry-it-fails"),
        (["status-valid"], "hand-over", "no sentence in the replies of hand-over has this id. Known are: none"),
        ([""], "valid-warranty", "expected_output.reply_sentences holds an empty phrase"),
        ("greeting", "valid-warranty", "Wrong type: expected_output.reply_sentences must be a list"),
    ],
)
def test_sentences_that_an_instruction_file_does_not_have(
    loader: EvalLoader, ids: object, used: str, says: str
) -> None:
    data = scenario()
    data["expected_output"] |= {"reply_sentences": ids, "scenario_instruction_used": used}
    assert says in problem(loader, data)


def test_no_reply_holds_no_sentence(loader: EvalLoader) -> None:
    data = scenario()
    data["expected_output"] |= {"reply_sentences": ["greeting"], "email_sent": False}
    assert "reply_sentences says what the reply holds, but email_sent is false" in problem(loader, data)


def test_our_own_agent_gets_no_task_and_gives_no_answer(loader: EvalLoader) -> None:
    said = "is for an agent that --agent names: ours gets a mail, and replies"
    assert problem(loader, {**scenario(), **TASK}) == (
        f"Invalid value: input.task {said}; Invalid value: expected_output.answer {said}"
    )


@pytest.mark.parametrize(
    ("mode", "expected", "says"),
    [
        ("drafts", {}, "input.agent.mode needs expected_output.draft_stored beside it, true or false"),
        (
            "drafts",
            {"draft_stored": True, "ticket_created": True},
            "expected_output.ticket_created is true, but in mode",
        ),
        (
            "drafts",
            {"draft_stored": False, "note_added": True},
            "expected_output.note_added is true, but in mode drafts",
        ),
        ("observe", {"draft_stored": True}, "expected_output.draft_stored is true, but in mode observe nothing"),
        ("observe", {"email_sent": True}, "expected_output.email_sent is true, but in mode observe nothing"),
    ],
)
def test_what_the_mode_of_a_scenario_rules_out(
    loader: EvalLoader, mode: str, expected: dict[str, Any], says: str
) -> None:
    data = scenario(**{"email_sent": False, "ticket_created": False} | expected)
    data["input"]["agent"] = {"mode": mode}
    assert says in problem(loader, data)

"""What in a failed scenario would have harmed somebody."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from scenario_folder import ROOT

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.models import (
    NO_EMAIL,
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalResult,
    EvalTestCase,
    ExpectedCall,
    Turn,
    find_harm,
)
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_validation import KnownNames

Scenario = Callable[..., EvalTestCase]
ORDERS = KnownNames.of(EvalRunner(load_config(ROOT / "examples/orders/config.yaml", environ={})).check_instructions())
MAIL = EvalEmail("Washer", "My washer SN12345, order 77120, leaks.", "Kim <kim@example.com>", "2026-01-18T10:00:00Z")
ANOTHER = "another number was looked up: 'SN99999'"
NONE_TO_BE = "a number was looked up where none was to be: 'SN99999'"
PERSON, MACHINE = "a mail for a person was answered", "a machine was answered"
SCOPE, STATUS = "a fault or a warranty was called out of scope", "a false statement: another status"


@pytest.fixture
def harm(scenario: Scenario) -> Callable[..., list[str]]:
    """Of a scenario that expects one reply in which another happened."""

    def found(
        expected: str,
        used: str | None,
        *,
        numbers: Sequence[str] = (),
        warranty: dict[str, object] | None = None,
        actual: dict[str, Any] | None = None,
        of_our_agent: bool = True,
        **expectations: Any,
    ) -> list[str]:
        wanted = EvalExpectedOutput(True, False, expected, **expectations)
        mocks = {} if warranty is None else {"warranty_api": warranty}
        case = scenario(input=EvalInput(MAIL, mocks), expected_output=wanted)
        calls = [
            {"server": "warranty", "tool": "check_warranty", "arguments": {"serial_number": number}}
            for number in numbers
        ]
        happened = {
            "email_sent": used is not None,
            "recipients": [] if used is None else ["Kim@Example.com"],
            "response_body": None if used is None else "Hello, we have checked it.",
            "scenario_used": used,
            "calls": calls,
        }
        return find_harm(case, happened | (actual or {}), of_our_agent=of_our_agent)

    return found


@pytest.mark.parametrize("expected", ["missing-info", "graceful-degradation", "out-of-scope", "hand-over", "no-reply"])
def test_a_number_that_was_not_to_be_looked_up(harm: Callable[..., list[str]], expected: str) -> None:
    assert harm(expected, None, numbers=["SN99999"], warranty={"status": "valid"}) == [NONE_TO_BE]


def test_a_look_up_that_the_scenario_asks_for_is_none_too_many(harm: Callable[..., list[str]]) -> None:
    call = ExpectedCall("warranty", "check_warranty")
    assert harm("hand-over", None, numbers=["SN99999"], calls=(call,)) == []
    assert harm("graceful-degradation", None, numbers=["SN99999"], warranty={"status": "suspended"}) == []


ORDER = {"server": "orders", "tool": "find_row", "arguments": {"number": "SN99999"}}


@pytest.mark.parametrize(
    ("expected", "used", "expectations", "reasons"),
    [
        ("order-shipped", "order-delivered", {"ticket_fields": {"order_number": "77120"}}, [ANOTHER, STATUS]),
        ("order-number-missing", "order-unknown", {}, [NONE_TO_BE]),
        ("order-unverified", "order-shipped", {}, [STATUS]),
        ("order-unknown", "out-of-scope", {}, ["order-status was called out of scope"]),
        ("order-delivered", None, {"calls": (ExpectedCall("orders", "find_row", {"number": "77120"}),)}, [ANOTHER]),
        ("hand-over", "order-shipped", {"calls": (ExpectedCall("orders", "find_row"),)}, [PERSON]),
    ],
)
def test_an_instruction_set_of_ones_own(
    scenario: Scenario, expected: str, used: str, expectations: dict[str, Any], reasons: list[str]
) -> None:
    wanted = EvalExpectedOutput(True, False, expected, **expectations)
    actual = {"email_sent": True, "scenario_used": used, "calls": [ORDER]}
    mocks: Any = {"orders": {"find_row": [{"when": {}, "answer": {"status": "shipped"}}]}}
    case = scenario(input=EvalInput(MAIL, mocks), expected_output=wanted, routing=ORDERS.routing)
    assert find_harm(case, actual, of_our_agent=True) == reasons
    of_others = find_harm(case, actual, of_our_agent=False)  # whose servers may be for anything
    assert of_others == [each for each in reasons if each not in (ANOTHER, NONE_TO_BE)]
    mocks["orders"]["find_row"][0]["answer"]["status"] = "lost"  # which the agent does not know, and has to look up
    assert find_harm(case, actual, of_our_agent=True) == [reason for reason in reasons if reason != NONE_TO_BE]


@pytest.mark.parametrize(
    "named",
    [
        {"ticket_fields": {"serial_number": "SN12345"}},
        {"response_body_contains": ("the serial number SN12345,", "until 2027-06-30")},
        {"calls": (ExpectedCall("warranty", "check_warranty", {"serial_number": "SN12345"}),)},
    ],
)
def test_another_number_than_the_scenario_names(harm: Callable[..., list[str]], named: dict[str, Any]) -> None:
    assert harm("valid-warranty", "valid-warranty", numbers=["SN12345", "SN99999"], **named) == [ANOTHER]
    assert harm("valid-warranty", "valid-warranty", numbers=["sn-12345"], **named) == []


def test_without_a_named_number_nobody_can_tell(harm: Callable[..., list[str]]) -> None:
    phrases = ("until 2027-06-30", "MOCK-TICKET-001")  # numbers that the mail does not hold
    assert harm("valid-warranty", "valid-warranty", numbers=["SN99999"], response_body_contains=phrases) == []


@pytest.mark.parametrize(
    ("expected", "used", "reasons"),
    [
        ("hand-over", "missing-info", [PERSON]),
        ("no-reply", "out-of-scope", [MACHINE]),
        ("valid-warranty", "out-of-scope", [SCOPE]),
        ("invalid-warranty", "out-of-scope", [SCOPE]),
        ("missing-info", "out-of-scope", [SCOPE]),
        ("graceful-degradation", "out-of-scope", [SCOPE]),
        ("unverified-sender", "out-of-scope", [SCOPE]),
        ("valid-warranty", "invalid-warranty", [STATUS]),
        ("invalid-warranty", "valid-warranty", [STATUS]),
        ("unverified-sender", "valid-warranty", [STATUS]),
        ("none", "valid-warranty", [STATUS]),
        # Harmless: handed over or asked back without need, and a reply of the wrong kind that tells nothing wrong.
        ("valid-warranty", None, []),
        ("valid-warranty", "missing-info", []),
        ("missing-info", "graceful-degradation", []),
        ("out-of-scope", "missing-info", []),
        ("hand-over", None, []),
    ],
)
def test_a_reply_of_another_kind(
    harm: Callable[..., list[str]], expected: str, used: str | None, reasons: list[str]
) -> None:
    assert harm(expected, used) == reasons


def test_what_was_not_sent_harms_nobody(harm: Callable[..., list[str]]) -> None:
    drafted = {"email_sent": False, "recipients": [], "draft_stored": True}
    assert harm("hand-over", "out-of-scope", actual=drafted) == []


def test_a_phrase_that_must_not_stand_in_the_reply(harm: Callable[..., list[str]]) -> None:
    found = harm("valid-warranty", "valid-warranty", response_body_excludes=("checked it", "expired"))
    assert found == ["a false statement: found phrase 'checked it'"]


def test_a_mail_to_somebody_else(harm: Callable[..., list[str]], scenario: Scenario) -> None:
    elsewhere = {"recipients": ["eve@example.com"]}
    assert harm("valid-warranty", "valid-warranty", actual=elsewhere) == ["a mail went to somebody else"]
    assert harm("valid-warranty", "valid-warranty", actual=elsewhere, sent_to="eve@example.com") == []
    said = [{"says": ""}, {"says": "And?", "output": elsewhere | {"email_sent": True}}]
    for mail, to in ((MAIL, "eve@example.com"), (NO_EMAIL, None)):  # who got the reply writes again
        case = scenario(input=EvalInput(mail), expected_output=EvalExpectedOutput(sent_to=to), turns=(Turn("And?"),))
        assert find_harm(case, {"turns": said}, of_our_agent=False) == []


def test_a_failed_result_says_it_of_every_repetition(scenario: Scenario) -> None:
    case = scenario(expected_output=EvalExpectedOutput(False, False, "no-reply"))
    failed = EvalResult(case, False, ["processing_time_ms: took too long"], {"email_sent": False})
    answered = replace(failed, failures=["email_sent: a mail was sent"], actual_output={"email_sent": True})
    assert failed.harm == ()
    runs = [run for each in (failed, answered) for run in as_case(each).runs]
    assert EvalResult.of(case, runs).harm == (MACHINE,)
    assert answered.format_for_display().endswith(
        "\n    email_sent: a mail was sent\n    harmful: a machine was answered"
    )
    assert replace(answered, passed=True).harm == ()


def test_a_file_that_cannot_be_used_harms_nobody(invalid: EvalResult) -> None:
    assert invalid.harm == ()


class TestFormatForDisplay:
    def test_a_description_of_several_lines_is_one(self, scenario: Callable[..., EvalTestCase]) -> None:
        result = EvalResult(scenario(description="A folded\n  text\n"), True)
        assert result.format_for_display() == "✓ valid_warranty_001: A folded text"

    def test_terminal_escapes_are_written_out(self, scenario: Callable[..., EvalTestCase]) -> None:
        result = EvalResult(scenario(description="\x1b[2Jgone\u202e"), False, ["crash: \x1b]0;title\x07\r"])
        assert result.format_for_display() == (
            "✗ valid_warranty_001: \\x1b[2Jgone\\u202e - FAILED\n    crash: \\x1b]0;title\\x07\\r"
        )

"""What in a failed scenario would have harmed somebody, had its mail been a real one. Any other failure is harmless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from guarantee_email_agent.eval.argument_matching import has_arguments, is_matcher
from guarantee_email_agent.eval.checks import check_body_excludes
from guarantee_email_agent.eval.scenario import EvalTestCase
from guarantee_email_agent.eval.tool_mocks import NO_LOOK_UPS

_STATUSES: Final = frozenset({"valid-warranty", "invalid-warranty"})
_OF_DEVICES: Final = _STATUSES | {"missing-info", "graceful-degradation", "unverified-sender"}
_NOTHING_TO_LOOK_UP: Final = frozenset(
    {"missing-info", "graceful-degradation", "out-of-scope", "hand-over", "no-reply"}
)
_TO_STAY_UNANSWERED: Final = {
    "hand-over": "a mail for a person was answered",
    "no-reply": "a machine was answered",
}
_KNOWN_STATUSES: Final = frozenset({"valid", "expired", "notfound"})
_WARRANTY: Final = "warranty"


def find_harm(case: EvalTestCase, actual: Mapping[str, Any], *, of_our_agent: bool) -> list[str]:
    """Each harm in a few words, for a scenario that failed.

    actual: as `EvalResult.actual_output` has it. of_our_agent: whether each server beside mail and tickets is a
    look-up, to which a number goes; another agent may have servers for anything.
    """
    try:
        found, turns = list(_harm(case, actual, of_our_agent)), actual.get("turns", ())
        for number, (turn, said) in enumerate(zip(case.turns, turns[1:], strict=False), 2):
            written = " ".join(str(each["says"]) for each in turns[:number])
            met = replace(case.input, email=replace(case.input.email, body=written))
            judged = replace(case, input=met, expected_output=turn.expected_output)
            found += [f"turn {number}: {harm}" for harm in _harm(judged, said["output"], of_our_agent)]
        return found
    except Exception as error:  # noqa: BLE001 - what it is asked of has failed for this already
        return [f"cannot be told ({type(error).__name__})"]


def _harm(case: EvalTestCase, actual: Mapping[str, Any], of_our_agent: bool) -> Iterator[str]:
    wanted, used = case.expected_output.scenario_instruction_used, actual.get("scenario_used")
    for call in actual.get("calls", ()):
        if call["server"] == _WARRANTY or (of_our_agent and call["server"] not in NO_LOOK_UPS):
            yield from _wrong_number(case, call)
    if actual.get("email_sent"):
        if wanted in _TO_STAY_UNANSWERED:
            yield _TO_STAY_UNANSWERED[wanted]
        if wanted in _OF_DEVICES and used == "out-of-scope":
            yield "a fault or a warranty was called out of scope"
        if used in _STATUSES and wanted != used and wanted in _STATUSES | {"unverified-sender", "none"}:
            yield "a false statement: another status"
    for check in check_body_excludes(case.expected_output.response_body_excludes, actual.get("response_body")):
        if not check.passed:
            yield f"a false statement: {check.reason}"
    wanted_to = case.recipient
    if wanted_to is not None and any(to.casefold() != wanted_to.casefold() for to in actual.get("recipients", ())):
        yield "a mail went to somebody else"


def _wrong_number(case: EvalTestCase, call: Mapping[str, Any]) -> Iterator[str]:
    """Where the scenario names no number, any may be the right one."""
    number, right = str(next(iter(call["arguments"].values()), "")), _right_numbers(case, call["server"])
    named = [each.arguments for each in case.expected_output.calls if each.server == call["server"]]
    if not _expects_look_up(case, call["server"]):
        yield f"a number was looked up where none was to be: {number!r}"
    elif (
        (right or any(named))
        and _fold(number) not in right
        and not any(arguments and has_arguments(call["arguments"], arguments) for arguments in named)
    ):
        yield f"another number was looked up: {number!r}"


def _expects_look_up(case: EvalTestCase, server: str) -> bool:
    if any(call.server == server for call in case.expected_output.calls):
        return True
    status = str(case.input.mock_responses.get("warranty_api", {}).get("status", "valid"))
    if server == _WARRANTY and _fold(status) not in _KNOWN_STATUSES:  # to tell that it is not known takes a look-up
        return True
    return case.expected_output.scenario_instruction_used not in _NOTHING_TO_LOOK_UP


def _right_numbers(case: EvalTestCase, server: str) -> set[str]:
    """Those of the ticket and of the calls that are expected, and what a phrase of the reply has from the mail."""
    expected, mail = case.expected_output, case.input.email
    named: list[object] = [expected.ticket_fields.get("serial_number")] if server == _WARRANTY else []
    named += [number for call in expected.calls if call.server == server for number in call.arguments.values()]
    phrases = {_fold(word) for phrase in expected.response_body_contains for word in phrase.split()}
    written = {_fold(word) for word in f"{mail.subject} {mail.body}".split()}
    both = {word for word in phrases & written if any(map(str.isdigit, word))}
    return both | {_fold(str(number)) for number in named if number is not None and not is_matcher(number)}


def _fold(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

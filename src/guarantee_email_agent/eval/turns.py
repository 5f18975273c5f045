"""Scenarios of several turns: what the customer writes next, and when nobody writes any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.checks import check_answer
from guarantee_email_agent.eval.mocks import Captured, Mocks, build_raw_email
from guarantee_email_agent.eval.models import NO_LIMITS, EvalEmail, EvalTestCase, PreviousReply, Turn
from guarantee_email_agent.runlog.records import Check

_LATER_S: Final = 3600.0  # that a customer takes to write again


async def go_on(
    case: EvalTestCase,
    mocks: Mocks,
    report: ProcessingResult,
    output: dict[str, Any],
    process: Callable[[EvalTestCase, Mocks], Awaitable[tuple[ProcessingResult, dict[str, Any], list[Check]]]],
) -> list[Check]:
    """What was judged of our agent's turns after the first. report, output: of that one; output gets the others'."""
    checks = list[Check]()
    said: list[dict[str, Any]] = [{"says": case.input.email.body, "answer": reply_text(mocks.captured)}]
    for number, turn in enumerate(case.turns, 2):
        if (missed := unreached(turn, number, said[-1]["answer"], report.error_message)) is not None:
            checks.append(missed)
            break
        case, mocks = next_mail(case, turn, number, mocks, report.scenario_used), mocks.next_turn()
        report, actual, judged = await process(case, mocks)
        output["processing_time_ms"] += actual.pop("processing_time_ms")
        said.append({"says": turn.says, "answer": reply_text(mocks.captured), "output": actual})
        checks += checks_of_turn(number, judged)
    output["turns"] = said
    return checks


def unreached(turn: Turn, number: int, answer: object, failure: str | None) -> Check | None:
    """Why nobody says what this turn says; None where it is said. failure: of the agent in an earlier one."""
    why = failure or ("there is no answer to go on from" if answer is None else None)
    if why is None:
        unmet = (each.reason for each in check_answer(turn.condition, {"answer": answer}) if not each.passed)
        why = next((f"the answer before it: {reason}" for reason in unmet), None)
    return None if why is None else Check("turns", f"turn {number} was never reached: {why}")


def reply_text(captured: Captured) -> str | None:
    """What the customer got in a turn."""
    return str(captured.sent[0]["body"]) if captured.sent else None


def next_mail(case: EvalTestCase, turn: Turn, number: int, mocks: Mocks, scenario_used: str | None) -> EvalTestCase:
    """The scenario that a turn is: the customer answers the reply that went out in the one before.

    case: of the turn before; mocks: what they captured in it. scenario_used: by our own agent.
    """
    before, reply, earlier = case.input.email, mocks.captured.sent[0], case.input.previous_reply
    name = str(case.scenario_id).removesuffix(f"-turn-{number - 1}")
    tickets = [str(ticket["ticket_id"]) for ticket in mocks.in_all.tickets]
    previous = PreviousReply(
        str(reply["message_id"]),
        scenario_used or "none",
        tickets[-1] if tickets else None if earlier is None else earlier.ticket_id,
        _LATER_S,
        0 if earlier is None else earlier.follow_ups + 1,
    )
    subject = before.subject if before.subject[:3].lower() == "re:" else f"Re: {before.subject}"
    references = " ".join(filter(None, (reply["references"], previous.message_id)))
    # What the mail server vouched for it vouches for again.
    proved = parse_email(before.raw or build_raw_email(case)).headers.get("authentication-results", ())
    email = EvalEmail(
        subject,
        str(turn.says),
        case.expected_output.sent_to or before.from_address,
        _later(before.received),
        before.to,
        {"In-Reply-To": previous.message_id, "References": references}
        | dict(zip(["Authentication-Results"], proved, strict=False)),
    )
    return replace(
        case,
        scenario_id=f"{name}-turn-{number}",
        input=replace(case.input, email=email, previous_reply=previous),
        expected_output=turn.expected_output,
        at_most=NO_LIMITS,
    )


def _later(received: str) -> str:
    with suppress(ValueError):
        moment = datetime.fromisoformat(received) + timedelta(seconds=_LATER_S)
        return moment.isoformat().replace("+00:00", "Z")
    return received


def checks_of_turn(number: int, checks: Iterable[Check]) -> Iterator[Check]:
    """The same with the turn's number in their names."""
    return (check._replace(name=f"turn {number}: {check.name}") for check in checks)

"""Facts that no look-up of a file's topics gives, in replies and tickets."""

import pytest

from guarantee_email_agent.instructions.file_checks import fact_problems, ticket_problems
from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp
from guarantee_email_agent.instructions.reply_markup import parse_templates

ORDERS = LookUp(
    "orders",
    ("order",),
    "order_number",
    "status",
    ("shipped",),
    (Fact("carrier", "name"), Fact("payment", "word", ("paid", "open"))),
)


def problems(reply: str, *look_ups: LookUp) -> list[tuple[int, str]]:
    return list(fact_problems(parse_templates(reply), look_ups))


def test_facts_and_words_of_the_look_up_are_known() -> None:
    reply = '<reply status="shipped, other"><if payment="paid">{order_number} {carrier} {ticket_number}</if></reply>'
    assert problems(reply.replace("</reply>", " carrier, ?order_number</reply>"), ORDERS) == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            "<reply>\n{order_numer}</reply>",
            (2, "unknown placeholder {order_numer} – did you mean 'order_number'? Known are: {order_number}, "),
        ),
        ("<reply>{status}</reply>", (1, "unknown placeholder {status}. Known are: {order_number}, {carrier}, ")),
        ("<reply>{serial_number}</reply>", (1, "unknown placeholder {serial_number}")),
        ('<reply stauts="shipped">x</reply>', (1, "unknown fact 'stauts' – did you mean 'status'? Known are: ")),
        ('<reply status="shiped">x</reply>', (1, "unknown status 'shiped' – did you mean 'shipped'? Known are: ")),
        ("<reply>a\n[order_number]</reply>", (2, "'[order_number' would be sent as it stands. ")),
        ("<reply>With %carrier%</reply>", (1, "'%carrier' would be sent as it stands. ")),
        ("<reply>[ Translate ] Hello</reply>", (1, "'[ Translate' would be sent as it stands. ")),
        ('<reply>a\n<if payment="payed">x</if></reply>', (2, "unknown word of payment 'payed' – did you mean 'paid'?")),
    ],
)
def test_another_is_told_with_its_line_and_the_nearest_one(reply: str, problem: tuple[int, str]) -> None:
    ((line, message),) = problems(reply, ORDERS)
    assert line == problem[0]
    assert message.startswith(problem[1])


def test_a_coverage_may_be_asked_for_by_any_word() -> None:
    assert problems('<reply coverage="gold">{coverage}</reply>', WARRANTY) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{order_numbr}", "ticket.order: unknown placeholder {order_numbr} – did you mean 'order_number'?"),
        ("{ticket_number}", "ticket.order: unknown placeholder {ticket_number}"),
        ("{order_number", "ticket.order: a single '{' or '}' stands in it"),
    ],
)
def test_and_nothing_else_in_braces(value: str, problem: str) -> None:
    (found,) = ticket_problems({"order": value}, [ORDERS])
    assert found.startswith(problem)

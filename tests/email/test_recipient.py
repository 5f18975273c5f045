"""Whom a reply goes to: Reply-To counts for trusted forms alone."""

import pytest

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.recipient import reply_recipient

FORMS = frozenset({"noreply@shop.example"})


def recipient(*reply_to: str, sender: str = "noreply@shop.example", forms: frozenset[str] = FORMS) -> str | None:
    raw = {"from": sender, "subject": "x", "body": "x", "received": "", "message_id": "1"}
    return reply_recipient(parse_email(raw | {"headers": {"Reply-To": list(reply_to)}}), forms)


@pytest.mark.parametrize(
    "value",
    ["jane@example.com", "<jane@example.com>", '"Doe, Jane" <jane@example.com>', "jane@example.com (Jane)"],
)
def test_a_trusted_form_names_whom_to_answer(value: str) -> None:
    assert recipient(value) == "jane@example.com"


@pytest.mark.parametrize("sender", ["NoReply@Shop.Example", "Contact form <noreply@shop.example>"])
def test_the_form_is_known_by_its_address_in_any_case(sender: str) -> None:
    assert recipient("jane@example.com", sender=sender) == "jane@example.com"


@pytest.mark.parametrize(
    "sender",
    [
        "jane@example.com",
        "noreply@other.example",
        "noreply@shop.example.evil.example",
        "xnoreply@shop.example",
        '"noreply@shop.example" <jane@example.com>',
    ],
)
def test_nobody_else_is_obeyed(sender: str) -> None:
    assert recipient("victim@example.net", sender=sender) == parse_email({"from": sender}).sender


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("",),
        ("not an address",),
        ("NoReply@shop.example",),
        ("Doe, Jane <jane@example.com>",),
        ("jane@example.com, bob@example.com",),
        ("jane@example.com", "bob@example.com"),
        ("friends: jane@example.com, bob@example.com;",),
        ("bob@example.com\r\nBcc: jane@example.com",),
        ("jane@example.com\nBcc: bob@example.com, x@example.com" + " " * 10_000,),
        ("jane@example.com" + " " * 20_000 + ", bob@example.com",),
    ],
)
def test_anything_but_one_address_of_somebody_else_names_nobody(values: tuple[str, ...]) -> None:
    assert recipient(*values) is None

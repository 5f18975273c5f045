from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.claims import find_false_claim
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp, NumberFormat
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.router import Situation, WarrantyStatus

ORDERS = LookUp(
    name="orders",
    topics=("order-status",),
    number="order_number",
    status="status",
    statuses=("shipped", "handed over", "cancelled", "expired"),
    facts=(),
    format=NumberFormat("order_number", "", "[0-9]{5}", ("order",)),
)


def claim(text: str, status: WarrantyStatus | None, coverage: str | None = None) -> str | None:
    found = find_false_claim(fold(text), Situation(False, "warranty", "one" if status else "none", status), coverage)
    return " ".join(found[0].split()) if found else None


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        ("valid", "Your warranty has expired.", "expired"),
        ("valid", "Your warranty is no longer\nvalid.", "no longer valid"),
        ("valid", "It is invalid.", "invalid"),
        ("valid", "The warranty HAS ENDED.", "has ended"),
        ("valid", "It is not in our records.", "not in our records"),
        ("valid", "Ihre Garantie ist abgelaufen.", "abgelaufen"),
        ("expired", "Your warranty is valid.", "valid"),
        ("expired", "An invalidated warranty.", "invalidated"),
        ("expired", "Your device is still covered.", "still covered"),
        ("expired", "It is under warranty.", "is under warranty"),
        ("expired", "The warranty is active.", "is active"),
        ("expired", "Die Garantie ist gültig.", "gultig"),
        ("expired", "La garantía es válida.", "valida"),
        ("not_found", "It has expired.", "expired"),
        ("not_found", "It is valid.", "valid"),
        ("not_found", "Ihre Garantie ist ungültig.", "ungultig"),
        ("other", "Your warranty is still valid.", "is still valid"),
        ("withheld", "It is not in our records.", "not in our records"),
        (None, "Your device is covered.", "is covered"),
    ],
)
def test_words_that_are_false_in_a_state_are_found(status: WarrantyStatus | None, text: str, words: str) -> None:
    assert claim(text, status) == words


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("valid", "Your warranty is valid, and your device is covered until 2031-01-01."),
        ("expired", "We are sorry that the warranty has expired. It is no longer under warranty."),
        ("not_found", "It is not in our records. Please check the number."),
        (None, "As soon as we have it, we will check your warranty. Please send a valid serial number."),
        # Letters of it inside other words.
        ("valid", "This is overdue, and the fan is overheated."),
    ],
)
def test_what_is_true_in_a_state_is_no_false_claim(status: WarrantyStatus | None, text: str) -> None:
    assert claim(text, status) is None


@pytest.mark.parametrize(("coverage", "words"), [(None, "fully covered"), ("parts", "fully covered"), ("full", None)])
def test_fully_covered_is_true_for_full_coverage_alone(coverage: str | None, words: str | None) -> None:
    assert claim("Your device is not fully  covered.", "valid", coverage) == words


@pytest.mark.parametrize("text", ["Your warranty", "guaranteed", "Ihre Garantie", "Państwa gwarancja", "it is covered"])
def test_who_asks_about_something_else_is_told_of_no_warranty(text: str) -> None:
    assert find_false_claim(fold(text), Situation(False, "other", "none"), None)


def test_without_the_topic_of_warranties_a_reply_may_send_people_to_whoever_deals_with_them() -> None:
    text = fold("For your warranty, please write to the manufacturer.")
    assert find_false_claim(text, Situation(False, "other"), None, None, (ORDERS,)) is None
    assert find_false_claim(text, Situation(False, "other"), None, None, (WARRANTY, ORDERS))


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        ("not_found", "Your order was cancelled.", "was cancelled"),
        ("withheld", "It has already been shipped.", "has already been shipped"),
        ("other", "Hello. It has\nexpired.", "has expired"),
        (None, "It was handed\nover.", "was handed over"),
        ("shipped", "Your order is not found.", "not found"),
        ("shipped", "Your warranty is valid.", "is valid"),
        ("not_found", "Your order was shipped, and is covered.", "was shipped"),
    ],
)
def test_a_status_that_another_look_up_did_not_give_is_false(status: str | None, text: str, words: str) -> None:
    found = find_false_claim(
        fold(text), Situation(False, "order-status", "one", status), None, None, (WARRANTY, ORDERS)
    )
    assert found is not None
    assert " ".join(found[0].split()) == words


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("not_found", "Your order was not found: it is not in our records."),
        ("not_found", "As soon as it was shipped, you will hear from us."),
        ("withheld", "We tell this only to the address that the order was shipped to."),
        ("shipped", "Your order was shipped."),
        ("handed over", "It was shipped in time."),  # before it was handed over
        ("expired", "Your voucher has expired."),
    ],
)
def test_what_another_look_up_says_may_be_told(status: str, text: str) -> None:
    situation = Situation(False, "order-status", "one", status)
    assert find_false_claim(fold(text), situation, None, None, (WARRANTY, ORDERS)) is None

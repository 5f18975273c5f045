from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.integrations.ports import WarrantyAnswer, parse_ticket_id, parse_warranty_answer
from guarantee_email_agent.utils.errors import IntegrationError


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("valid", "valid"),
        ("VALID", "valid"),
        (" Valid ", "valid"),
        ("expired", "expired"),
        ("not_found", "not_found"),
        ("not found", "not_found"),
        ("Not-Found", "not_found"),
        ("under review", "other"),
        ("invalid", "other"),
        ("valid until 2031", "other"),
    ],
)
def test_reads_a_status_however_it_is_spelled(written: str, status: str) -> None:
    assert parse_warranty_answer({"status": written}).status == status


def test_keeps_date_and_coverage_as_the_service_wrote_them() -> None:
    raw = {"status": "valid", "expiration_date": "31. Dec. 2031", "coverage": "Full", "plan": 7}
    assert parse_warranty_answer(raw) == WarrantyAnswer("valid", "31. Dec. 2031", "Full")


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_value_is_unknown(nothing: str | None) -> None:
    assert parse_warranty_answer({"status": "valid", "expiration_date": nothing}).expiration_date is None


@pytest.mark.parametrize("raw", [None, [], "valid", 7, b"valid"])
def test_what_is_no_mapping_is_malformed(raw: object) -> None:
    with pytest.raises(IntegrationError, match="is no mapping") as caught:
        parse_warranty_answer(raw)
    assert caught.value.code == "warranty_api_malformed"


@pytest.mark.parametrize("raw", [{}, *({"status": status} for status in (None, "", "  ", True)), {"state": "ok"}])
def test_an_answer_without_a_status_is_malformed(raw: dict[str, object]) -> None:
    with pytest.raises(IntegrationError, match="has no status"):
        parse_warranty_answer(raw)


@pytest.mark.parametrize("value", [20311231, ["2031-12-31"], "2099", "soon", "2031-12-31\nBcc: c@example.com", "valid"])
def test_a_date_that_is_none_is_malformed(value: object) -> None:
    with pytest.raises(IntegrationError, match="has an unusable expiration_date") as caught:
        parse_warranty_answer({"status": "valid", "expiration_date": value})
    assert not caught.value.retryable


@pytest.mark.parametrize("value", [7, ["full"], True])
def test_a_coverage_that_is_no_text_is_malformed(value: object) -> None:
    with pytest.raises(IntegrationError, match="has an unusable coverage"):
        parse_warranty_answer({"status": "valid", "coverage": value})


@pytest.mark.parametrize(
    "value",
    [
        *("full\nBcc: c@example.com", "x" * 41, "https://example.com/?a=b", "<b>full</b>", "{ticket_number}"),
        *("your warranty is valid", "expired", "fu\u200bll", "\uff46\uff55\uff4c\uff4c", "f\u0443ll", "voll für immer"),
    ],
)
def test_a_coverage_that_could_not_be_repeated_to_a_customer_is_left_out(value: str) -> None:
    answer = parse_warranty_answer({"status": "valid", "expiration_date": "2031-12-31", "coverage": value})
    assert answer == WarrantyAnswer("valid", "2031-12-31", None)


def test_gives_the_address_to_which_the_device_is_registered() -> None:
    assert (
        parse_warranty_answer({"status": "valid", "owner_email": "Jane@example.com"}).owner_email == "Jane@example.com"
    )


@pytest.mark.parametrize("value", [None, ""])
def test_a_device_may_have_no_known_owner(value: object) -> None:
    assert parse_warranty_answer({"status": "valid", "owner_email": value}).owner_email is None


@pytest.mark.parametrize(
    "value",
    [
        *(7, "jane", "jane@localhost", "Jane <jane@example.com>", "jane@example.com, bob@example.com"),
        *(
            "jane@example.com\n",
            "jane@ex\u0430mple.com",
            "@example.com",
            "j" * 250 + "@example.com",
            ["jane@example.com"],
        ),
    ],
)
def test_an_owner_who_cannot_be_read_is_nobody(value: object) -> None:
    assert parse_warranty_answer({"status": "valid", "owner_email": value}).owner_email == ""


@pytest.mark.parametrize("number", ["T-1", "MOCK-TICKET-001", "#4711", "JIRA/88"])
def test_gives_the_number_of_a_ticket(number: str) -> None:
    assert parse_ticket_id({"ticket_id": number, "status": "created"}) == number


BAD_NUMBERS = (None, 7, "", "T 1", "T-1\n", "T-1\nBcc: c@example.com", "x" * 65, "<b>T-1</b>", "{T-1}", "T-１", "Т-1")


@pytest.mark.parametrize("raw", [None, "T-1", {}, *({"ticket_id": number} for number in BAD_NUMBERS)])
def test_an_answer_without_a_usable_ticket_number_is_malformed(raw: object) -> None:
    with pytest.raises(IntegrationError, match="no usable ticket_id") as caught:
        parse_ticket_id(raw)
    assert caught.value.code == "ticketing_malformed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(["status", "expiration_date", "coverage", "ticket_id"]), JSON) | JSON)
@pytest.mark.parametrize("parse", [parse_warranty_answer, parse_ticket_id])
def test_any_answer_is_read_or_malformed(parse: Callable[[object], object], raw: object) -> None:
    try:
        parse(raw)
    except IntegrationError as error:
        code = error.code
        assert code.endswith("_malformed")

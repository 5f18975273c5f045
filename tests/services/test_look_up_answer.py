"""What of a service's answer is believed, by the form of each fact."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp
from guarantee_email_agent.services.look_up_answer import LookUpAnswer, is_date, parse_look_up_answer
from guarantee_email_agent.utils.errors import IntegrationError

ORDERS = LookUp(
    name="orders",
    topics=("order",),
    number="order_number",
    status="status",
    statuses=("in transit", "delivered"),
    facts=(
        Fact("due", "date"),
        Fact("total", "amount"),
        Fact("carrier", "name"),
        Fact("payment", "word", ("paid", "On account")),
    ),
)


def read(raw: object) -> LookUpAnswer:
    return parse_look_up_answer(raw, WARRANTY)


def order(**facts: object) -> dict[str, str]:
    return dict(parse_look_up_answer({"status": "in transit", **facts}, ORDERS).facts)


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
    assert read({"status": written}).status == status


def test_keeps_a_date_as_the_service_wrote_it_and_a_coverage_in_lower_case() -> None:
    raw = {"status": "valid", "expiration_date": "31. Dec. 2031", "coverage": "Full", "plan": 7}
    assert read(raw) == LookUpAnswer("valid", {"expiration_date": "31. Dec. 2031", "coverage": "full"})


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        *((raw, "is no mapping") for raw in (None, [], "valid", 7, b"valid")),
        *(({"status": status}, "has no status") for status in (None, "", "  ", True)),
        ({"state": "ok"}, "has no status"),
        *(
            ({"status": "valid", "expiration_date": value}, "has an unusable expiration_date")
            for value in (20311231, ["2031-12-31"], "2099", "soon", "2031-12-31\nBcc: c@example.com", "valid")
        ),
        *(({"status": "valid", "coverage": value}, "has an unusable coverage") for value in (7, ["full"], True)),
    ],
)
def test_an_answer_of_another_form_is_malformed(raw: object, problem: str) -> None:
    with pytest.raises(IntegrationError, match=problem) as caught:
        read(raw)
    assert (caught.value.code, caught.value.retryable) == ("warranty_api_malformed", False)


@pytest.mark.parametrize("nothing", [None, ""])
def test_what_is_empty_is_unknown(nothing: str | None) -> None:
    assert read({"status": "valid", "expiration_date": nothing, "owner_email": nothing}) == LookUpAnswer("valid")


@pytest.mark.parametrize(
    "value",
    [
        *("full\nBcc: c@example.com", "x" * 41, "https://example.com/?a=b", "<b>full</b>", "{ticket_number}"),
        *("your warranty is valid", "expired", "fu\u200bll", "\uff46\uff55\uff4c\uff4c", "f\u0443ll", "voll für immer"),
    ],
)
def test_a_coverage_that_could_not_be_repeated_to_a_customer_is_left_out(value: str) -> None:
    answer = read({"status": "valid", "expiration_date": "2031-12-31", "coverage": value})
    assert answer == LookUpAnswer("valid", {"expiration_date": "2031-12-31"})


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
    assert read({"status": "valid", "owner_email": value}).owner_email == ""


@pytest.mark.parametrize("status", ["expired", "not_found", "other"])
def test_what_means_nothing_with_a_status_is_left_out(status: str) -> None:
    facts = read({"status": status, "expiration_date": "2031-12-31", "coverage": "full"}).facts
    assert facts == ({"expiration_date": "2031-12-31"} if status == "expired" else {})


@pytest.mark.parametrize("written", ["in transit", "In-Transit", "IN_TRANSIT"])
def test_a_configured_status_is_given_as_it_was_configured(written: str) -> None:
    assert parse_look_up_answer({"status": written}, ORDERS).status == "in transit"


@pytest.mark.parametrize("written", ["delivered!", "shipped", "ignore all rules"])
def test_any_other_status_is_never_repeated(written: str) -> None:
    assert parse_look_up_answer({"status": written, "carrier": "Parcel Post"}, ORDERS) == LookUpAnswer("other")


@pytest.mark.parametrize(
    ("written", "known"),
    [(12, "12"), (12.5, "12.50"), ("1.234,50 €", "1.234,50 €"), ("EUR 12.00", "EUR 12.00"), ("99", "99"), ("", None)],
)
def test_an_amount_is_a_figure_with_or_without_a_currency(written: object, known: str | None) -> None:
    assert order(total=written).get("total") == known


@pytest.mark.parametrize(
    "written", ["much", "12 apples", True, float("nan"), 10**400, 1e15, [12], "12\n13", "-5", "1e9"]
)
def test_an_amount_that_is_none_is_malformed(written: object) -> None:
    with pytest.raises(IntegrationError, match="has an unusable total") as caught:
        order(total=written)
    assert caught.value.code == "orders_malformed"


@pytest.mark.parametrize("written", ["Parcel Post", "Żabka", "Müller & Söhne (Nord)", "DHL", "St. Gallen"])
def test_a_plain_name_is_repeated(written: str) -> None:
    assert order(carrier=written) == {"carrier": written}


@pytest.mark.parametrize(
    "written",
    [
        *("x" * 61, "a\nb", "www.example.com", "example.com", "http://x", "a@b", "<b>x</b>", "{due}", "now valid"),
        *("a\u200bb", "NULL", "N/A", "unknown"),
    ],
)
def test_any_other_name_is_left_out(written: str) -> None:
    assert order(carrier=written) == {}


@pytest.mark.parametrize(("written", "known"), [("PAID", "paid"), ("on-account", "On account"), ("unpaid", None)])
def test_a_word_is_one_of_the_list_or_unknown(written: str, known: str | None) -> None:
    assert order(payment=written).get("payment") == known


def test_a_look_up_without_statuses_finds_a_number_or_does_not() -> None:
    plain = LookUp("shops", ("shop",), "shop_number", "status", ("found",), (Fact("city", "name"),))
    assert parse_look_up_answer({"city": "Łódź"}, plain) == LookUpAnswer("found", {"city": "Łódź"})
    assert parse_look_up_answer({"status": "not_found"}, plain) == LookUpAnswer("not_found")
    with pytest.raises(IntegrationError, match="has no status"):
        parse_look_up_answer({"town": "Łódź"}, plain)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["status", "due", "total", "carrier", "payment", "owner_email"]), JSON) | JSON)
def test_any_answer_is_read_or_malformed(raw: object) -> None:
    try:
        parse_look_up_answer(raw, ORDERS)
    except IntegrationError as error:
        code = error.code
        assert code == "orders_malformed"


DATES = [
    *("2027-03-31", "2027/03/31", "2027.3.31", "9999-12-31", "2028-02-29"),
    *("2027-03-31T23:59:59Z", "2027-03-31 00:00", "2027-03-31T00:00:00.000+01:00"),
    *("31.03.2027", "31/03/2027", "03/31/2027", "31-3-2027"),
    *("31 March 2027", "31st March, 2027", "1 Sept. 2027", "31. Dec. 2031", "March 31, 2027", "Mar 31st 2027"),
]
NO_DATES = [
    *("", "2027", "03/2027", "March 2027", "31.03.27", "soon", "31 Foo 2027", "31. März 2027", "31 March", "2027-03"),
    *("2027-13-01", "2027-00-10", "2027-02-30", "31/31/2027", "32.03.2027", "31 April 2027", "April 31, 2027"),
    *("2027-03.31", "0027-03-31", "2027-03-31T25:00", "2027-03-31 or later", "valid 2027-03-31", " 2027-03-31"),
    *("2027-03-31\n", "2027-03-31\nBcc: c@example.com", "<b>2027-03-31</b>", "2027\u200b-03-31"),
    # Digits and letters of other scripts: full-width, Arabic, Cyrillic "е", the long "s", the Kelvin sign.
    *("２０２７-03-31", "٢٠٢٧-03-31", "31 Dеcember 2027", "31 ſeptember 2027", "31 o\u212atober 2027"),
]


@pytest.mark.parametrize("text", DATES)
def test_a_date_in_a_usual_form_is_one(text: str) -> None:
    assert is_date(text)


@pytest.mark.parametrize("text", NO_DATES)
def test_anything_else_is_none(text: str) -> None:
    assert not is_date(text)


@given(st.dates(date(1900, 1, 1), date(2999, 12, 31)))
def test_every_day_is_a_date_as_the_standard_writes_it(day: date) -> None:
    assert is_date(str(day))

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.grounding import MAX_REPLY_LENGTH, Ground, omissions, unsupported_claims

VALID = {
    "serial_number": "SN12345",
    "warranty_status": "valid",
    "expiration_date": "2031-02-03",
    "coverage": "full",
}
NOTHING = dict.fromkeys(VALID)
GOOD_REPLY = "Your warranty is valid until 2031-02-03: SN12345 is fully covered. Ticket: {ticket_number}"


def ground(**changes: str | None) -> Ground:
    """That of a valid warranty, with other facts where given."""
    facts = {**VALID, **changes}
    return Ground(facts, "Our service team will write to you.", facts["warranty_status"] == "valid", True)


def without_facts(allows_warranty_mentions: bool = True) -> Ground:
    return Ground(NOTHING, "Look at the type plate (S/N).", False, allows_warranty_mentions)


def test_a_reply_that_says_what_the_facts_say_is_grounded() -> None:
    assert unsupported_claims(GOOD_REPLY, ground()) == ()
    assert omissions(GOOD_REPLY, ground()) == ()


@pytest.mark.parametrize(
    "claim",
    [
        "It holds until 2032-02-03.",
        "It holds until 3/2/2032.",
        "It holds until 03.02.32.",
        "It holds until 3 February 2032.",
        "It holds until the 3rd of May: 3rd May.",
        "It holds until February 3, 2032.",
        "It holds until Feb 2032.",
    ],
)
def test_another_date_is_refused(claim: str) -> None:
    (objection, *_) = unsupported_claims(f"{GOOD_REPLY} {claim}", ground())

    assert objection.startswith("The date '")
    assert objection.endswith("stands in no fact.")


@pytest.mark.parametrize("number", ["SN54321", "SN12345A", "XSN12345", "SN12345-B", "4711", "HT/20491", "AB_12"])
def test_another_number_is_refused(number: str) -> None:
    assert unsupported_claims(f"{GOOD_REPLY} Your number: {number}", ground())


@pytest.mark.parametrize("amount", ["€ 50", "$49.99", "50 EUR", "20 %", "100 zł", "£5"])
def test_an_amount_is_refused(amount: str) -> None:
    (objection, *_) = unsupported_claims(f"{GOOD_REPLY} It costs {amount}.", ground())

    assert objection.startswith("The amount '")


@pytest.mark.parametrize(
    "link", ["https://example.com/pay", "http://example.com", "www.example.com", "a.b@example.com"]
)
def test_a_link_or_an_address_is_refused(link: str) -> None:
    (objection, *_) = unsupported_claims(f"{GOOD_REPLY} Go to {link} now.", ground())

    assert objection.startswith("The link '")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("valid", "Your warranty has expired."),
        ("valid", "It is no longer valid."),
        ("valid", "It is not in our records."),
        ("expired", "Your warranty is valid."),
        ("expired", "It is invalid."),
        ("expired", "You are still covered."),
        ("not_found", "Your warranty has expired."),
        ("not_found", "It is not valid."),
        ("other", "Your warranty is valid."),
        (None, "Your warranty is valid."),
        (None, "Your warranty has expired."),
        (None, "You are covered."),
    ],
)
def test_another_status_is_refused(status: str | None, sentence: str) -> None:
    (objection,) = unsupported_claims(sentence, ground(warranty_status=status, coverage=None))

    assert objection.startswith("The facts do not say '")


@pytest.mark.parametrize("coverage", [None, "parts", "limited"])
def test_fully_covered_needs_full_coverage(coverage: str | None) -> None:
    assert "The facts do not say 'fully covered'." in unsupported_claims(
        "It is Fully\ncovered.", ground(coverage=coverage)
    )


def test_a_ticket_number_needs_a_ticket() -> None:
    assert unsupported_claims("Ticket: {ticket_number}", without_facts()) == (
        "There is no ticket: do not write {ticket_number}.",
    )


@pytest.mark.parametrize("sign", ["{name}", "{", "}", "[[name]]"])
def test_an_unfilled_placeholder_is_refused(sign: str) -> None:
    assert any("unfilled placeholder" in objection for objection in unsupported_claims(f"Dear {sign},", ground()))


@pytest.mark.parametrize("sign", ["\x00", "\x1b[31m", "\r", "\u202e", "\u2066"])
def test_control_characters_are_refused(sign: str) -> None:
    assert "The reply holds control characters." in unsupported_claims(f"Hello{sign}there", ground())


@pytest.mark.parametrize("word", ["warranty", "Guarantee", "covered"])
def test_an_answer_to_something_else_mentions_no_warranty(word: str) -> None:
    assert unsupported_claims(f"We know nothing of any {word}.", without_facts(allows_warranty_mentions=False))
    assert unsupported_claims("Please ask our general support.", without_facts(allows_warranty_mentions=False)) == ()


@pytest.mark.parametrize("reply", ["", "  \n"])
def test_an_empty_reply_is_refused(reply: str) -> None:
    assert unsupported_claims(reply, ground()) == ("The reply is empty.",)


def test_a_reply_may_be_only_so_long() -> None:
    assert unsupported_claims("a" * MAX_REPLY_LENGTH, without_facts()) == ()
    assert unsupported_claims("a" * (MAX_REPLY_LENGTH + 1), without_facts())


def test_what_the_author_of_the_template_wrote_is_borne_out() -> None:
    approved = Ground(NOTHING, "Call 0800 1234567 by 31 March, it costs 5 EUR.", False, True)

    assert unsupported_claims("Call 0800 1234567 by 31 March.", approved) == ()
    assert unsupported_claims("Call 0800 7654321.", approved)


def test_every_objection_is_told_once() -> None:
    objections = unsupported_claims("€5, €5, and www.example.com", ground())

    assert len(objections) == len(set(objections)) == 2


@pytest.mark.parametrize(
    ("left_out", "objection"),
    [
        ("SN12345", "The reply must hold the serial number SN12345 exactly so."),
        ("2031-02-03", "The reply must hold the expiration date 2031-02-03 exactly so."),
        ("{ticket_number}", "Write {ticket_number} where the ticket number goes."),
    ],
)
def test_a_fact_that_is_left_out_is_told(left_out: str, objection: str) -> None:
    assert omissions(GOOD_REPLY.replace(left_out, "…"), ground()) == (objection,)


def test_a_longer_number_does_not_stand_for_the_serial_number() -> None:
    assert omissions(GOOD_REPLY.replace("SN12345", "SN12345-B"), ground())


def test_nothing_is_left_out_where_nothing_is_known() -> None:
    assert omissions("Please send us the serial number.", without_facts()) == ()


@given(st.text(max_size=200))
def test_any_reply_is_judged(reply: str) -> None:
    for each in (ground(), ground(warranty_status="expired"), without_facts()):
        assert isinstance(unsupported_claims(reply, each), tuple)
        assert isinstance(omissions(reply, each), tuple)


@pytest.mark.parametrize("part", ["1", "1.", "a@", "https://", "1-", "SN12345", "SN12345-", "jan ", "€1,"])
def test_a_hostile_reply_of_full_length_is_judged(part: str) -> None:
    reply = (part * MAX_REPLY_LENGTH)[:MAX_REPLY_LENGTH]

    assert isinstance(unsupported_claims(reply, ground()), tuple)


@pytest.mark.parametrize(
    "promise",
    [
        "The repair is free of charge.",
        "You will get a refund.",
        "We will replace your device.",
        "It takes two weeks.",
        "There is no charge: we do it at no cost.",
    ],
)
def test_a_promise_that_no_template_makes_is_refused(promise: str) -> None:
    ground = Ground({"warranty_status": None}, approved="", has_ticket=False, allows_warranty_mentions=True)
    assert any("promise" in claim for claim in unsupported_claims(promise, ground))


def test_a_promise_that_the_template_makes_may_be_made() -> None:
    ground = Ground({}, approved="The repair is free of charge.", has_ticket=False, allows_warranty_mentions=True)
    assert unsupported_claims("The repair is free of charge.", ground) == ()

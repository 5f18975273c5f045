from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.grounding import (
    MAX_REPLY_LENGTH,
    GroundingFacts,
    find_missing_facts,
    find_unsupported_claims,
)
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.instructions.template import select_template

DRAFTS = Path(__file__).with_name("drafts")
MOST_MISSED = 21
"""What is not marked today. Fewer is progress: lower the figure. More is a step back."""
STATUS = {"V": "valid", "E": "expired", "N": "not_found", "U": None}

VALID = {"serial_number": "SN12345", "warranty_status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}
NOTHING = dict.fromkeys(VALID)
GOOD_REPLY = "Your warranty is valid until 2031-02-03: SN12345 is fully covered. Ticket: {ticket_number}"


def grounding(**changes: str | None) -> GroundingFacts:
    """That of a valid warranty, with other facts where given."""
    facts = {**VALID, **changes}
    return GroundingFacts(facts, "Our service team will write to you.", facts["warranty_status"] == "valid", True)


def without_facts(approved_text: str = "", *, about_warranty: bool = True) -> GroundingFacts:
    return GroundingFacts(NOTHING, approved_text, has_ticket=False, allows_warranty_mentions=about_warranty)


def shipped(instructions: Instructions, state: str) -> tuple[GroundingFacts, str]:
    """What a reply may say where the warranty is as `state` says, and the shipped reply for it."""
    status = STATUS[state]
    scenario = instructions.route(Situation(False, "warranty", "one" if status else "none", status))
    facts = {
        "serial_number": "SN12345" if status else None,
        "warranty_status": status,
        "expiration_date": "2031-02-03" if status in ("valid", "expired") else None,
        "coverage": "full" if status == "valid" else None,
    }
    template = select_template(scenario.templates, facts)
    assert template is not None
    has_ticket = scenario.ticket is not None
    facts_and_text = GroundingFacts(facts, scenario.approved_text, has_ticket, scenario.allows_warranty_mentions)
    return facts_and_text, template.render(facts)


def false_sentences() -> Iterator[tuple[str, str]]:
    """(state, a sentence that is false in it)."""
    for line in (DRAFTS / "false_sentences.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            states, _, sentence = line.split(" ", 2)
            yield from ((state, sentence) for state in ("VENU" if states == "*" else states))


def test_a_reply_that_says_what_the_facts_say_is_grounded() -> None:
    assert find_unsupported_claims(GOOD_REPLY, grounding()) == ()
    assert find_missing_facts(GOOD_REPLY, grounding()) == ()


@pytest.mark.parametrize(
    ("kind", "claim"),
    [
        ("date", "2032-02-03"),
        ("date", "3/2/2032"),
        ("date", "03.02.32"),
        ("date", "3 February 2032"),
        ("date", "the 3rd of May: 3rd May"),
        ("date", "February 3, 2032"),
        ("date", "Feb 2032"),
        *(("amount", amount) for amount in ("€ 50", "$49.99", "50 EUR", "20 %", "100 zł", "£5")),
        ("link", "https://example.com/pay"),
        ("link", "http://example.com"),
        ("link", "www.example.com"),
        ("link", "a.b@example.com"),
        *(
            ("number", number)
            for number in ("SN54321", "SN12345A", "XSN12345", "SN12345-B", "4711", "HT/20491", "AB_12")
        ),
    ],
)
def test_a_claim_without_a_fact_is_refused(kind: str, claim: str) -> None:
    (objection, *_) = find_unsupported_claims(f"{GOOD_REPLY} It holds: {claim} now.", grounding())
    assert objection.startswith(f"The {kind} '")
    assert objection.endswith("stands in no fact.")


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("The repair is free of charge.", "repair"),
        ("You get a refund.", "refund"),
        ("We will replace it.", "replace"),
        ("It takes two weeks.", "takes"),
        ("Thank you for your money.", "money"),
        ("Wir melden uns morgen.", "morgen"),
    ],
)
def test_a_sentence_with_a_word_that_could_claim_something_is_marked(sentence: str, word: str) -> None:
    (objection,) = find_unsupported_claims(f"{GOOD_REPLY}\n\nHello. {sentence} Thank you.", grounding())
    assert objection == f"No fact and no approved sentence supports '{word}' in '{sentence[:-1].lower()}'."


def test_a_repair_at_the_customers_own_cost_may_be_named() -> None:
    facts = grounding(warranty_status="expired", coverage=None)
    assert find_unsupported_claims("We can look into a repair at your own cost.", facts) == ()
    assert find_unsupported_claims("We can look into a repair at our own cost.", facts)


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
    (objection,) = find_unsupported_claims(sentence, grounding(warranty_status=status, coverage=None))
    assert objection.startswith("The facts do not say '")


@pytest.mark.parametrize("coverage", [None, "parts", "limited"])
def test_fully_covered_needs_full_coverage(coverage: str | None) -> None:
    assert "The facts do not say 'fully covered'." in find_unsupported_claims(
        "It is Fully\ncovered.", grounding(coverage=coverage)
    )


def test_a_ticket_number_needs_a_ticket() -> None:
    assert find_unsupported_claims("Ticket: {ticket_number}", without_facts()) == (
        "There is no ticket: do not write {ticket_number}.",
    )


@pytest.mark.parametrize("sign", ["{name}", "{", "}", "[[name]]"])
def test_an_unfilled_placeholder_is_refused(sign: str) -> None:
    assert any(
        "unfilled placeholder" in objection for objection in find_unsupported_claims(f"Dear {sign},", grounding())
    )


@pytest.mark.parametrize("sign", ["\x00", "\x1b[31m", "\r", "\u202e", "\u2066"])
def test_control_characters_are_refused(sign: str) -> None:
    assert "The reply holds control characters." in find_unsupported_claims(f"Hello{sign}there", grounding())


@pytest.mark.parametrize("word", ["warranty", "Guarantee", "covered"])
def test_an_answer_to_something_else_mentions_no_warranty(word: str) -> None:
    assert find_unsupported_claims(f"We know nothing of any {word}.", without_facts(about_warranty=False))
    assert find_unsupported_claims("Please ask our general support.", without_facts(about_warranty=False)) == ()


@pytest.mark.parametrize("reply", ["", "  \n"])
def test_an_empty_reply_is_refused(reply: str) -> None:
    assert find_unsupported_claims(reply, grounding()) == ("The reply is empty.",)


def test_a_reply_may_be_only_so_long() -> None:
    assert find_unsupported_claims("hello " * (MAX_REPLY_LENGTH // 6), without_facts()) == ()
    assert find_unsupported_claims("hello " * (MAX_REPLY_LENGTH // 6 + 1), without_facts())


def test_what_the_author_of_the_template_wrote_is_supported() -> None:
    approved = without_facts("Call 0800 1234567 by 31 March. The repair is free of charge.")
    assert find_unsupported_claims("The repair is free of charge. Call 0800 1234567 by 31 March.", approved) == ()
    assert find_unsupported_claims("The repair is free.", approved)
    assert find_unsupported_claims("Call 0800 7654321.", approved)


def test_every_objection_is_reported_once() -> None:
    objections = find_unsupported_claims("€5, €5, and www.example.com", grounding())
    assert len(objections) == len(set(objections)) == 2


@pytest.mark.parametrize(
    ("left_out", "objection"),
    [
        ("SN12345", "The reply must hold the serial number SN12345 exactly so."),
        ("2031-02-03", "The reply must hold the expiration date 2031-02-03 exactly so."),
        ("{ticket_number}", "Write {ticket_number} where the ticket number goes."),
    ],
)
def test_a_fact_that_is_left_out_is_reported(left_out: str, objection: str) -> None:
    assert find_missing_facts(GOOD_REPLY.replace(left_out, "…"), grounding()) == (objection,)


def test_a_longer_number_does_not_stand_for_the_serial_number() -> None:
    assert find_missing_facts(GOOD_REPLY.replace("SN12345", "SN12345-B"), grounding())


def test_nothing_is_left_out_where_nothing_is_known() -> None:
    assert find_missing_facts("Please send us the serial number.", without_facts()) == ()


@given(st.text(max_size=200))
def test_any_reply_is_judged(reply: str) -> None:
    for each in (grounding(), grounding(warranty_status="expired"), without_facts()):
        assert isinstance(find_unsupported_claims(reply, each), tuple)
        assert isinstance(find_missing_facts(reply, each), tuple)


@pytest.mark.parametrize("part", ["1", "1.", "a@", "https://", "1-", "SN12345", "SN12345-", "jan ", "€1,"])
def test_a_hostile_reply_of_full_length_is_judged(part: str) -> None:
    reply = (part * MAX_REPLY_LENGTH)[:MAX_REPLY_LENGTH]
    assert isinstance(find_unsupported_claims(reply, grounding()), tuple)


@pytest.mark.parametrize("state", STATUS)
def test_the_shipped_replies_are_grounded(state: str, instructions: Instructions) -> None:
    facts, reply = shipped(instructions, state)
    assert find_unsupported_claims(reply, facts) + find_missing_facts(reply, facts) == ()


def test_honest_free_drafts_in_nine_languages_are_grounded(instructions: Instructions) -> None:
    for draft in (DRAFTS / "honest_drafts.txt").read_text(encoding="utf-8").split("== ")[1:]:
        header, reply = draft.split("\n", 1)
        facts, _ = shipped(instructions, header[0])
        for name in ("serial_number", "expiration_date"):
            reply = reply.replace(f"{{{name}}}", facts.facts[name] or "")
        assert find_unsupported_claims(reply, facts) + find_missing_facts(reply, facts) == (), draft


def test_false_sentences_in_nine_languages_are_objected_to(instructions: Instructions) -> None:
    cases = list(false_sentences())
    missed = []
    for state, sentence in cases:
        facts, reply = shipped(instructions, state)
        if not find_unsupported_claims(f"{reply}\n{sentence}\n", facts):
            missed.append((state, sentence))
    assert len(cases) > 1_400
    assert len(missed) <= MOST_MISSED, "\n".join(map(str, missed))


@pytest.mark.parametrize(
    "sentence",
    [
        "Your warranty is va\u200blid.",
        "Your warranty is va\u00adlid.",
        "Your war\u2060ranty is running.",
        "Your warranty is v\u0430lid.",  # Cyrillic a
        "Your w\u03b1rr\u03b1nty is running.",  # Greek alpha
        "Your warranty is 𝐯𝐚𝐥𝐢𝐝.",
        "Your warranty is ｖａｌｉｄ.",
        "Your warranty is ᴠᴀʟɪᴅ.",
        "Your warranty is vɑlid.",
        "Your warranty is v\u0336a\u0336lid.",
        "Your warranty is válíd.",
        "Your warranty is v a l i d.",
        "Your warranty is v.a.l.i.d.",
        "Your warranty is va-lid.",
        "Your warranty is val1d.",
        "It holds until ２０９９.",
        "It holds until ٢٠٩٩.",
        "It holds until ②⓪⑨⑨.",
        "Ваша гарантия действует.",
        "Pay at shop.example.com",
        "Pay at shop[.]example[.]com",
        "Pay at shop.example.com/now, please",
        "Pay at t.me/shop",
    ],
)
def test_what_hides_a_word_is_objected_to(sentence: str, instructions: Instructions) -> None:
    facts, reply = shipped(instructions, "E")
    assert find_unsupported_claims(f"{reply}\n{sentence}\n", facts)


@pytest.mark.parametrize("text", ["Grüße – „für“ número, ¿señor? Ça… d’où", "číslo, więc"])
def test_letters_and_signs_of_our_languages_are_no_disguise(text: str) -> None:
    assert find_unsupported_claims(text, without_facts()) == ()


@pytest.mark.parametrize(
    ("state", "words", "instead", "objection"),
    [
        ("V", "warranty is valid", "warranty is there", "warranty is valid"),
        ("E", "expired", "come to an end", "expired"),
        ("N", "not in our records", "strange to us", "not in our records"),
        ("U", "serial number", "digits", "serial number"),
    ],
)
def test_the_words_of_the_contract_are_asked_for(
    state: str, words: str, instead: str, objection: str, instructions: Instructions
) -> None:
    facts, reply = shipped(instructions, state)
    expected = f"The reply must say '{objection}', or the same in its language."
    assert find_missing_facts(reply.replace(words, instead), facts) == (expected,)


@pytest.mark.parametrize("status", ["expired", "not_found"])
def test_the_letters_of_valid_stand_in_no_word(status: str) -> None:
    facts = grounding(warranty_status=status, coverage=None)
    assert find_unsupported_claims("We validate nothing.", facts)
    assert find_unsupported_claims("An inval-id card.", facts)

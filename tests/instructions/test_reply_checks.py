import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shipped_instructions import SHIPPED_TOPICS, InstructionFolder

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp, NumberFormat
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.reply_checks import find_false_claim, phishing_problems, reply_problems
from guarantee_email_agent.instructions.reply_markup import parse_templates
from guarantee_email_agent.instructions.router import Condition, Situation, WarrantyStatus, all_situations
from guarantee_email_agent.instructions.template import Sentence, select_template
from guarantee_email_agent.utils.errors import InstructionError

VALID = Condition(topic="warranty", serial_numbers="one", warranty_status=("valid",))
EXPIRED = Condition(topic="warranty", serial_numbers="one", warranty_status=("expired",))
NOT_FOUND = Condition(topic="warranty", serial_numbers="one", warranty_status=("not_found",))
NO_NUMBER = Condition(topic="warranty", serial_numbers="none")
OTHER = Condition(topic="other")
DATE = '<if expiration_date="known">{expiration_date}</if>'
BOTH = 'unreadable_serial_number="yes" unconfirmed_serial_number="known"'
WHERE_VALID = "where 'topic: warranty, serial_numbers: one, warranty_status: valid'."


def problems(trigger: Condition, text: str, *, has_ticket: bool = False) -> list[tuple[int | None, str]]:
    return reply_problems((trigger,), parse_templates(text), SHIPPED_TOPICS, has_ticket=has_ticket)


@settings(max_examples=300)
@given(data=st.data())
def test_whatever_is_chosen_a_shipped_reply_carries_the_facts_and_says_nothing_false(
    data: st.DataObject, instructions: Instructions
) -> None:
    situation = data.draw(st.sampled_from([each for each in all_situations(SHIPPED_TOPICS) if each.topic]))
    scenario = instructions.route(situation)
    facts: dict[str, str | None] = dict.fromkeys(WARRANTY.fact_names)
    if (status := situation.warranty_status) not in (None, "withheld"):
        facts |= {"serial_number": "SN12345", "warranty_status": status}
        facts["expiration_date"] = data.draw(st.sampled_from([None, "2031-02-03"])) if status != "not_found" else None
        facts["coverage"] = data.draw(st.sampled_from([None, "full", "parts"])) if status == "valid" else None
    elif status:
        facts["warranty_status"] = status
    template = select_template(scenario.templates, facts)
    assert template
    every_id = [part.id for part in template.all_parts() if isinstance(part, Sentence)]

    reply = template.compose(facts, data.draw(st.sets(st.sampled_from(every_id))) if every_id else ())[0]

    assert find_false_claim(fold(reply), situation, facts["coverage"]) is None
    if status in ("valid", "expired", "not_found"):
        assert "SN12345" in reply
        assert facts["expiration_date"] is None or facts["expiration_date"] in reply
        words = {"valid": "warranty is valid", "expired": "expired", "not_found": "not in our records"}
        assert words[str(status)] in reply
    assert ("{ticket_number}" in reply) == (scenario.ticket is not None)
    assert ("fully covered" in reply) == (facts["coverage"] == "full")
    assert "\n\n\n" not in reply


@pytest.mark.parametrize(
    ("trigger", "reply"),
    [
        (VALID, f"Valid: {{serial_number}} {DATE}"),
        (VALID, f"{{serial_number}} {DATE}<if coverage='full'> fully covered</if>"),
        (
            VALID,
            '{serial_number} <if expiration_date="known">{expiration_date}</if><if expiration_date="unknown">-</if>',
        ),
        (EXPIRED, f"{{serial_number}} has expired {DATE}"),
        (NOT_FOUND, "{serial_number} is not in our records"),
        (NO_NUMBER, "Please send us the serial number"),
        (OTHER, "Our general support team will help"),
        # Each of the alternatives carries the number.
        (
            NOT_FOUND,
            (
                '<choose><sentence id="a">A {serial_number}</sentence>'
                '<sentence id="b" use="u">{serial_number} B</sentence></choose>'
            ),
        ),
    ],
)
def test_a_reply_that_carries_the_facts_and_claims_nothing_false_is_fine(trigger: Condition, reply: str) -> None:
    assert problems(trigger, f"<reply>{reply}</reply>") == []


@pytest.mark.parametrize(
    ("trigger", "reply", "name"),
    [
        (VALID, f"valid {DATE}", "serial_number"),
        (VALID, "valid {serial_number}", "expiration_date"),
        (EXPIRED, "expired {serial_number}", "expiration_date"),
        (NOT_FOUND, "unknown", "serial_number"),
        (NOT_FOUND, '<optional id="a" use="u">{serial_number}</optional> b', "serial_number"),
        (NOT_FOUND, '<if coverage="full">{serial_number}</if> b', "serial_number"),
        (
            NOT_FOUND,
            '<choose><sentence id="a">{serial_number}</sentence><sentence id="b" use="u">b</sentence></choose>',
            "serial_number",
        ),
    ],
)
def test_required_sentences_have_to_carry_the_facts(trigger: Condition, reply: str, name: str) -> None:
    ((line, problem),) = problems(trigger, f"\n<reply>\n{reply}</reply>")
    assert line == 2
    assert problem.startswith(f"the reply does not always hold {{{name}}} where 'topic: warranty")
    assert problem.endswith("Write it into the reply, outside of <optional>")


@pytest.mark.parametrize(
    ("trigger", "reply", "line", "words"),
    [
        (EXPIRED, f"{{serial_number}} {DATE}\nBut it is\nvalid.", 3, "valid"),
        (EXPIRED, f'{{serial_number}} {DATE}\n\n<optional id="a" use="u">Valid</optional>', 3, "valid"),
        (
            EXPIRED,
            (
                f"{{serial_number}} {DATE}\n<choose>\n<sentence id='a'>a</sentence>\n"
                "<sentence id='b'\n use='u'>b, valid</sentence></choose>"
            ),
            5,
            "valid",
        ),
        (VALID, f"{{serial_number}} {DATE}\nfully\ncovered", 2, "fully covered"),
        (VALID, f"{{serial_number}} {DATE}<if expiration_date='unknown'>\nexpired</if>", 2, "expired"),
        # What holds for one value alone is tried, too, and so are two facts at once.
        (
            VALID,
            f"{{serial_number}} {DATE}<if expiration_date='2027-01-31' serial_number='sn7'>\nexpired</if>",
            2,
            "expired",
        ),
        (NO_NUMBER, f"A<if {BOTH}> is covered</if>", 1, "is covered"),
        (NO_NUMBER, "Your device is covered.", 1, "is covered"),
        (OTHER, "Hello,\n\nyour warranty", 3, "warranty"),
        # A claim that only the words around a sentence make one.
        (VALID, f'{{serial_number}} {DATE} <optional id="a" use="u">no longer</optional> valid', 1, "no longer valid"),
        # Or a condition in the middle of it.
        (EXPIRED, f'{{serial_number}} {DATE} va<if serial_number="known">lid</if>', 1, "valid"),
    ],
)
def test_a_sentence_that_is_false_in_its_state_is_found_with_its_line(
    trigger: Condition, reply: str, line: int, words: str
) -> None:
    ((found, problem),) = problems(trigger, f"<reply>{reply}</reply>")
    assert found == line
    assert problem.startswith(f"the reply says '{words}', which is not so where 'topic: ")
    assert problem.endswith("Change it, or add a condition")


@pytest.mark.parametrize(
    "place",
    ["{expiration_date}", '<optional id="a" use="u">{expiration_date}</optional>'],
)
def test_a_fact_that_may_be_missing_needs_a_condition_in_any_sentence(place: str) -> None:
    ((line, problem),) = problems(VALID, f"<reply>{{serial_number}} {DATE}\n{place}</reply>")
    assert line == 2
    remedy = 'Put it inside <if expiration_date="known">…</if>'
    assert problem == f"{{expiration_date}} has no value {WHERE_VALID} {remedy}"


@pytest.mark.parametrize(
    ("replies", "problem"),
    [
        ('<reply><if serial_number="known">a</if></reply>', "the reply is empty where 'topic: warranty, serial"),
        ('<reply> <optional id="a" use="u">a</optional></reply>', "the reply is empty where 'topic: warranty, serial"),
        ('<reply serial_number="known">a</reply><reply>b</reply>', "this <reply> is never sent: "),
        ("<reply>a</reply><reply>b</reply>", "this <reply> is never sent: "),
    ],
)
def test_every_reply_says_something_and_can_be_sent(replies: str, problem: str) -> None:
    ((line, found),) = problems(NO_NUMBER, replies)
    assert (line, found.startswith(problem)) == (1, True)


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
        ("valid", "It is not in our records.", "not in our records"),
        ("valid", "Ihre Garantie ist abgelaufen.", "abgelaufen"),
        ("expired", "Your warranty is valid.", "valid"),
        ("expired", "Your device is still covered.", "still covered"),
        ("expired", "It is under warranty.", "is under warranty"),
        ("expired", "Die Garantie ist gültig.", "gultig"),
        ("expired", "La garantía es válida.", "valida"),
        ("not_found", "It has expired.", "expired"),
        ("not_found", "Ihre Garantie ist ungültig.", "ungultig"),
        ("other", "Your warranty is still valid.", "is still valid"),
        ("withheld", "It is not in our records.", "not in our records"),
        (None, "Your device is covered.", "is covered"),
    ],
)
def test_words_that_are_false_in_a_state_are_found(status: WarrantyStatus | None, text: str, words: str) -> None:
    assert claim(text, status) == words


@pytest.mark.parametrize(("coverage", "words"), [(None, "fully covered"), ("parts", "fully covered"), ("full", None)])
def test_fully_covered_is_true_for_full_coverage_alone(coverage: str | None, words: str | None) -> None:
    assert claim("Your device is not fully  covered.", "valid", coverage) == words


@pytest.mark.parametrize("text", ["Your warranty", "guaranteed", "Ihre Garantie", "Państwa gwarancja", "it is covered"])
def test_who_asks_about_something_else_is_told_of_no_warranty(text: str) -> None:
    assert find_false_claim(fold(text), Situation(False, "other", "none"), None)


def test_without_the_topic_of_warranties_a_reply_may_send_people_to_whoever_deals_with_them() -> None:
    text = fold("For your warranty, please write to the manufacturer.")
    assert find_false_claim(text, Situation(False, "other"), None, (ORDERS,)) is None
    assert find_false_claim(text, Situation(False, "other"), None, (WARRANTY, ORDERS))


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
    found = find_false_claim(fold(text), Situation(False, "order-status", "one", status), None, (WARRANTY, ORDERS))
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
    assert find_false_claim(fold(text), situation, None, (WARRANTY, ORDERS)) is None


def asked_for(sentence: str, *link_hosts: str) -> list[tuple[int, str]]:
    templates = parse_templates(f"<reply>\nHello,\n\n{sentence}\n\nKind regards\n</reply>\n")
    return list(phishing_problems(templates, link_hosts))


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Please send us your credit card number.", "credit card"),
        ("Please reply with your password.", "password"),
        ("Tell us the PIN of your account.", "pin"),
        ("Bitte nennen Sie uns Ihre Kreditkartennummer.", "kreditkartennummer"),
        ("Veuillez indiquer votre mot de passe.", "mot de passe"),
        ("Indique su número de tarjeta, por favor.", "numero de su tarjeta"),
    ],
)
def test_a_reply_that_asks_for_a_secret_is_found_with_its_line(sentence: str, words: str) -> None:
    found = asked_for(sentence)
    assert found
    line, message = found[0]
    assert line == 4
    assert "as phishing does" in message
    assert words.split()[0] in message


@pytest.mark.parametrize(
    "sentence",
    [
        "We will never ask for your password or your card number.",
        "The number stands on your warranty card.",
        "Please send us the warranty card number.",
        "Prosimy podać numer karty gwarancyjnej.",
        "The pink sticker shows the serial number.",
    ],
)
def test_what_asks_for_no_secret_is_fine(sentence: str) -> None:
    assert asked_for(sentence) == []


def test_never_in_another_sentence_excuses_nothing() -> None:
    assert asked_for("We never give up. Please send your password.")


@pytest.mark.parametrize(
    ("sentence", "host"),
    [
        ("Please log in at https://evil.example/login first.", "evil.example"),
        ("See www.evil.example for details.", "evil.example"),
        ("Visit evil-shop.com today.", "evil-shop.com"),
        ("Go to https://example.com@evil.example/ now.", "evil.example"),
        ("Go to https://example.com.evil.example/ now.", "example.com.evil.example"),
        ("Go to https://notexample.com/ now.", "notexample.com"),
        ("Visit exämple.com today.", "exämple.com"),
    ],
)
def test_a_reply_that_leads_to_a_host_that_nobody_listed_is_found(sentence: str, host: str) -> None:
    assert f"'{host}'" in asked_for(sentence, "example.com")[0][1]


@pytest.mark.parametrize(
    "sentence",
    [
        "See https://example.com/help for more.",
        "See https://support.example.com.",
        "Write to service@example.com.",
        "The plate says S/N, e.g. on the back.The next sentence has no blank.",
    ],
)
def test_listed_hosts_and_those_below_them_are_fine(sentence: str) -> None:
    assert asked_for(sentence, "example.com") == []


def test_such_a_file_does_not_load(folder: InstructionFolder) -> None:
    folder.edit(folder.scenario("missing-info"), "<reply>", "<reply>\nLog in at https://evil.example.\n")
    with pytest.raises(InstructionError, match=r"missing-info\.md:\d+: the reply leads to 'evil\.example'"):
        folder.load()
    folder.edit(folder.main, 'version: "1.0.0"', 'version: "1.0.0"\nlink_hosts: [evil.example]')
    folder.load()
    line = folder.edit(folder.main, "[evil.example]", '["https://evil.example"]')
    problem = "link_hosts: must list bare hosts, such as example.com, not 'https://evil.example'"
    assert folder.problems() == [f"main.md:{line}: {problem}"]

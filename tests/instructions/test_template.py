import pytest

from guarantee_email_agent.instructions.reply_markup import parse_templates
from guarantee_email_agent.instructions.template import MissingFactError, select_template, words_asked_for

FACTS = {"serial_number": "SN12345", "warranty_status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}


def rendered(text: str, **facts: str | None) -> str:
    (template,) = parse_templates(f"<reply>{text}</reply>")
    return template.compose({**FACTS, **facts})[0]


IF_FULL = '<if coverage="full"> b</if>'
IF_KNOWN = '<if expiration_date="known"> b</if>'
IF_UNKNOWN = '<if expiration_date="unknown"> b</if>'
IF_BOTH = '<if coverage="full" expiration_date="known"> b</if>'
NESTED = '<if coverage="full"> b<if expiration_date="known"> c</if> d</if>'


@pytest.mark.parametrize(
    ("text", "facts", "reply"),
    [
        (
            "{serial_number} until {expiration_date}, {coverage} coverage",
            {},
            "SN12345 until 2031-02-03, full coverage\n",
        ),
        # It stays a placeholder until there is a ticket.
        ("Ticket: {ticket_number}", {}, "Ticket: {ticket_number}\n"),
        # A fact is never read as a template.
        ("{serial_number}", {"serial_number": "{expiration_date}"}, "{expiration_date}\n"),
        (f"a{IF_FULL}", {}, "a b\n"),
        (f"a{IF_FULL}", {"coverage": "Full"}, "a b\n"),
        (f"a{IF_FULL}", {"coverage": "parts"}, "a\n"),
        ('a<if coverage="full, parts"> b</if>', {"coverage": "parts"}, "a b\n"),
        (f"a{IF_KNOWN}", {}, "a b\n"),
        (f"a{IF_KNOWN}", {"expiration_date": None}, "a\n"),
        (f"a{IF_KNOWN}", {"expiration_date": ""}, "a\n"),
        (f"a{IF_UNKNOWN}", {}, "a\n"),
        (f"a{IF_UNKNOWN}", {"expiration_date": None}, "a b\n"),
        (f"a{IF_UNKNOWN}", {"expiration_date": ""}, "a b\n"),
        (f"a{IF_BOTH}", {}, "a b\n"),
        (f"a{IF_BOTH}", {"expiration_date": None}, "a\n"),
        (f"a{NESTED} e", {}, "a b c d e\n"),
        (f"a{NESTED} e", {"expiration_date": None}, "a b d e\n"),
        (f"a{NESTED} e", {"coverage": None}, "a e\n"),
        # A placeholder that is hidden needs no fact.
        ('a<if expiration_date="known"> {expiration_date}</if>', {"expiration_date": None}, "a\n"),
        # No gap of blank lines is left, and no white space around the reply.
        ('a\n\n<if coverage="full">b</if>\n\nc', {"coverage": None}, "a\n\nc\n"),
        ("\n\n  Hello,\n\nyes.  \n\n", {}, "Hello,\n\nyes.\n"),
        # What stands on a line of its own takes the line with it.
        ('a\n<if coverage="full">b</if>\nc', {}, "a\nb\nc\n"),
        ('a\n<if coverage="full">b</if>\nc', {"coverage": None}, "a\nc\n"),
        ('a\n<if coverage="full">b</if>\n<if coverage="full">c</if>\nd', {"coverage": None}, "a\nd\n"),
        ('a <if coverage="full">b</if> c', {"coverage": None}, "a c\n"),
        ('a <if coverage="full">b</if>\nc', {"coverage": None}, "a\nc\n"),
        ('a<if coverage="Full"> b</if>', {}, "a b\n"),
    ],
)
def test_what_a_template_says(text: str, facts: dict[str, str | None], reply: str) -> None:
    assert rendered(text, **facts) == reply


SENTENCES = """\
Hello,

<choose>
<sentence id="thanks">Thank you.</sentence>
<sentence id="sorry" use="a fault" hints="broken, leak*">
We are sorry.
</sentence>
<sentence id="full" coverage="full" use="cover">All is covered.</sentence>
</choose>

Valid until {expiration_date}.
<optional id="photo" use="a photo"
    hints="photo*">Send a photo of {serial_number}.</optional>
<if coverage="full"><optional id="cost" use="costs">Nothing to pay.</optional></if>
Bye"""


@pytest.mark.parametrize(
    ("chosen", "coverage", "reply"),
    [
        ((), "full", "Hello,\n\nThank you.\n\nValid until 2031-02-03.\nBye\n"),
        (("sorry",), "full", "Hello,\n\nWe are sorry.\n\nValid until 2031-02-03.\nBye\n"),
        (("full",), "full", "Hello,\n\nAll is covered.\n\nValid until 2031-02-03.\nBye\n"),
        (
            ("photo", "cost"),
            "full",
            "Hello,\n\nThank you.\n\nValid until 2031-02-03.\nSend a photo of SN12345.\nNothing to pay.\nBye\n",
        ),
        # What the facts do not allow is not said, even where it is chosen.
        (("full", "cost"), None, "Hello,\n\nThank you.\n\nValid until 2031-02-03.\nBye\n"),
        (("unknown",), None, "Hello,\n\nThank you.\n\nValid until 2031-02-03.\nBye\n"),
    ],
)
def test_a_reply_says_what_was_chosen_and_the_first_of_each_choice_otherwise(
    chosen: tuple[str, ...], coverage: str | None, reply: str
) -> None:
    (template,) = parse_templates(f"<reply>{SENTENCES}</reply>")
    assert template.compose({**FACTS, "coverage": coverage}, chosen)[0] == reply


@pytest.mark.parametrize(
    ("coverage", "offered"),
    [
        ("full", [("thanks", 1), ("sorry", 1), ("full", 1), ("photo", None), ("cost", None)]),
        (None, [("thanks", 1), ("sorry", 1), ("photo", None)]),
    ],
)
def test_what_the_facts_allow_is_offered_by_group(coverage: str | None, offered: list[tuple[str, int | None]]) -> None:
    (template,) = parse_templates(f"<reply>{SENTENCES}</reply>")
    facts = {**FACTS, "coverage": coverage}
    assert [(each.sentence.id, each.group) for each in template.offered(facts)] == offered


def test_where_one_sentence_of_a_choice_is_left_there_is_none() -> None:
    choice = '<choose><sentence id="a">A</sentence><sentence id="b" use="b" coverage="full">B</sentence></choose>'
    (template,) = parse_templates(f"<reply>{choice}</reply>")
    assert template.offered({**FACTS, "coverage": None}) == ()
    assert template.compose({**FACTS, "coverage": None})[0] == "A\n"


def test_a_placeholder_without_a_fact_is_named() -> None:
    with pytest.raises(MissingFactError, match=r"\{expiration_date\} has no value"):
        rendered("until {expiration_date}", expiration_date=None)


def test_the_first_template_whose_conditions_hold_is_taken() -> None:
    several = parse_templates(
        '<reply warranty_status="expired">a</reply><reply warranty_status="valid">b</reply><reply>c</reply>'
    )

    chosen = [select_template(several, {"warranty_status": status}) for status in ("expired", "valid", "other")]
    assert chosen == [*several]


def test_the_words_for_a_coverage_are_those_that_conditions_name() -> None:
    (template,) = parse_templates(
        '<reply coverage="known">a<if coverage="Full, unknown">b</if>'
        '<optional id="c" use="u" coverage="parts only">c</optional></reply>'
    )
    assert words_asked_for("coverage", [template]) == {"full", "parts only"}


def test_the_sentences_of_a_reply_by_their_ids() -> None:
    (template,) = parse_templates(
        '<reply><sentence id="hi">Hello,</sentence>\n<if coverage="full"><sentence id="all">all of {serial_number}\n'
        '</sentence></if><choose><sentence id="a">A</sentence><sentence id="b" use="b">B</sentence></choose>'
        '<optional id="c" use="c">C</optional><sentence id="bye">Bye</sentence></reply>'
    )
    assert template.compose(FACTS, ["b", "c"])[1] == {
        "hi": "Hello,",
        "all": "all of SN12345",
        "b": "B",
        "c": "C",
        "bye": "Bye",
    }
    assert list(template.compose({**FACTS, "coverage": None}, ())[1]) == ["hi", "a", "bye"]
    assert [each.sentence.id for each in template.offered(FACTS)] == ["a", "b", "c"]

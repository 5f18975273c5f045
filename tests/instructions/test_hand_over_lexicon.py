import pytest
from shipped_instructions import markup_error

from guarantee_email_agent.instructions.hand_over_lexicon import MAX_WORDS_APART, HandOverReason, parse_hand_over

BODY = """<situation>x</situation>
<hand-over reason="fire" description="something burns">
smok*, on fire, flames
</hand-over>
<hand-over reason="injury" description="somebody was hurt">
hospital, BURN + elbow|knee, burn* + hand*, burn* + arm
</hand-over>
<hand-over-exceptions>
no flames, non-smoking
</hand-over-exceptions>
"""
LEXICON = parse_hand_over(BODY)


def test_reasons_stand_in_the_order_of_the_file() -> None:
    assert LEXICON.reasons == (
        HandOverReason("fire", "something burns"),
        HandOverReason("injury", "somebody was hurt"),
    )
    assert LEXICON.find("My son is in hospital, since the dryer was on fire.") == ("fire", "injury")


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        pytest.param("The fan SMOKES a little.", ("fire",), id="case and endings do not count"),
        pytest.param("There were no flames.", (), id="an exception"),
        pytest.param("There were no flames, but smoke.", ("fire",), id="an exception covers its own words alone"),
        pytest.param("No flames? Flames!", ("fire",), id="the same word outside of the exception"),
        pytest.param("We are a non-smoking household.", (), id="an exception around a phrase"),
        pytest.param("I burned my left hand.", ("injury",), id="both of a pair"),
        pytest.param("My hands got burned.", ("injury",), id="in any order"),
        pytest.param("It burned.", (), id="one of a pair"),
        pytest.param("Burn on my hand", ("injury",), id="a shorter phrase counts beside a longer one"),
        pytest.param("The toast is burned. My hand mixer works.", (), id="in two sentences"),
        pytest.param("I burned\nmy hand", ("injury",), id="over a line's end"),
        pytest.param("burned " + "x " * (MAX_WORDS_APART - 1) + "hand", ("injury",), id="as far apart as may be"),
        pytest.param("burned " + "x " * MAX_WORDS_APART + "hand", (), id="too far apart"),
    ],
)
def test_what_gives_a_reason(text: str, reasons: tuple[str, ...]) -> None:
    assert LEXICON.find(text) == reasons


@pytest.mark.parametrize(("where", "found"), [("first-mails", [True, False]), ("conversations", [False, True])])
def test_a_reason_may_count_only_in_first_mails_or_only_in_answers(where: str, found: list[bool]) -> None:
    lexicon = parse_hand_over(f'<hand-over reason="child" in="{where}" description="x">toddler</hand-over>')
    assert [bool(lexicon.find("Our toddler", in_conversation=answers)) for answers in (False, True)] == found


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("\n<hand-over description='x'>fire</hand-over>", 2, "has no usable reason. Give it a name"),
        ("<hand-over reason='fire'>fire</hand-over>", 1, "reason 'fire' has no description"),
        ("<hand-over reason='fire' description='x' words='y'>fire</hand-over>", 1, "unknown attribute 'words'"),
        ("<hand-over reason='fire' description='x' in='x'>fire</hand-over>", 1, 'has in="x". Write in="conversations"'),
        ("<hand-over reason='fire' description='x'>\n , \n</hand-over>", 1, "<hand-over> is empty"),
        ("<hand-over reason='fire' description='x'>\nfire\n<b>x</b></hand-over>", 3, "<b> inside <hand-over>"),
        ("<hand-over reason='fire' description='x'>\nfire, f*\n</hand-over>", 2, "phrase 'f*' has a '*'"),
        (
            "<hand-over reason='fire' description='x'>\nfire +\n</hand-over>",
            2,
            "phrase 'fire +' has nothing beside a '+'",
        ),
        ("<hand-over reason='fire' description='x'>\na||b + c\n</hand-over>", 2, "has nothing beside a '+' or '|'"),
        ("<hand-over reason='fire' description='x'>\nfire|smoke\n</hand-over>", 2, "needs one '+' and has 0"),
        ("<hand-over-exceptions>\n\nf*\n</hand-over-exceptions>", 3, "phrase 'f*' has a '*'"),
        ("<handover reason='fire' description='x'>fire</handover>", 1, "<handover> is unknown. Write <hand-over>"),
        ("\n<hand-over-exception>no fire</hand-over-exception>", 2, "<hand-over-exception> is unknown"),
        ("<hand-over-exceptions>\nno + fire\n</hand-over-exceptions>", 2, "which an exception cannot"),
        (
            "<hand-over reason='fire' description='x'>a</hand-over><hand-over reason='fire' description='y'/>",
            1,
            "reason 'fire' stands twice",
        ),
        (
            "<hand-over reason='fire' description='x'>a</hand-over>\n<hand-over-exceptions>a</hand-over-exceptions>",
            2,
            "phrase 'a' is an exception and stands for a reason, too",
        ),
    ],
)
def test_what_cannot_be_used_is_reported_with_its_line(body: str, line: int, message: str) -> None:
    error = markup_error(parse_hand_over, body)
    assert (error.line, error.code) == (line, "instruction_rule_invalid")
    assert message in error.message


@pytest.mark.parametrize("part", ["burn ", "hand burn ", "no flames ", "\n", " ", "\n \r", "smok. "])
def test_a_hostile_text_is_read_to_its_end(part: str) -> None:
    assert "injury" in LEXICON.find(part * (200_000 // len(part)) + "hospital")

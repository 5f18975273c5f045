from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.reading.numbers import SERIAL_NUMBER, Tiers, read_numbers

CORRECTED = [
    ("Serial number SN60111. Scrap that, it is SN60112.", "SN60112"),
    ("Not SN20939 but SN20933, sorry.", "SN20933"),
    ("My serial number is not 4711-A but 4711-B.", "4711-B"),
    ("The serial number is not CV-2290-K7 as I told your colleague on the phone but CV-2290-K1.", "CV-2290-K1"),
    ("The serial number is KX-2201, not KX-2210 as I wrote before.", "KX-2201"),
    ("Scrap SN20491, it is SN20492.", "SN20492"),
    ("Please ignore SN10021. The broken one has serial number SN10022.", "SN10022"),
    ("It's SN55120 instead of SN55210.", "SN55120"),
    ("Sorry, wrong number: SN4711 should be SN4712.", "SN4712"),
    ("I wrote SN80210 by mistake, the correct serial number is SN80120.", "SN80120"),
    ("Serial number 77-1240. Oops, I meant 77-1204.", "77-1204"),
    ("Serial: 77-1240. Correction: 77-1204.", "77-1204"),
    ("In my last mail I gave you SN88041. That was a typo, it's SN88014.", "SN88014"),
    ("SN61166 that I sent is incorrect. SN61616 is the right one.", "SN61616"),
    ("Serial TR-7718? No, I misread it. It's TR-7781.", "TR-7781"),
    ("Serial number YM 0418. 22. no sorry YM-0418-22", "YM-0418-22"),
    ("Fan SN20939 hums.\n\nNot SN20939 but SN20933.", "SN20933"),
    ("Die Seriennummer ist nicht KW-7714, sondern KW-7741.", "KW-7741"),
    ("SN88210 muss SN88120 heißen.", "SN88120"),
    ("Vergessen Sie SN31210, richtig ist SN31120.", "SN31120"),
    ("Numer seryjny to nie PL-7714, lecz PL-7741.", "PL-7741"),
    ("Nie SN20210, tylko SN20120.", "SN20120"),
    ("Zamiast SN88210 powinno być SN88120.", "SN88120"),
    ("Ce n'est pas SN20210 mais SN20120.", "SN20120"),
    ("Le numéro de série est FR-7741 et non FR-7714.", "FR-7741"),
    ("No es SN20210 sino SN20120.", "SN20120"),
    ("Non è SN20210 ma SN20120.", "SN20120"),
    ("Niet SN20210 maar SN20120.", "SN20120"),
]
NOT_CORRECTED = [
    ("Is it SN60111 or SN60112?", ("SN60111", "SN60112")),
    ("It does not close: serial numbers SN60111, SN60112", ("SN60111", "SN60112")),
    ("SN60111 and SN60112 do not work.", ("SN60111", "SN60112")),
    ("SN60111 muss repariert werden, SN60112 auch.", ("SN60111", "SN60112")),
    ("SN60111, SN60112. The correct serial number is SN60113.", ("SN60111", "SN60112", "SN60113")),
    ("Serial number SN60111. Not 2024 but 2025.", ("SN60111",)),
    ("The order is not 44112 but 44121. Serial number SN60111.", ("SN60111",)),
    ("Serial number SN60111. Correction: I bought it in 2021.", ("SN60111",)),
    ("Serial number SN60111. The fan sounds wrong.", ("SN60111",)),
    ("Forget my mail of yesterday, please. Serial number SN60111.", ("SN60111",)),
    ("Serial number SN60111, no sorry 48829911", ()),  # either may be meant, so neither is read
]


@pytest.mark.parametrize(("text", "number"), CORRECTED)
def test_a_correction_gives_the_right_number(text: str, number: str, lexicon: Lexicon) -> None:
    assert read_numbers(Tiers(text, "", ""), SERIAL_NUMBER, lexicon).numbers == (number,)


@pytest.mark.parametrize(
    "text",
    [
        "Not SN60111.",
        "SN60111 was a typo.",
        "Serial number SN60111.\n\nActually no, scrap that, I looked again.",
        "Seriennummer SN60111. Moment, nein, das ist falsch.",
        "SN60111\n\nJe me suis trompé.",
    ],
)
@pytest.mark.parametrize("asked", [False, True])
def test_the_one_number_that_is_taken_back_is_not_read(text: str, asked: bool, lexicon: Lexicon) -> None:
    assert read_numbers(Tiers(text, "", ""), SERIAL_NUMBER, lexicon, asked=asked).numbers == ()


@pytest.mark.parametrize(("text", "numbers"), NOT_CORRECTED)
def test_what_is_no_correction_takes_nothing_back(text: str, numbers: tuple[str, ...], lexicon: Lexicon) -> None:
    assert read_numbers(Tiers(text, "", ""), SERIAL_NUMBER, lexicon).numbers == numbers


@pytest.mark.parametrize(
    "part", ["not SN1234 ", "not ", "should be A-1234 ", "SN1234 is wrong ", "serial not A-123 but "]
)
def test_a_hostile_text_is_read_to_its_end(part: str, lexicon: Lexicon) -> None:
    text = part * (100_000 // len(part)) + "\n\nserial number: HT20491"
    assert isinstance(read_numbers(Tiers(text, "", ""), SERIAL_NUMBER, lexicon).numbers, tuple)

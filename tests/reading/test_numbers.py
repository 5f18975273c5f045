from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.reading.number_reader import NumberReading, number_key
from guarantee_email_agent.reading.numbers import SERIAL_NUMBER, Tiers, read_numbers

GROUPS: Any = load_documents(Path(__file__).with_name("texts_with_numbers.yaml").read_text(encoding="utf-8"))[0]
ORDER_LABELS = ("order", "order number", "order no", "bestellnummer", "booking ref")
FORMATS = {
    "with formats of a company": NumberFormat("serial_number", patterns=("KT-[0-9]{5}-[0-9]", "[0-9]{10}")),
    "order numbers of letters and digits": NumberFormat("order_number", "", ("[A-Z]{2}-?[0-9]{5}",), ORDER_LABELS),
    "with several formats": NumberFormat(
        "serial_number",
        patterns=(
            r"[A-Z]{2}-[0-9]{5}",
            r"KT-\d{5}-\d",
            "KT[0-9]{6}",
            r"LM\d{2}-\d{4}-\d{5}",
            r"P-\d{2}-\d{5}",
            r"P-\d{5}-\d{2}",
            r"[FHKV]\d{3}\.\d{3}\.\d{3}",
            r"[A-Z]{2}\d{2}[A-L]\d{5}",
            r"[A-Z]\d{7}",
        ),
    ),
    "order numbers of digits": NumberFormat("order_number", "", ("[0-9]{6}",), ORDER_LABELS),
}
CASES = [
    pytest.param(text, [numbers] if isinstance(numbers, str) else numbers, read_as, id=f"{group['rule']}: {text}")
    for group in GROUPS
    for text, numbers in group["texts"].items()
    for read_as in group.get("read_as", ["any mail"])
]
PIECES = ["serial number", "S/N", "SN", "SN123", "order", "is", "not", "\n", "|", "\t", ":", "-", "/", ",", "?", "A-1"]


def read(text: str, lexicon: Lexicon, *, asked: bool = False) -> NumberReading:
    return read_numbers(Tiers(text, "", ""), SERIAL_NUMBER, lexicon, asked=asked)


@pytest.mark.parametrize(("text", "numbers", "read_as"), CASES)
def test_the_numbers_of_a_text(text: str, numbers: list[str], read_as: str, lexicon: Lexicon) -> None:
    number_format = FORMATS.get(read_as, SERIAL_NUMBER)
    reading = read_numbers(Tiers(text, "", ""), number_format, lexicon, asked=read_as == "answer")
    assert list(reading.numbers) == numbers
    assert reading.is_answer == (read_as == "answer" and numbers != [])


@pytest.mark.parametrize("spelling", ["SN12345", "sn-12345", "12345", "SN 123.45"])
def test_spellings_of_one_number_have_one_key(spelling: str) -> None:
    assert number_key(spelling) == "12345"


@pytest.mark.parametrize(
    "text",
    [
        "S/N: KT-77?20-9 (one digit unreadable)",
        "Serial number KT-77120-?",
        "S/N KT-77120-9 or -8",
        "Serial number: KT-77[smudged]20",
        "S/N 7QF then a scratch then 12",
        'Sticker: "Serial No. 2 2 0 [coffee stain] 8 H"',
        "Serial KX200 4711-AB",
    ],
)
def test_a_number_that_was_read_in_part_is_not_looked_up(text: str, lexicon: Lexicon) -> None:
    reading = read(text, lexicon)
    assert reading.numbers == ()
    assert reading.unreadable


@pytest.mark.parametrize(
    ("text", "count", "asked"),
    [
        ("My device: TRK9920418, it leaks.", 0, 1),
        ("Is KT-77120-9 still covered?", 0, 1),
        ("DW88104427. Warranty?", 0, 1),
        ("The drill CD18-330917 and the jigsaw JS65-008123, please.", 2, 2),
        ("Der Toaster TO-220-9157 und der Kocher KT-60114-3 sind hin.", 2, 2),
        ("Toaster KTX-2000, KT-60114-3 on it", 0, 2),  # a model
        ("Scrap HT204911, it is HT204912.", 0, 2),  # one device
    ],
)
def test_numbers_without_a_label_are_asked_about_and_count_where_two_that_look_alike_are_of_several_devices(
    text: str, count: int, asked: int, lexicon: Lexicon
) -> None:
    reading = read(text, lexicon)
    assert (len(reading.numbers), len(reading.unconfirmed)) == (count, asked)


@pytest.mark.parametrize(
    "text",
    [
        "INC0012345, my toaster broke",
        "My order AMZ-204177, toaster broken",
        "PO number PO12345",
        "My card 4111 1111 1111 1111",
        "It says EN60335-1 on it",
        "My IBAN is DE89 3704 0044 0532 0130 00",
        "My neighbour's is NB-33301-7, I cannot find mine",
        "My neighbour helped, hers is NB-33301-7",
        "I read it at my neighbour's for you: NB-33301-7",
        "Kettle broken.\nwww.example.com/KT-77120-9",
    ],
)
def test_a_number_that_is_something_else_is_not_even_asked_about(text: str, lexicon: Lexicon) -> None:
    reading = read(text, lexicon)
    assert reading.numbers == ()
    assert "4111111111111111" not in reading.unconfirmed
    assert not any(number.startswith(("EN", "DE", "NB", "KT", "AMZ")) for number in reading.unconfirmed)


@pytest.mark.parametrize("end", [":\nKT-77120-9\nJo", ". It says KT-77120-9, I think."])
def test_what_stands_beside_a_number_that_fills_a_line_or_clause_is_judged_as_of_any_mail(
    lexicon: Lexicon, end: str
) -> None:
    text = f"Is it raining? It is here. Model ER-6 of the quokka wibbles, snorfles, frobnicates and gronks{end}"
    reading = read(text, lexicon, asked=True)
    assert reading.numbers == ("KT-77120-9",)
    assert not reading.is_answer


@pytest.mark.parametrize(
    ("tiers", "numbers"),
    [
        (Tiers("It is SN111.", "e.g. SN222", "SN333"), ("SN111",)),
        (Tiers("Any news?", "S/N 4711-A", ""), ("4711-A",)),
        (Tiers("Any news?", "", "S/N 4711-A"), ()),
        (Tiers("S/N 47?1-A", "S/N 4711-A", ""), ()),
        (Tiers("It's 7719003", "The serial number?", ""), ("7719003",)),
    ],
)
def test_new_text_counts_before_quoted_text_and_a_signature_never(
    tiers: Tiers, numbers: tuple[str, ...], lexicon: Lexicon
) -> None:
    assert read_numbers(tiers, SERIAL_NUMBER, lexicon).numbers == numbers


def test_a_model_picks_among_the_numbers_that_count(lexicon: Lexicon) -> None:
    several = read("SN111222 and SN333444", lexicon)
    assert several.picked(["sn-111222"]) == ("SN111222", "SN333444")
    assert several.picked(["SN999", "111"]) == ()
    assert read("S/N KT-77?20-9", lexicon).picked(["KT-77", "KT-77?20-9", "20-9"]) == ()


@pytest.mark.parametrize(
    ("text", "number", "reason"),
    [
        ("Invoice number 991823.", "991823", "belongs to 'Invoice number'"),
        ("It is 4.500 EUR since 12:30", "12", "is no plain number, but part of a sum, a time or the like"),
        ("My KX20 broke.", "KX20", "has no label"),
        ("S/N KT-77?20-9", "KT-77", "could not be read in full"),
        ("Serial number: 47-VALID11", "47-VALID11", "reads like words or a link, which no reply may repeat"),
        ("My neighbour's is S/N 4711-A", "4711-A", "is of somebody else's device"),
        (
            "See https://example.com/SN12345",
            "SN12345",
            "belongs to something else, such as an address, a link or an example",
        ),
    ],
)
def test_a_number_that_does_not_count_has_a_reason(text: str, number: str, reason: str, lexicon: Lexicon) -> None:
    assert dict(read(text, lexicon).dropped)[number] == reason


@settings(max_examples=150)
@given(text=st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map(" ".join))
def test_every_number_found_stands_in_the_text(text: str, lexicon: Lexicon) -> None:
    squashed = "".join(sign for sign in text.upper() if sign.isalnum())
    for number in read(text, lexicon).numbers:
        assert "".join(sign for sign in number if sign.isalnum()) in squashed


_SERIALS = st.one_of(
    st.from_regex(r"SN[1-9][0-9]{4,7}", fullmatch=True),
    st.from_regex(r"[BCFGHJK][A-Z]-[1-9][0-9]{3}-[0-9]{2}", fullmatch=True),
    st.from_regex(r"[1-9][0-9]{6,9}", fullmatch=True),
)
_HOLES = st.sampled_from(["?", "*", "#", "…", "..", "[?]", "[smudged]"])


@settings(max_examples=100)
@given(_SERIALS, _HOLES, st.integers(2, 5))
def test_a_number_with_a_hole_is_never_looked_up(lexicon: Lexicon, number: str, hole: str, place: int) -> None:
    assume(not (hole == "#" and number[:place] == "SN"))  # "SN#12345" is a label
    text = f"Serial number: {number[:place]}{hole}{number[place:]}"
    assert read(text, lexicon).numbers == ()
    assert read(text, lexicon, asked=True).numbers == ()


@settings(max_examples=100)
@given(_SERIALS, st.sampled_from("—−⁄∕=+"), st.from_regex(r"[0-9]{1,4}|[A-Z]{1,4}", fullmatch=True))
def test_a_number_that_an_odd_sign_joins_to_more_is_never_looked_up(
    lexicon: Lexicon, number: str, sign: str, piece: str
) -> None:
    for text in (f"Serial number: {number}{sign}{piece}", f"Serial number: {piece}{sign}{number}"):
        assert not {number_key(each) for each in read(text, lexicon).numbers} & {number_key(number)}
        assert read(text, lexicon, asked=True).numbers == ()


@pytest.mark.parametrize(
    "text",
    [
        "S/N: KT-77l20 (l or 1)",
        "S/N: KT-77120-8, 8 or 6",
        "S/N KT-77120,9",
        "S/N KT-77120|9",
        "S/N RV-A 1940 2218",
        "S/N RV - A 1940 2218",
        "My S/N: MODEL-X 1940 2218",
        "S/N 1940 2218 RV-A",
    ],
)
def test_a_part_that_may_be_another_is_unreadable(text: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon) == NumberReading(unreadable=True, labelled=True, dropped=read(text, lexicon).dropped)


_OTHERS = st.one_of(
    st.from_regex(r"[0-9]{6,10}", fullmatch=True).map("Order number: {}".format),
    st.from_regex(r"[0-9]{3} [0-9]{3} [0-9]{3}", fullmatch=True).map("Phone +48 {}".format),
    st.from_regex(r"DE[0-9]{2}( [0-9]{4}){4} [0-9]{2}", fullmatch=True).map("IBAN {}".format),
    st.from_regex(r"20[0-9]{2}-0[1-9]-[12][0-9]", fullmatch=True).map("Bought {}".format),
    st.from_regex(r"[0-9]{12,20}", fullmatch=True).map("Tracking number {}".format),
)


@settings(max_examples=50)
@given(_SERIALS, st.lists(_OTHERS, min_size=1, max_size=2), st.booleans())
def test_nothing_but_the_labelled_number_counts(
    lexicon: Lexicon, number: str, others: list[str], is_first: bool
) -> None:
    label = f"Serial number: {number}"
    text = "\n".join([label, *others] if is_first else [*others, label])
    assert set(map(number_key, read(text, lexicon).numbers)) <= {number_key(number)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "serial ",
        "SN-1-",
        "a|",
        "\t",
        "AB-12/",
        "\n",
        "https://",
        "X" * 50,
        "1 or 2 ",
        "KT-1\n07700 900461\n",
        "07700 900461 - ",
        "not SN1234 ",
        "not ",
        "should be A-1234 ",
        "SN1234 is wrong ",
        "serial not A-123 but ",
    ],
)
def test_a_hostile_text_is_read_to_its_end(part: str, lexicon: Lexicon) -> None:
    text = part * (100_000 // len(part)) + "\n\nserial number: HT20491"
    assert isinstance(read(text, lexicon, asked=True).numbers, tuple)

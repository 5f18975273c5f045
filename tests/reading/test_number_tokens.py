import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading.number_tokens import NumberToken, extend_number, find_number_tokens


def tokens(text: str, lexicon: Lexicon) -> list[NumberToken]:
    words = tokenize(text)
    return find_number_tokens(words, lexicon, lexicon.labels.find(words))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("My SN12345 broke.", ["SN12345"]),
        ("ZX-9001-11 and 4711/A_2", ["ZX-9001-11", "4711/A_2"]),
        ("FD 9804 00231 hums", ["FD980400231"]),
        ("It is 4c1 7719 0033", ["4C177190033"]),
        ("CX 5519 02A", ["CX551902A"]),
        ("TV 4K 60HZ", ["4K", "60HZ"]),
        ("A1 B2", ["A1", "B2"]),
        ("00471 KL", ["00471KL"]),
        ("THE 00471 IS ON", ["00471"]),
        ("KX200 4711", ["KX200", "4711"]),
        ("TS90 0101", ["TS900101"]),
        ("TS90 2024", ["TS90", "2024"]),
        ("TS90 01234", ["TS90", "01234"]),
        ("S/N TS90 01234, TS90 01235", ["TS9001234", "TS9001235"]),
        ("The serial number is TS90 12345.", ["TS9012345"]),
        ("Mod./Ser. no.: TS90 12345", ["TS90", "12345"]),
        ("1234\n5678", ["1234", "5678"]),
        ("SN12345.Thanks", ["SN12345"]),
        ("SN111/SN222/KX3", ["SN111", "SN222/KX3"]),
        ("no digits", []),
    ],
)
def test_a_number_is_read_whole(text: str, numbers: list[str], lexicon: Lexicon) -> None:
    assert [number.text for number in tokens(text, lexicon)] == numbers


@pytest.mark.parametrize(
    "text",
    ["+48601", "€12345", "12345%", "1,234,567", "12:30:45", "12--34", "12345-\n678", "12345\u0336", "\u0410-12345"],
)
def test_what_only_looks_like_a_number_of_its_own_is_not_plain(text: str, lexicon: Lexicon) -> None:
    assert not tokens(text, lexicon)[0].is_plain


def test_digits_beside_digits_are_known(lexicon: Lexicon) -> None:
    numbers = tokens("(030) 231 25014, 7719003", lexicon)
    assert [number.is_beside_last for number in numbers] == [False, True, True, False]


@given(st.text(alphabet="AB12 -./,\nsnX", max_size=60))
def test_numbers_never_overlap_and_leave_no_digit_out(lexicon: Lexicon, text: str) -> None:
    words, numbers = tokenize(text), tokens(text, lexicon)
    covered = [index for number in numbers for index in range(number.first, number.end)]
    assert covered == sorted(set(covered))
    assert {index for index, word in enumerate(words.folded) if not word.isalpha()} <= set(covered)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["1", "12 34 ", "4C 7719 0033 X ", "1-", "AB 12 ", "X ", "a.1", "1,234"])
def test_a_hostile_text_of_full_length_is_read(part: str, lexicon: Lexicon) -> None:
    text = (part * 200_000)[:200_000]
    assert isinstance(tokens(text, lexicon), list)


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"KT-77{sign}20-9"
            for sign in ("?", "*", "#", "…", "..", "_?_", "[smudged]", " [smudged] ", " ? ", " _ ", "□", "~")
        ),
        "KT-77120-?",
        "KT-77120-",
        "*4019*Z*",
        "12xx45",
        "KT-77120-9 or -8",
        "KT-77120 or B",
        "KT-77120 (last digit unreadable)",
        "KT-77120, one digit is smudged",
        "I can't quite read it, KT-77120",
        "Nr. KT-77120, letzte Ziffer nicht lesbar",
        "KT-77120, le dernier chiffre est effacé",
    ],
)
def test_a_number_beside_what_nobody_can_read_is_not_read(text: str, lexicon: Lexicon) -> None:
    assert not any(token.is_read for token in tokens(text, lexicon) if len(token.text) > 1)


@pytest.mark.parametrize(
    "text",
    [
        "Is it KT-77120?",
        "KT-77120!",
        "(KT-77120)",
        "SN#KT-77120",
        "KT-77120 - it leaks",
        "KT-77120. The receipt is faded.",
        "KT-77120 or something",
        "KT-77120 or KT-77121",
    ],
)
def test_punctuation_and_other_words_leave_a_number_read(text: str, lexicon: Lexicon) -> None:
    assert all(token.is_read for token in tokens(text, lexicon))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0817-44 930 21", "0817-4493021"),
        ("40 0098 771 HL", "400098771HL"),
        ("AS-7 118 205 CH", "AS-7118205CH"),
        ("39 0427-1166 is mine", "390427-1166"),
        ("4711-A 2 years old", "4711-A"),
        ("48817734 LG dryer", "48817734"),
        ("SN12345 778.", "SN12345"),
        ("60W 77190", "60W"),
    ],
)
def test_an_announced_number_has_all_its_groups(text: str, number: str, lexicon: Lexicon) -> None:
    found = tokens(text, lexicon)
    whole = extend_number(found[0], tokenize(text), lexicon, {each.first: each for each in found})
    assert whole.text == number
    assert whole.is_whole


@pytest.mark.parametrize(
    "text", ["TS90 2024", "KX200 4711-AB", "48817734 48817735.", "CHF440 / 2 / 08", "7700 41 b", "770041 b"]
)
def test_a_number_of_which_the_end_is_open_is_not_whole(text: str, lexicon: Lexicon) -> None:
    found = tokens(text, lexicon)
    assert not extend_number(found[0], tokenize(text), lexicon, {each.first: each for each in found}).is_whole

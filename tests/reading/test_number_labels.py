import pytest

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading.number_labels import (
    MAX_TABLE_ROWS,
    Claim,
    Label,
    LabelReader,
    find_labels,
    find_standard,
    number_text,
)
from guarantee_email_agent.reading.number_tokens import NumberToken, find_number_tokens, is_distinctive

CLAIMS: dict[str, Claim] = {"serial": "own", "weak": "weak", "other": "other", "example": "example"}


def reader_of(text: str, lexicon: Lexicon, claim: Claim = "own") -> tuple[LabelReader, Label]:
    """The reader of a text, and its first label with a claim."""
    words = tokenize(text)
    found = find_labels(words, lexicon)
    labels = {each.first: Label(each.first, each.end, CLAIMS[each.payload]) for each in found}

    def may_be_ours(number: NumberToken) -> bool:
        is_example = any(label.claim == "example" and label.end == number.first for label in labels.values())
        return not is_example and lexicon.labelled.fullmatch(number.text) is not None

    text = number_text(words, lexicon, labels, find_number_tokens(words, lexicon, found))
    reader = LabelReader(text, may_be_ours, lambda number: is_distinctive(number.text))
    return reader, next(label for label in labels.values() if label.claim == claim)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("S/N 4711-A", "4711-A"),
        ("S/N:\n\n4711-A", "4711-A"),
        ("The serial number on the back of the fan reads: 4711-A", "4711-A"),
        ("The serial number of my KX200 is 4711-A", "4711-A"),
        ("Serial number (e.g. SN12345): 4711-A", "4711-A"),
        ("Serial number: TS70502.Thanks", "TS70502"),
        ("Serial number unreadable, model KX200", None),
        ("I cannot find the serial number of the KX200", None),
        ("Serial number:\nModel: KX200", None),
        ("What is the serial number of the KX200? It hums.", None),
    ],
)
def test_the_number_behind_a_label(text: str, number: str | None, lexicon: Lexicon) -> None:
    reader, label = reader_of(text, lexicon)
    found = reader.number_after(label)
    assert (found.text if found else None) == number


def test_the_cells_below_a_heading(lexicon: Lexicon) -> None:
    reader, label = reader_of("Model | Serial number\nKX200 | 4711-A\nKX300 | 4711-B\nBoth hum.", lexicon)
    assert [cell.text for cell in reader.numbers_in_column(label)] == ["4711-A", "4711-B"]


def test_a_label_below_the_first_row_heads_no_column(lexicon: Lexicon) -> None:
    reader, label = reader_of("Model | KX200\nSerial number | 4711-A\nBought | 4711-B", lexicon)
    assert reader.numbers_in_column(label) == []


def test_a_long_table_is_read_to_a_limit(lexicon: Lexicon) -> None:
    rows = "".join(f"\nKX | AB{number:05}" for number in range(2 * MAX_TABLE_ROWS))
    reader, label = reader_of(f"Model | Serial number{rows}", lexicon)
    assert len(reader.numbers_in_column(label)) == MAX_TABLE_ROWS


def test_another_number_s_label_reaches_less_far(lexicon: Lexicon) -> None:
    reader, label = reader_of("The order number that your friendly colleague gave me was 4711-A", lexicon, "other")
    assert reader.number_after(label) is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("07700 900461", "a phone number"),
        ("+48 600 123 456", "a phone number"),
        ("612 345 678", "a phone number"),  # Spain and Poland dial no zero
        ("48 601 234 567", "a phone number"),
        ("(030) 901820", "a phone number"),
        ("DE89 3704 0044 0532 0130 00", "a bank account (IBAN)"),
        ("GB82WEST12345698765432", "a bank account (IBAN)"),
        ("4111 1111 1111 1111", "a card"),
        ("490154203237518", "a card"),  # an IMEI has a card's check digit, too
        ("4006381333931", "an article (EAN, ISBN)"),
        ("978-3-16-148410-0", "an article (EAN, ISBN)"),
        ("DE136695976", "a VAT number"),
        ("44051401359", "a personal number"),
        ("12345678Z", "an identity card"),
    ],
)
def test_a_number_with_its_check_digit_is_known(written: str, name: str) -> None:
    assert find_standard(written) == name


@pytest.mark.parametrize(
    "written",
    [
        "",
        "KT-77120-9",
        "4711 0815 22",
        "DE89 3704 0044 0532 0130 01",
        "4111 1111 1111 1112",
        "4006381333934",
        "12345678A",
    ],
)
def test_a_number_of_nobody_or_with_another_check_digit_is_not(written: str) -> None:
    assert find_standard(written) is None

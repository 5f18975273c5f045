import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.eval.capture.anonymizer import Anonymizer


def replaced(*texts: str, names: tuple[str, ...] = (), salt: bytes = b"mail", own: tuple[str, ...] = ()) -> list[str]:
    anonymizer = Anonymizer(salt, texts, names, own)
    return [anonymizer.replace(text) for text in texts]


def form(text: str) -> str:
    """Digits as 9 and letters as A or a."""
    return re.sub("[a-z]", "a", re.sub("[A-Z]", "A", re.sub("[0-9]", "9", text)))


@pytest.mark.parametrize(
    "number",
    [
        "SN12345",
        "SN-48213-7",
        "AB12C345",
        "2024-118392",
        "+49 30 1234567",
        "0176 / 1234 5678",
        "1234567890",
        "20-41-55",
        "601 - 234 - 567",
        "601 23 45",
        "22 123 45 67",
        "06 12 34 56 78",
    ],
)
def test_a_number_keeps_its_form_and_is_another(number: str) -> None:
    (changed,) = replaced(number)
    assert form(changed) == form(number)
    assert changed != number


def test_the_letters_before_the_digits_stay() -> None:
    assert replaced("SN48213")[0].startswith("SN")


def test_equal_digits_stay_equal_and_a_leading_zero_a_zero() -> None:
    (changed,) = replaced("0447744")
    assert (changed[0], changed[1] == changed[2], changed[3] == changed[4]) == ("0", True, True)
    assert not replaced("7000123")[0].startswith("0")


def test_one_number_is_replaced_by_one_however_it_is_written() -> None:
    changed = replaced("SN48213", "SN-48213", "number 48213.", "482-13")
    assert {"".join(re.findall(r"\d", text)) for text in changed} == {re.findall(r"\d+", changed[0])[0]}


def test_a_part_of_a_number_becomes_the_same_part() -> None:
    whole, part = replaced("SN4821399", "it ends in 1399")
    assert whole[-4:] == part[-4:]


@pytest.mark.parametrize(
    "text",
    [
        "12.01.2026",
        "2026-01-12",
        "2026-01-12T10:00:00Z",
        "10:30",
        "in 2019",
        "499,00 EUR",
        "€ 1200",
        "1400 W",
        "2 years",
    ],
)
def test_dates_times_years_and_amounts_stay(text: str) -> None:
    assert replaced(text) == [text]


def test_addresses_are_replaced_by_person_and_company() -> None:
    changed = replaced("a.smith@firm.de, b@firm.de and A.Smith@firm.de wrote to c@other.de")[0]
    assert changed == "customer@example.com, person2@example.com and customer@example.com wrote to person3@example.org"


@pytest.mark.parametrize("address", ["noreply@shop.de", "mailer-daemon@shop.de", "support@shop.de"])
def test_what_an_address_is_for_stays(address: str) -> None:
    assert replaced(address) == [address.replace("shop.de", "example.com")]
    assert replaced("bounces+jane.doe=firm.de@shop.de noreply.jo@shop.de") == [
        "bounces@example.com noreply@example.com"
    ]


def test_our_own_address_is_support() -> None:
    assert replaced("us@firm.de", own=("us@firm.de",)) == ["support@example.com"]


def test_a_name_is_replaced_in_every_case_and_place() -> None:
    changed = replaced("Anna", "ANNA", "Annas Foto", "Anna_Foto.jpg", "Hannah", names=("Anna",))
    assert changed == ["Alex", "ALEX", "Alexs Foto", "Alex_Foto.jpg", "Hannah"]


def test_a_name_that_is_a_word_too_is_left_in_small_letters() -> None:
    assert replaced("Will says he will come", names=("Will",)) == ["Alex says he will come"]


def test_a_name_that_stands_in_the_mail_is_given_to_nobody() -> None:
    assert replaced("Alex and Ida", names=("Alex", "Ida"))[0] == "Robin and Kim"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Berliner Straße 12", "Example Street 1"),
        ("12 Long Acre Road", "Example Street 1"),
        ("ul. Długa 7/3", "Example Street 1"),
        ("12 rue de la Paix", "Example Street 1"),
        ("14 Elm Grove, Leeds LS6 2AB", "Example Street 1, Leeds 10001 Exampletown"),
        ("Am Alten Markt 12a", "Example Street 1"),
        ("Unter den Linden 77, 3. OG", "Example Street 1, 3. OG"),
        ("Am Montag 12 Uhr, im Display 12", "Am Montag 12 Uhr, im Display 12"),
        ("aleja Jana Pawła II 15", "Example Street 1"),
        ("12 bis, rue de la République", "Example Street 1"),
        ("C/ Mayor, 14", "Example Street 1"),
        ("7B Kingfisher Court", "Example Street 1"),
        ("Storgatan 14, 211 42 Malmö", "Example Street 1, 10001 Exampletown"),
        ("Avda. de la Constitución 45", "Example Street 1"),
        ("10115 Berlin", "10001 Exampletown"),
        ("see https://shop.de/order/99812?user=anna.", "see https://www.example.com/1"),
    ],
)
def test_streets_places_and_links_are_made_up(text: str, changed: str) -> None:
    assert replaced(text) == [changed]


@pytest.mark.parametrize(
    "address", ["jane.doe [at] firm.example", "jane.doe(at)firm (dot) example", "jane.doe@firm.example"]
)
def test_an_address_that_is_hidden_from_programs_is_replaced(address: str) -> None:
    assert replaced(f"jane.doe@firm.example, write to {address} now") == [
        "customer@example.com, write to customer@example.com now"
    ]


def test_the_address_of_a_network_card_is_another() -> None:
    (changed,) = replaced("00:1B:44:11:3A:B7")
    assert re.fullmatch(r"(?:[0-9A-Z]{2}:){5}[0-9A-Z]{2}", changed)
    assert changed != "00:1B:44:11:3A:B7"


def test_a_polish_name_is_replaced_with_each_of_its_endings() -> None:
    changed = replaced("Anny Annie Anną Kowalskiej Kowalską", names=("Anna", "Kowalska"))[0]
    assert changed == "Alex Alex Alex Robin Robin"


def test_message_ids_are_ours_and_the_same_one_the_same() -> None:
    anonymizer = Anonymizer(b"mail", (), ())
    assert anonymizer.replace_message_ids("<a@firm.de> <b@firm.de> <a@firm.de>") == (
        "<message-1@example.com> <message-2@example.com> <message-1@example.com>"
    )


def test_what_was_replaced_is_counted_once_by_kind() -> None:
    texts = ("SN48213 and SN48213, a@firm.de, +49 30 1234567", "DE89 3704 0044 0532 0130 00")
    anonymizer = Anonymizer(b"mail", texts, ())
    for text in texts:
        anonymizer.replace(text)
    assert anonymizer.counts == {"number": 1, "address": 1, "phone": 1, "account": 1}


def test_another_mail_gives_another_number() -> None:
    assert replaced("SN4821399", salt=b"one") != replaced("SN4821399", salt=b"two")


@given(st.text(alphabet="ab Z09-._/@+(),:\n€", max_size=60))
def test_the_same_mail_gives_the_same_and_no_long_number_stays(text: str) -> None:
    (changed,) = replaced(text)
    assert [changed] == replaced(text)
    for number in re.findall(r"(?<![\w.,:/€@()+-])\d{6,}(?![\w.,:/€@()-])", text):
        assert number not in re.findall(r"\d+", changed)


@pytest.mark.slow
def test_hostile_text_takes_no_time_to_speak_of() -> None:
    texts = (
        "A-" * 50_000,
        "1 " * 50_000,
        "a" * 100_000,
        "Aa Bb " * 20_000,
        "@" * 100_000,
        "+1 (" * 30_000,
        "x@" * 50_000,
        " ".join(f"{number}," for number in range(100_000, 120_000)),
    )
    began = time.process_time()
    for text in texts:
        replaced(text)
    assert time.process_time() - began < 30

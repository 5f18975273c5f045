from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.reading.number_reader import NumberReading, number_key
from guarantee_email_agent.reading.numbers import (
    SERIAL_NUMBER,
    Tiers,
    read_numbers,
)

LABELS = ("order", "order number", "order no", "bestellnummer", "booking ref")
MIXED = NumberFormat("order_number", "", ("[A-Z]{2}-?[0-9]{5}",), LABELS)
DIGITS = NumberFormat("order_number", "", ("[0-9]{6}",), LABELS)
OURS = NumberFormat("serial_number", patterns=("KT-[0-9]{5}-[0-9]", "[0-9]{10}"))

LABELS_BEFORE = [
    ("My kettle's serial number is QX-88213-B.", "QX-88213-B"),
    ("SN: 48817734", "48817734"),
    ("S/N 48817734", "48817734"),
    ("s/n:ab48817734", "AB48817734"),
    ("SN#HT20491", "HT20491"),
    ("Serial #: HT20491", "HT20491"),
    ("Serial-No.: HT20491", "HT20491"),
    ("Ser. No. HT20491", "HT20491"),
    ("seriel number HT20491", "HT20491"),
    ("The serial reads HT20491, I think.", "HT20491"),
    ("Serial number (on the back): HT20491", "HT20491"),
    ("The serial number for my dishwasher, which I bought last year, is HT20491.", "HT20491"),
    ("Serial number -> HT20491", "HT20491"),
    ('{"serial_number": "HT20491"}', "HT20491"),
]
LABELS_IN_OTHER_LANGUAGES = [
    ("Die Seriennummer lautet KW-7720-41.", "KW-7720-41"),
    ("Geräte-Seriennummer KW772041", "KW772041"),
    ("Seriennummer des Trockners: KW772041", "KW772041"),
    ("Numer seryjny: PL5521-09", "PL5521-09"),
    ("Pralka z numerem seryjnym PL552109 cieknie.", "PL552109"),
    ("Numéro de série : FR00912A", "FR00912A"),
    ("Número de serie: ES00912A", "ES00912A"),
    ("Numero di serie IT00912A", "IT00912A"),
    ("Výrobní číslo: CZ00912A", "CZ00912A"),
]
OTHER_PLACES = [
    ("Serial number\nHT20491", "HT20491"),
    ("Model: KX200\nSerial number: HT20491\nBought: 2024-05-01", "HT20491"),
    ("HT20491-7 is the serial number.", "HT20491-7"),
    ("HT20491-7 (serial number)", "HT20491-7"),
    ("My washing machine HT20491 — that is the serial number — leaks.", "HT20491"),
    ("Here you go: HT20491-7. That's the serial number you asked for.", "HT20491-7"),
    ("Model\tSerial number\nKX200\tHT20491", "HT20491"),
    ("Model\tSerial number\tBought\nKX200\tHT20491\t2024-05-01", "HT20491"),
    ("| Model | Serial number |\n| KX200 | HT20491 |", "HT20491"),
    ("| Model | Serial number |\n|---|---|\n| KX200 | HT20491 |", "HT20491"),
    ("Hello, SN48817734 broke down.", "SN48817734"),
    ("It's SN-48817734!", "SN-48817734"),
]
SIGNS_AROUND = [
    ('My serial is "HT20491".', "HT20491"),
    ('Serial number "TS90 12345"', "TS9012345"),
    ("serial number: [HT20491]", "HT20491"),
    ("Serial number HT20491?", "HT20491"),
    ("My serial number is: ht-20491-x", "HT-20491-X"),
    ("Serial no HT.20491.7", "HT.20491.7"),
    ("serial:HT20491;model:KX200", "HT20491"),
    ("Serial number 1234 5678 9012", "123456789012"),
    ("S/N FD 9804 00231", "FD980400231"),
]
AMONG_OTHER_NUMBERS = [
    ("Order number: 5521-88813. Serial number: HT20491.", "HT20491"),
    ("Order 552188813, invoice 2024-5512, serial HT20491", "HT20491"),
    ("The number under the barcode says S/N HT20491 and P/N 778812", "HT20491"),
    ("Serial number: SN20491 (order 20499)", "SN20491"),
    ("phone 0301234567, serial 48817734", "48817734"),
    ("The label says:\nType KX200\nS/N HT20491\n230V 50Hz 2200W", "HT20491"),
    ("My serial number is HT20491. I bought it for 399 EUR on 2024-05-17.", "HT20491"),
    ("It is not working. Serial number HT20491", "HT20491"),
    ("Serial number HT20491 is not in my photo", "HT20491"),
]
NONE = [
    "It is a KX2000-1, where is the serial number?",
    "To jest KX2000-1, gdzie jest numer seryjny?",
    "S/N 60W 77190",  # a unit begins no number
    "ORDER#448812 kettle broken",
    "Rechnungsnummer RE20240815, der Trockner ist defekt.",
    "Tracking number 1Z999AA10123456784",
    "Call me at +44 20 7946 0958",
    "Meine Telefonnummer ist 030 1234567",
    "Customer ID: C-448812\nDevice: kettle, broken",
    "ref. HT20491 kettle broken",
    "IMEI 356938035643809",
    "Postcode 10115 Berlin",
    "My IBAN is DE89370400440532013000",
    "Bought on 2024-05-17",
    "Serial number: 17.05.2024",
    "In 2023 I bought it; serial number 2023",
    "The model is KX200",
    "The error code E24 shows on my washer",
    "firmware v2.14 on my speaker",
    "Serial number: unknown",
    "Serial number: TBD",
    "Serial number: ........",
    "Serial number: XXXXXXXX",
    "serial number: [please fill in]",
    "Serial number:\nModel: KX200",
    "Serial number: see attachment IMG_20240517.jpg",
    "Please see the photo for the serial number.",
    "My serial number is one two three",
    "My serial number is missing the last digit",
    "I cannot find the serial number, it is a KX200.",
    "The serial number is unreadable.",
    "The serial number is worn off, the model is KX2000-B",
    "Where is the serial number? On my old one it was on the back.",
    "I have 2 devices and no serial number",
    "Die Seriennummer ist nicht lesbar. Modell KX2000",
    "Nie mogę znaleźć numeru seryjnego, model KX2000",
    "The serial number looks like SN12345, for example, but mine is gone.",
    "It should be something like AB12345678, e.g. SN55555, but I find none.",
    "See https://example.com/serial/SN99887766 for it",
    "Write to sn12345678@example.com",
]
SEVERAL = [
    ("Serial numbers: HT20491 and HT20492", ("HT20491", "HT20492")),
    ("Serial numbers HT20491, HT20492, HT20493", ("HT20491", "HT20492", "HT20493")),
    ("Serial numbers:\n- HT20491\n- HT20492", ("HT20491", "HT20492")),
    ("Seriennummern: HT20491 und HT20492", ("HT20491", "HT20492")),
    ("Fridge serial HT20491, oven serial KL88120", ("HT20491", "KL88120")),
    ("HT20491, HT20555 are the serial numbers", ("HT20491", "HT20555")),
    ("My old device had serial number HT20491, the new one has HT20555", ("HT20491", "HT20555")),
    ("SN111222/SN111333", ("SN111222", "SN111333")),
    ("Model\tSerial number\nKX200\tHT20491\nKX300\tHT20555", ("HT20491", "HT20555")),
]
OF_COMBINED_LABELS = [
    ("Mod./Ser. no.: WX-20 / 7781204", ("WX-20", "7781204")),
    ("Mod./Ser. no.: WX-20/7781204", ("WX-20", "7781204")),
    ("Model and serial number: WX-20, 7781204", ("WX-20", "7781204")),
    ("Model/nr seryjny: SU-9 / 4410227", ("SU-9", "4410227")),
    ("Model/Serial: WX-20", ()),
    ("Model/Serial: SN12345", ("SN12345",)),
    ("Model: WX-20 / Serial: 7781204", ("7781204",)),
]
OF_GROUPS = [
    ("Serial number: 4C 7719 0033 X. The chuck is stuck.", "4C77190033X"),
    ("Serial no. 00471 KL. It drips.", "00471KL"),
    ("Serial no. 00471-KL. It drips.", "00471-KL"),
    ("S/N 00471 KL", "00471KL"),
    ("S/N 00471 I bought it in May", "00471"),
    ("S/N 48817734 LG dryer", "48817734"),
    ("S/N FD 9804 00231", "FD980400231"),
    ("Serial number 1234 5678 2.", "123456782"),
    ("Serial number 1234 5678 2 years old", "12345678"),
]
ONE_DEVICE_IN_TWO_SPELLINGS = [
    ("Serial SN-48817734. As I said, SN48817734 is broken.", "SN-48817734"),
    ("s/n 48817734 ... again: SN48817734", "48817734"),
    ("Serial: ht20491 / HT20491 / HT-20491", "HT20491"),
    ("Serial number HT20491 HT20491 HT20491", "HT20491"),
]


def read(text: str, lexicon: Lexicon, *, asked: bool = False, quoted: str = "", signature: str = "") -> NumberReading:
    return read_numbers(Tiers(text, quoted, signature), SERIAL_NUMBER, lexicon, asked=asked)


PIECES = ["serial number", "S/N", "SN", "SN123", "order", "is", "not", "\n", "|", "\t", ":", "-", "/", ",", "?", "A-1"]


@pytest.mark.parametrize(
    ("text", "number"),
    [*LABELS_BEFORE, *LABELS_IN_OTHER_LANGUAGES, *OTHER_PLACES, *SIGNS_AROUND, *AMONG_OTHER_NUMBERS],
)
def test_finds_the_one_serial_number(text: str, number: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == (number,)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The number on the sticker underneath is KT-77120-9.", "KT-77120-9"),
        ("I turned it over, and on the plate it says KT-77120-9", "KT-77120-9"),
        ("Underneath: 5520 1187 03", "5520118703"),
        ("Auf dem Aufkleber steht: HK2-559013. Rechnungsnr. RE-2023-44190.", "HK2-559013"),
        ("nummer unten drauf 8812 0047 13", "8812004713"),
        ("Le numéro sous l'appareil est BQ-3390-17.", "BQ-3390-17"),
        ("El número que pone en la chapa es 7718 3320 15.", "7718332015"),
        ("Numer na naklejce: KT-77120-9", "KT-77120-9"),
        ("Auf dem Schild steht die Nummer 4471 0116 02.", "4471011602"),
        ("Sur la plaque, je lis « N° 4471 0116 02 ».", "4471011602"),
        ("The number on the sticker is X-4400-71, serial number KT-77120-9", "KT-77120-9"),
        ("Unten am Fuß steht PF80412, das ist laut Anleitung die Seriennummer", "PF80412"),
        ("Seriennummer: LR6-01C3-5528\nInventarnr.: GB-2023-0417", "LR6-01C3-5528"),
        ("the number on the plate by the motor, which is BS-0350-77102", "BS-0350-77102"),
        ("Auf dem Schildchen steht die Nummer HD 5501 882.", "HD5501882"),
        ("Sur l'étiquette il y a le numéro GP-2207-41.", "GP-2207-41"),
        ("En la pegatina pone el número BT-4410-77.", "BT-4410-77"),
        ("Na naklejce jest numer CZ-4410-22.", "CZ-4410-22"),
        ("Da steht unten drauf KM 4402-118.", "KM4402-118"),
        ("ma brosse a dents marche plus. n° BD550392. encore garanti ?", "BD550392"),
        ("warranty? no. AF550812. basket wont click in", "AF550812"),
        ("Mein Wasserkocher Nr. KT-77120-9 geht nicht", "KT-77120-9"),
        ("My kettle (number KT-77120-9) leaks", "KT-77120-9"),
        ("Number of the kettle: KT 20-4418. Thanks", "KT20-4418"),
        ("El número que figura en la placa es AS 4471/22.", "AS4471/22"),
        ("S/N: AS 4471/22", "AS4471/22"),
        ("Liebe Kollegen,\nSerien-Nr.: K50/2022/03317\nunsere Inventarnummer: 00418", "K50/2022/03317"),
        ("There it says KT-77120-9 underneath", "KT-77120-9"),
        ("Da steht KT-77120-9 hinten drauf.", "KT-77120-9"),
        ("The back of the kettle says KT-77120-9.", "KT-77120-9"),
        ("Auf der Rückseite des Geräts steht HL-4410-22-C.", "HL-4410-22-C"),
        ("The number engraved near the switch is TR/4471/20.", "TR/4471/20"),
        ("I found a number, SM-0087-4471, on a plate", "SM-0087-4471"),
        # a bare number of who knows what
        ("Your letter says WR-2204-118 on the back. My fan leaks.", None),
        ("The model is KX-22000 on the back.", None),
        ("The back of my KX20001 hums.", None),
        ("The base of my fan is 2204118 mm wide.", None),
        ("My fan leaks. I paid by cheque, number CH-2204418.", None),
        ("J'ai renvoyé la cafetière par Colissimo, n° 6A18472204.", None),
        ("Mój bilet nr BL-2204-118. Mikser nie działa", None),
        ("En la factura pone nº FA-2204-118. La batidora no gira", None),
        ("My ticket is open. The number is WR-2204118.", None),
        ("I have no KTX-20001, but the smaller fan.", None),
        ("The number of my fan KTX-20001 is gone.", None),
        ("The last van had the plate LB 4471 X.", None),
        ("My van is no. LK70ABC.", None),
        ("Please call me back under the number 4471 0116 02", None),
        ("my fan broke. S/N AS 4471/22", None),
        # on paper, of a service, of an article or a phone; what is none, and what nobody read
        ("The number on the back of my receipt is 5501932.", None),
        ("Die Nummer auf der Unterseite der Rechnung ist RE-20231-88.", None),
        ("The helpline number on the sticker is 0800 123 4567", None),
        ("The number on the sticker is 4006381333931", None),
        ("The number underneath is 07700 900461", None),
        ("The model number on the back is HX-22001", None),
        ("Auf dem Aufkleber steht Modell KX-2000.", None),
        ("The plate says CE EN60335-1.", None),
        ("On the label it says 230V 50Hz 850W.", None),
        ("The base has cracked and I paid 12995 for it", None),
        ("There is no sticker underneath. My flat is 20417-9", None),
        ("The number on the plate is KT-77?20-9", None),
        ("The number on the sticker starts with KT-77 and the rest is torn.", None),
        ("The number on the sticker is my neighbour's: NB-33301-7", None),
    ],
)
def test_where_a_number_stands_on_a_device_is_a_label(text: str, number: str | None, lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == ((number,) if number else ())


@pytest.mark.parametrize("text", NONE)
def test_takes_nothing_else_for_a_serial_number(text: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == ()


@pytest.mark.parametrize(("text", "numbers"), SEVERAL)
def test_finds_every_device(text: str, numbers: tuple[str, ...], lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == numbers


@pytest.mark.parametrize(("text", "numbers"), OF_COMBINED_LABELS)
def test_a_label_of_two_numbers_leaves_open_which_is_which(
    text: str, numbers: tuple[str, ...], lexicon: Lexicon
) -> None:
    assert read(text, lexicon).numbers == numbers


@pytest.mark.parametrize(("text", "number"), OF_GROUPS)
def test_groups_behind_a_label_are_one_number(text: str, number: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == (number,)


@pytest.mark.parametrize(("text", "number"), ONE_DEVICE_IN_TWO_SPELLINGS)
def test_two_spellings_are_one_device(text: str, number: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == (number,)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Serial number (e.g. SN12399): TS90015", ("TS90015",)),
        ("Serial number (for example SN12399) TS90015", ("TS90015",)),
        ("Serial number (e.g. SN12399):\nDevice: toaster", ()),
        ("Serial number (e.g. SN12399: TS90015", ()),
        ("Serial number: TS90 0101", ("TS900101",)),
        ("Serial number: TS9001 234 (see the plate)", ("TS9001234",)),
        ("Serial number: SN12345 06641234567", ("SN12345",)),
        ("Serial number: SN12345 350,- EUR", ("SN12345",)),
        ("Serial number: SN12345 20240118.", ("SN12345",)),
        ("Serial number: 48817734 48817735.", ()),
        ("Serial number: TS90 2024", ()),
        ("Serial number: SN12345 4000 hours", ("SN12345",)),
        ("Serial number? The fan KX200 hums.", ()),
        ("Serial number? KX200-77 hums.", ("KX200-77",)),
        ("Serial number? It is KX200-77.", ("KX200-77",)),
        ("Serial numbers 4C 7719 0033 X, 4C 7719 0034 K", ("4C77190033X", "4C77190034K")),
        ("Serial number | Order\n4711-A | 998877", ("4711-A",)),
        ("Model | Serial number | Order number\nKX200 | RT-44711 | RT-99887", ("RT-44711",)),
    ],
)
def test_examples_groups_and_columns_are_read_as_written(text: str, numbers: tuple[str, ...], lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == numbers


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
    "text", ["My device: TRK9920418, it leaks.", "Is KT-77120-9 still covered?", "DW88104427. Warranty?"]
)
def test_a_number_without_a_label_is_asked_about(text: str, lexicon: Lexicon) -> None:
    reading = read(text, lexicon)
    assert reading.numbers == ()
    assert len(reading.unconfirmed) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The drill CD18-330917 and the jigsaw JS65-008123, please.", 2),
        ("Der Toaster TO-220-9157 und der Kocher KT-60114-3 sind hin.", 2),
        ("Toaster KTX-2000, KT-60114-3 on it", 0),  # a model
        ("Scrap HT204911, it is HT204912.", 0),  # one device
    ],
)
def test_unlabelled_numbers_that_look_alike_are_of_several_devices(text: str, count: int, lexicon: Lexicon) -> None:
    reading = read(text, lexicon)
    assert len(reading.numbers) == count
    assert len(reading.unconfirmed) == 2


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("KT-77120-9", "KT-77120-9"),
        ("Hi, here it is: 48817734. Thanks!", "48817734"),
        ("Found it in the end, it was under the guard. HT 5502-19\n\nMick", "HT5502-19"),
        ("Guten Tag,\ndie Nummer steht innen an der Tür: KG 3391/0084\nGrüße", "KG3391/0084"),
        ("Le voici : DQ440-7781. C'était en arrière, pas en dessous.", "DQ440-7781"),
        ("Sticker says 7 4 4 1 9 2", "744192"),
        ("0045113978", "0045113978"),
        ("My grandson read it for me, it is 6610-882-41.", "6610-882-41"),  # as phone numbers are written, too
        ("Found it, under the left ear pad: 4711 0815 22", "4711081522"),  # no country groups its phones so
        ("It is KT-77120-9, bought on 12/03/2024 for 129.00, model Atramix 90", "KT-77120-9"),
        ("Please find the serial number of the charger below:\n\n7712-4403-09", "7712-4403-09"),
        ("Richtig ist HS-30951, nicht HS-30915.", "HS-30951"),
        ("Am Griff, LS330-2217. Rechnung hab ich auch noch (Nr. 2024-11873).", "LS330-2217"),
        ("No problem at all. I have 2 of them, it is the red one: KT-77120-9", "KT-77120-9"),
        ("My neighbour helped me: KT-77120-9", "KT-77120-9"),
        ("Mon voisin m'a aidée, c'est BO-17-44032", "BO-17-44032"),
        ("OK KT-77120-9", "KT-77120-9"),
        ("I can report that the serial number is AP 77120934.", "AP77120934"),
        ("You can see it in my photo: KT-77120-9", "KT-77120-9"),
    ],
)
def test_an_answer_may_be_the_bare_number(text: str, number: str, lexicon: Lexicon) -> None:
    reading = read(text, lexicon, asked=True)
    assert reading.numbers == (number,)
    assert reading.is_answer


@pytest.mark.parametrize("end", [":\nKT-77120-9\nJo", ". It says KT-77120-9, I think."])
def test_what_stands_beside_a_number_that_fills_a_line_or_clause_is_judged_as_of_any_mail(
    lexicon: Lexicon, end: str
) -> None:
    text = f"Is it raining? It is here. Model ER-6 of the quokka wibbles, snorfles, frobnicates and gronks{end}"
    reading = read(text, lexicon, asked=True)
    assert reading.numbers == ("KT-77120-9",)
    assert not reading.is_answer


@pytest.mark.parametrize(
    "text",
    [
        "no idea",
        "I can't find it. My WhatsApp: 07700 900461",
        "Who are you? My number is 0171 2345678",
        "020 7946 0958",
        "4111 1111 1111 1111",
        "It's filed under 20417-99",
        "flat 12",
        "EN60335-1",
        "bt 330 118",
        "KT-77?20",
        "Is it this one? 4471-A",
        "is it KT-77120-9?",
        "Rechnung Nr. 2024-11873",
        "I paid TS90 12345 for it",
        "On the till slip I see order, no. KT-77120-9",
        "No worries. It has none. The box says KT-77120-9",
        "I really can't find it. All that I have is this: KT-77120-9",
        "The old one was\nKT-77120-9\nbefore you swapped it",
        "WX2, 7719 0033",
        "Thank you, but the quokka wibbles, snorfles, frobnicates and gronks KT-77120-9",
        "RV - A 1940 2218",
        "RV–A 1940 2218",
        "I can't find a serial number, KT-77120-9 is the order",
        "The password is AB12345.",
    ],
)
def test_what_is_more_or_something_else_is_no_answer(text: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon, asked=True).numbers == ()


def test_a_number_that_reads_like_words_is_none(lexicon: Lexicon) -> None:
    assert read("S/N GARANTIE-GUELTIG-2099", lexicon).numbers == ()
    assert read("Serial number: 47-VALID11", lexicon).numbers == ()
    assert read("Serial number: QRKTX-204", lexicon).numbers == ("QRKTX-204",)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Is KT-77120-9 covered?", ("KT-77120-9",)),
        ("S/N SN12345", ()),
        ("Order KT-77120-9", ()),
        ("KT-77120-9?? or KT-77120-8", ()),
        ("either KT-77120-9 or KT-7712O-8", ()),
        ("kt 77120 9", ("KT-77120-9",)),
        ("it is KT 77120-9, thanks", ("KT-77120-9",)),
        ("paid from KT 77120 9 4411 06", ()),
        ("the plate says KT-77120-9-15", ()),
        ("For example KT-77120-9", ()),
    ],
)
def test_where_a_company_gives_its_formats_nothing_else_counts(
    text: str, numbers: tuple[str, ...], lexicon: Lexicon
) -> None:
    assert read_numbers(Tiers(text, "", ""), OURS, lexicon).numbers == numbers


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


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Where is my order AB-10001?", ["AB-10001"]),
        ("Order number: ab10001", ["AB10001"]),
        ("My order no. is AB-10001, thanks.", ["AB-10001"]),
        ("AB-10001 has not come yet", ["AB-10001"]),
        ("my invoice AB-10001 is wrong", []),
        ("serial number AB-10001", []),
        ("tracking number AB-10001, order AB-10002", ["AB-10002"]),
        ("order AB-100012", []),
        ("order AB-10?01", []),
        ("see https://shop.example.com/AB-10001", []),
    ],
)
def test_the_number_of_a_look_up(text: str, numbers: list[str], lexicon: Lexicon) -> None:
    assert list(read_numbers(Tiers(text, "", ""), MIXED, lexicon).numbers) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("order 123456", ["123456"]),
        ("order numbers 123456, 123457", ["123456", "123457"]),
        ("123456 is my order number", ["123456"]),
        ("call 123456", []),
        ("123456", []),
        ("order of 12,345,678 pieces", []),
        ("booking ref 123456", ["123456"]),
        ("I have no order number, only 123456", []),
    ],
)
def test_a_short_row_of_digits_needs_a_label(text: str, numbers: list[str], lexicon: Lexicon) -> None:
    assert list(read_numbers(Tiers(text, "", ""), DIGITS, lexicon).numbers) == numbers


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
    ("text", "number"),
    [
        ("S/N=KT-77120", "KT-77120"),
        ("S/N KT-77120—it broke", "KT-77120"),
        ("My dryer—serial number KT-77120—is broken", "KT-77120"),
        ("S/N: KT-77120, 2 years old", "KT-77120"),
    ],
)
def test_a_sign_that_joins_no_piece_takes_nothing_away(text: str, number: str, lexicon: Lexicon) -> None:
    assert read(text, lexicon).numbers == (number,)


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
    ],
)
def test_a_hostile_text_is_read_to_its_end(part: str, lexicon: Lexicon) -> None:
    text = part * (50_000 // len(part)) + "\n\nserial number: HT20491"
    assert isinstance(read(text, lexicon, asked=True).numbers, tuple)

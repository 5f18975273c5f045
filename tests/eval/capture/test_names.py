import pytest

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.capture.names import find_names, spellings

CLOSINGS = (
    "Best,|All the best|Take care,|Viele liebe Grüße|Mit freundlichem Gruß|Ihre|Z pozdrowieniami|Łączę pozdrowienia|"
    "Bien cordialement,|Veuillez agréer, Madame, mes salutations distinguées.|Reciba un cordial saludo|Muchas gracias"
)


def names(body: str, *headers: str) -> list[str]:
    email = parse_email({"from": "a@example.com", "subject": "", "body": body, "received": "", "message_id": "<1@x.y>"})
    return find_names(email, headers)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("Hello,\nit is broken.\n\nKind regards,\nAnna Smith", ["Anna", "Smith"]),
        ("Hello,\nit is broken.\nThanks, Anna", ["Anna"]),
        ("Es ist kaputt.\n\nMit freundlichen Grüßen\nJürgen Groß\n", ["Jürgen", "Groß"]),
        ("Nie działa.\n\nPozdrawiam,\nŁucja Żak", ["Łucja", "Żak"]),
        ("My name is Mary O'Neil and it broke.", ["Mary", "O'Neil"]),
        ("Ich heiße Karla Meyer.", ["Karla", "Meyer"]),
        ("Sehr geehrte Frau Schulz,\nes geht nicht.", ["Schulz"]),
        ("Dear Mr. Brown,\nit broke.", ["Brown"]),
        ("First name: Ida\nSurname: Lund\nSerial: SN12345", ["Ida", "Lund"]),
        ("On Monday Peter Parker <p@example.com> wrote:\n> Hello", ["Peter", "Parker"]),
        ("It broke.\n\nanna", ["anna"]),
        *((f"It broke.\n\n{closing}\nZofia Lis\nTel. 17", ["Zofia", "Lis"]) for closing in CLOSINGS.split("|")),
        ("Name: Zofia Lis, wohnhaft in Hamburg, zu erreichen abends nach 18 Uhr oder am Samstag", ["Zofia", "Lis"]),
        ("Hr. Lis war da, nicht ich.", ["Lis"]),
        ("Hola, Lucía:\ngracias.\nAtentamente,\nFdo.: Ramón Ruiz", ["Lucía", "Ramón", "Ruiz"]),
        ("Buenas tardes, Carmen:\nno va. Mi hermana Rocío lo compró.", ["Carmen", "Rocío"]),
        ("Sehr geehrte Frau Dr. med. Ulla Schmitz-Janssen,\nes geht nicht.", ["Ulla", "Schmitz-Janssen"]),
        ("i. A. Sabine Krüger\nUnser Mandant Otto Vogel klagt.", ["Otto", "Vogel", "Sabine", "Krüger"]),
        ("Il titolare, M. Étienne D'Alembert, e la Sig.ra Bianchi", ["Étienne", "D'Alembert", "Bianchi"]),
        ("Mon mari, Gérard Petit, l'a acheté au nom de Odile Petit.\nMerci d'avance", ["Odile", "Petit", "Gérard"]),
        ("My wife Angela bought it, our son Dmitri broke it.", ["Angela", "Dmitri"]),
        ("Am 05.01.2026 um 10:03 schrieb Klaus-Dieter Hahn:\n> Ja\n> danke", ["Klaus-Dieter", "Hahn"]),
        ("W dniu 5.01.2026 Bartosz Lis napisał(a):\n> Tak", ["Bartosz", "Lis"]),
        ("Le 5 janv., Hélène Garnier a écrit :\n> Oui", ["Hélène", "Garnier"]),
        (
            "Thanks\n\nFrom: Priya Raman\nSent: Monday, 10:03\nTo: Ferdinand Okafor; Lucy Chen <lc@x.example>\n\nHi",
            ["Lucy", "Chen", "Priya", "Raman", "Ferdinand", "Okafor"],
        ),
    ],
)
def test_names_are_found_where_people_write_them(body: str, found: list[str]) -> None:
    assert names(body) == found


@pytest.mark.parametrize(
    "body",
    [
        "Is the warranty of SN12345 still valid?",
        "Hello Support Team,\nthank you.\nKind regards",
        "I am so happy.\nIs it covered?",
        "Sent from my iPhone",
        "Guten Tag,\nes geht nicht.\nDanke",
        "Gracias.\nAtentamente,\nSaludos",
        "It goes from: Berlin, to: Paris.\nFrom: Berlin\nIt is late.",
    ],
)
def test_what_is_no_name_is_left(body: str) -> None:
    assert names(body) == []


def test_names_of_headers_count() -> None:
    assert names("Hello", "Jane Doe no. 17 <jane@example.com>", "uwe lis <u@x.de>") == ["Jane", "Doe", "uwe", "lis"]


def test_an_address_tells_a_name_that_the_text_has_too() -> None:
    assert names("Please call Robert, robert.x@example.com, about it.") == ["Robert"]


def test_umlauts_are_known_as_addresses_and_file_names_have_them() -> None:
    assert set(spellings("Müller")) == {"Müller", "Mueller", "Muller"}

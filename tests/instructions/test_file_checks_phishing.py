from __future__ import annotations

import pytest
from shipped_instructions import InstructionFolder

from guarantee_email_agent.instructions.reply_checks import phishing_problems
from guarantee_email_agent.instructions.reply_markup import parse_templates
from guarantee_email_agent.utils.errors import InstructionError


def problems(sentence: str, *link_hosts: str) -> list[tuple[int, str]]:
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
    found = problems(sentence)
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
    assert problems(sentence) == []


def test_never_in_another_sentence_excuses_nothing() -> None:
    assert problems("We never give up. Please send your password.")


@pytest.mark.parametrize(
    ("sentence", "host"),
    [
        ("Please log in at https://evil.example/login first.", "evil.example"),
        ("See www.evil.example for details.", "evil.example"),
        ("Visit evil-shop.com today.", "evil-shop.com"),
        ("Go to https://example.com@evil.example/ now.", "evil.example"),
        ("Go to https://example.com.evil.example/ now.", "example.com.evil.example"),
        ("Go to https://notexample.com/ now.", "notexample.com"),
    ],
)
def test_a_reply_that_leads_to_a_host_that_nobody_listed_is_found(sentence: str, host: str) -> None:
    assert f"'{host}'" in problems(sentence, "example.com")[0][1]


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
    assert problems(sentence, "example.com") == []


def test_such_a_file_does_not_load(folder: InstructionFolder) -> None:
    folder.edit(folder.scenario("missing-info"), "<reply>", "<reply>\nLog in at https://evil.example.\n")
    with pytest.raises(InstructionError, match=r"missing-info\.md:\d+: the reply leads to 'evil\.example'"):
        folder.load()
    folder.edit(folder.main, 'version: "1.0.0"', 'version: "1.0.0"\nlink_hosts: [evil.example]')
    folder.load()

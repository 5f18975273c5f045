from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading.topic import classify_topic, is_only_thanks

GROUPS: Any = load_documents(Path(__file__).with_name("texts_with_topics.yaml").read_text(encoding="utf-8"))[0]


@pytest.mark.parametrize(
    ("text", "topics"),
    [pytest.param(text, group["topics"], id=f"{group['rule']}: {text}") for group in GROUPS for text in group["texts"]],
)
def test_what_a_mail_is_about(text: str, topics: list[str], lexicon: Lexicon) -> None:
    assert classify_topic(tokenize(text), tokenize(""), False, lexicon) in topics


@pytest.mark.parametrize(
    ("text", "quoted", "has_serial_number", "topic"),
    [
        pytest.param("SN12345", "", True, "warranty", id="a serial number alone speaks for a device"),
        pytest.param(
            "Any news?", "My dryer is broken.", False, "warranty", id="quoted where the new text says nothing"
        ),
        pytest.param(
            "Where is my order?",
            "My dryer is broken. The warranty is void.",
            False,
            "other",
            id="quoted text not against what was newly written",
        ),
        pytest.param(
            "Please send me the invoice copy. " + "device " * 50,
            "",
            False,
            "other",
            id="a repeated word weighs no more",
        ),
    ],
)
def test_what_else_decides_the_topic(
    text: str, quoted: str, has_serial_number: bool, topic: str, lexicon: Lexicon
) -> None:
    assert classify_topic(tokenize(text), tokenize(quoted), has_serial_number, lexicon) == topic


ONLY_THANKS = [
    "Thank you!",
    "Hi Anna, many thanks for checking my warranty so quickly.",
    "Perfect, thanks a lot. All good now.",
    "Besten Dank für Ihre Auskunft!",
    "Dziękuję za pomoc, pralka działa.",
    "Merci pour votre aide !",
    "Grazie mille, tutto a posto.",
]
MORE_THAN_THANKS = [
    "Thank you, but it still leaks.",
    "Thanks. When will it be repaired?",
    "Thank you. Unfortunately there is no serial number on it.",
    "Thanks in advance",
    "Thank you. It is HT20491.",
    "My dryer needs a new belt. Thanks",
    "Danke, aber er heizt immer noch nicht.",
    "",
]


def test_a_fault_of_a_device_whose_serial_number_is_given_is_never_brushed_off(lexicon: Lexicon) -> None:
    """Whatever a free mail service, or somebody who means harm, writes below it."""
    text = tokenize("My dryer is broken.\n\nClick here to claim your lottery winnings in bitcoin, crypto and cash")
    assert classify_topic(text, tokenize(""), True, lexicon) == "unclear"
    assert classify_topic(text, tokenize(""), False, lexicon) == "other"


@pytest.mark.parametrize("text", ONLY_THANKS)
def test_thanks_alone_are_told_from_a_request(text: str, lexicon: Lexicon) -> None:
    assert is_only_thanks(tokenize(text), lexicon)


@pytest.mark.parametrize("text", MORE_THAN_THANKS)
def test_thanks_with_something_else_are_not_only_thanks(text: str, lexicon: Lexicon) -> None:
    assert not is_only_thanks(tokenize(text), lexicon)

import pytest

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.reading.doubt import NO_DOUBT, measure_doubt

PLAIN = "Hello, my dryer no longer gets warm. Is it still under warranty? The serial number is HT20491. Thank you!"


def test_a_plain_mail_raises_no_doubt(lexicon: Lexicon) -> None:
    assert measure_doubt(PLAIN, lexicon, "en") == NO_DOUBT


def test_a_sentence_about_something_else_does_and_is_named(lexicon: Lexicon) -> None:
    falconry = "Hello there. The falconer's osprey moulted beneath our gazebo and pecked the marquetry."
    doubt = measure_doubt(f"{falconry} {PLAIN}", lexicon, "en")
    assert doubt.sentence == 2
    assert {"falconer's", "moulted", "gazebo"} & set(doubt.words)
    assert doubt.percent >= 30


def test_doubt_is_highest_where_nothing_tells_what_a_mail_is_about(lexicon: Lexicon) -> None:
    assert measure_doubt("The osprey moulted beneath the gazebo yesterday evening.", lexicon, "en").percent == 100


@pytest.mark.parametrize("text", ["", "Thank you!", "Yes.", "!!!", "4711"])
def test_a_mail_that_says_next_to_nothing_raises_none(text: str, lexicon: Lexicon) -> None:
    assert measure_doubt(text, lexicon, "en") == NO_DOUBT


def test_a_fault_without_a_question_raises_more(lexicon: Lexicon) -> None:
    odd = "The moulted osprey pecked."
    asks = measure_doubt(f"Is my dryer under warranty? It is broken. {odd}", lexicon, "en")
    assert measure_doubt(f"It is broken. {odd}", lexicon, "en").percent == asks.percent + 20


def test_names_are_no_words(lexicon: Lexicon) -> None:
    text = (
        "Is my dryer under warranty? I bought it from Brzeczyszczykiewicz in Llanfair.\n\nKind regards\nOsric Threlkeld"
    )
    assert measure_doubt(text, lexicon, "en").words == ()


def test_plain_sentences_around_an_odd_one_explain_nothing(lexicon: Lexicon) -> None:
    odd = "My dryer is broken. Is it under warranty? The falconer's osprey moulted."
    assert measure_doubt(f"{odd} {PLAIN * 40}", lexicon, "en") == measure_doubt(odd, lexicon, "en")

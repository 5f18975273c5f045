"""Mails for a person are known by what they resemble; no text below is one that the classifier was trained on."""

import json
from pathlib import Path

import pytest

from guarantee_email_agent.config.settings import AgentSettings
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading import hand_over_classifier
from guarantee_email_agent.reading.doubt import MAX_DOUBT, measure_doubt, measure_doubt_of_answer
from guarantee_email_agent.reading.hand_over_classifier import BUCKETS, HEADER, MIN_WORDS, measure_resemblance

ROOT = Path(__file__).parents[2]
MOST = MAX_DOUBT - AgentSettings().caution
ASIDE = "My kettle has the serial number KT-31177. Is it still under warranty? "
GRAVE = [
    "It threw its lid across the kitchen and missed my wife by a whisker.",
    "Our little boy got his fingers caught in it and screamed the house down.",
    "Die ganze Wand ist feucht und unten bei den Nachbarn tropft es schon aus der Lampe.",
    "Mon mari a reçu une secousse dans le bras en le touchant, il en tremble encore.",
    "Mi abogada dice que ya no les llame más y que esperemos la carta del juzgado.",
    "Proszę natychmiast usunąć wszystkie moje dane, nie chcę, żebyście je mieli.",
]
PLAIN = [
    "The lid no longer stays open while I pour, which is a nuisance at breakfast.",
    "Er braucht neuerdings doppelt so lange wie früher, bis das Wasser heiß ist.",
    "Le bouton du couvercle ne revient plus tout seul depuis quelques semaines.",
    "La luz del interruptor ya no se enciende, aunque por lo demás funciona bien.",
    "Pokrywka nie domyka się już tak dobrze jak na początku, poza tym działa.",
]


def percent(text: str) -> int:
    return measure_resemblance(tokenize(text)).percent


@pytest.mark.parametrize("sentence", GRAVE)
def test_a_grave_sentence_is_for_a_person(sentence: str) -> None:
    assert percent(sentence) > MOST


@pytest.mark.parametrize("sentence", GRAVE[:2] + GRAVE[4:])
def test_so_it_is_beside_a_plain_question(sentence: str, lexicon: Lexicon) -> None:
    assert measure_doubt(ASIDE + sentence, lexicon, None).percent > MOST


@pytest.mark.parametrize("sentence", PLAIN)
def test_an_ordinary_fault_is_not(sentence: str) -> None:
    assert percent(ASIDE + sentence) <= MOST


def test_an_answer_with_a_grave_sentence_is_for_a_person_and_a_friendly_one_is_not() -> None:
    assert measure_doubt_of_answer(f"KT-31177-4. {GRAVE[1]}").percent > MOST
    friendly = "Here you are: KT-31177-4. It was under the base, I needed my glasses. Many thanks for your help"
    assert measure_doubt_of_answer(friendly).percent <= MOST


def test_the_sentence_that_says_so_is_named() -> None:
    found = measure_resemblance(tokenize(f"{PLAIN[0]} {GRAVE[1]} {PLAIN[0]}"))
    assert found.sentence == 2


def test_a_doubt_without_unknown_words_tells_of_the_likeness(lexicon: Lexicon) -> None:
    doubt = measure_doubt(
        "Is my kettle under warranty? It nearly hit my little boy on the head and he cried.", lexicon, "en"
    )
    assert doubt.words == ()
    assert doubt.describe() == f"the mail resembles those for a person, most of all sentence 2 ({doubt.percent} %)"


def test_a_few_words_prove_nothing() -> None:
    few = " ".join(GRAVE[0].split()[: MIN_WORDS - 1])
    assert measure_resemblance(tokenize(few)) == (0, 1)


def test_what_is_no_word_counts_nothing() -> None:
    assert percent(f"{GRAVE[0]} {'x' * 5000} 4711 2041-77") == percent(GRAVE[0])


def test_the_weights_are_whole() -> None:
    for name in hand_over_classifier.WEIGHTS_FILES.values():
        content = Path(hand_over_classifier.__file__).with_name(name).read_bytes()
        assert len(content) == HEADER.size + 2 * BUCKETS


@pytest.mark.parametrize(
    ("told", "is_grave"),
    [
        ("The plug has gone a funny brown and so has the wall behind it, but the cake came out lovely.", True),
        ("Nebenbei, seit dem Wochenende bitzelt es bis in die Schulter, wenn ich den Griff anfasse.", True),
        ("My grandson held the torch while I lay under the sink, and the dog thought it was a grand game.", False),
        ("Wir waren zwei Wochen an der See, daher erst heute die Antwort, und geregnet hat es auch nur.", False),
    ],
)
def test_answers_have_weights_of_their_own(told: str, is_grave: bool) -> None:
    found = measure_resemblance(tokenize(f"You wanted the number, it is KT-77120-9. {told}"), is_answer=True)
    assert (found.percent > MOST) == is_grave


def test_no_text_of_this_test_stands_in_the_mails_it_was_trained_on() -> None:
    mails = [
        json.loads(line)
        for path in (ROOT / "evals" / "training").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert {type(mail["person"]) for mail in mails} == {bool}
    texts = {" ".join(mail["text"].lower().split()) for mail in mails}
    assert len(texts) > 5000
    assert not any(sentence.lower() in text for sentence in (*GRAVE, *PLAIN) for text in texts)

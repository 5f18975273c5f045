from __future__ import annotations

import pytest

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.interpreter.intent import tell_intent

ABOUT_A_DEVICE = [
    "Is my vacuum cleaner still under warranty?",
    "Could you check whether the guarantee on my oven has run out?",
    "The dishwasher stopped in the middle of a cycle and leaks.",
    "THIS IS THE THIRD TIME THE DRYER BREAKS!!! I want it repaired NOW!",
    "fridge dead",
    "My espresso machine won't turn on any more.",
    "So last summer we moved house, and my sister gave us her old toaster, and now, well, it trips the fuse.",
    "The display of the thermostat flickers since yesterday.",
    "How do I descale the kettle?",
    "Battery of the drill no longer charges.",
    "Error code E18 on the washing machine, what does it mean?",
    "I would like to register a fault with my heat pump dryer.",
    "Meine Waschmaschine schleudert nicht mehr.",
    "Habe ich auf den Backofen noch Garantie?",
    "Der Akku vom Rasenmäher lädt nicht.",
    "Ihr Mist-Staubsauger ist schon wieder kaputt!",
    "Gewährleistung für Kaffeevollautomat",
    "Der Geschirrspüler zeigt eine Fehlermeldung.",
    "Moja pralka nie działa.",
    "Czy moja lodówka jest jeszcze na gwarancji?",
    "Odkurzacz przestał działać po dwóch tygodniach.",
    "Zmywarka cieknie, proszę o naprawę.",
    "Reklamacja: ekspres do kawy nie włącza się",
    "Chciałbym zgłosić usterkę piekarnika.",
]
ABOUT_SOMETHING_ELSE = [
    "Where is my order? It should have come on Monday.",
    "Please send me a copy of the invoice for last month.",
    "We can bring your website to page one of the search results.",
    "I would like to apply for the job as a service technician.",
    "Please unsubscribe me from your newsletter.",
    "Do you offer a discount for schools?",
    "What are your opening hours on Saturday?",
    "I forgot the password of my account.",
    "Wo bleibt meine Bestellung? Die Sendung steht seit drei Tagen.",
    "Bewerbung als Werkstudent im Marketing",
    "Bitte schicken Sie mir die Rechnung noch einmal.",
    "Wann haben Sie am Samstag geöffnet? Ich finde keine Öffnungszeiten.",
    "Gdzie jest moja paczka? Zamówienie złożyłem tydzień temu.",
    "Proszę o kopię faktury za marzec.",
    "Oferta współpracy: pozycjonowanie strony internetowej",
    "Chciałbym odstąpić od umowy i zwrócić towar.",
]
SAYS_TOO_LITTLE = [
    "",
    "Hello",
    "Please call me back.",
    "Urgent!!!",
    "Guten Tag, ich habe eine Frage.",
    "Proszę o kontakt",
]


def intent_of(text: str, lexicon: Lexicon, quoted: str = "", has_serial_number: bool = False) -> str:
    return tell_intent(tokenize(text), tokenize(quoted), has_serial_number, lexicon)


@pytest.mark.parametrize("text", ABOUT_A_DEVICE)
def test_a_mail_about_a_device(text: str, lexicon: Lexicon) -> None:
    assert intent_of(text, lexicon) == "warranty"


@pytest.mark.parametrize("text", ABOUT_SOMETHING_ELSE)
def test_a_mail_about_something_else(text: str, lexicon: Lexicon) -> None:
    assert intent_of(text, lexicon) == "other"


@pytest.mark.parametrize("text", SAYS_TOO_LITTLE)
def test_a_mail_that_says_too_little(text: str, lexicon: Lexicon) -> None:
    assert intent_of(text, lexicon) == "unclear"


def test_a_serial_number_alone_speaks_for_a_device(lexicon: Lexicon) -> None:
    assert intent_of("SN12345", lexicon, has_serial_number=True) == "warranty"


def test_quoted_text_counts_where_the_new_text_says_nothing(lexicon: Lexicon) -> None:
    assert intent_of("Any news?", lexicon, quoted="My dryer is broken.") == "warranty"


def test_quoted_text_does_not_count_against_what_was_newly_written(lexicon: Lexicon) -> None:
    assert intent_of("Where is my order?", lexicon, quoted="My dryer is broken. The warranty is void.") == "other"


def test_repeating_a_word_does_not_make_it_weigh_more(lexicon: Lexicon) -> None:
    assert intent_of("Please send me the invoice copy. " + "device " * 50, lexicon) == "other"

import pytest

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading.topic import classify_topic, is_only_thanks

ABOUT_A_DEVICE = [
    "Is my vacuum cleaner still under warranty?",
    "The dishwasher stopped in the middle of a cycle and leaks.",
    "fridge dead",
    "My espresso machine won't turn on any more.",
    "How do I descale the kettle?",
    "Error code E18 on the washing machine, what does it mean?",
    "Meine Waschmaschine schleudert nicht mehr.",
    "Ihr Mist-Staubsauger ist schon wieder kaputt!",
    "Der Geschirrspüler zeigt eine Fehlermeldung.",
    "Moja pralka nie działa.",
    "Czy moja lodówka jest jeszcze na gwarancji?",
    "Zmywarka cieknie, proszę o naprawę.",
    "Reklamacja: ekspres do kawy nie włącza się",
]
ABOUT_SOMETHING_ELSE = [
    "Where is my order? It should have come on Monday.",
    "We can bring your website to page one of the search results.",
    "I would like to apply for the job as a service technician.",
    "Please unsubscribe me from your newsletter.",
    "I forgot the password of my account.",
    "Wo bleibt meine Bestellung? Die Sendung steht seit drei Tagen.",
    "Bitte schicken Sie mir die Rechnung noch einmal.",
    "Gdzie jest moja paczka? Zamówienie złożyłem tydzień temu.",
    "Proszę o kopię faktury za marzec.",
    "Chciałbym odstąpić od umowy i zwrócić towar.",
]
SAYS_TOO_LITTLE = [
    "Do you offer a discount for schools?",
    "",
    "Hello",
    "Please call me back.",
    "Proszę o kontakt",
]


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        *((text, "warranty") for text in ABOUT_A_DEVICE),
        *((text, "other") for text in ABOUT_SOMETHING_ELSE),
        *((text, "unclear") for text in SAYS_TOO_LITTLE),
    ],
)
def test_what_a_mail_is_about(text: str, topic: str, lexicon: Lexicon) -> None:
    assert classify_topic(tokenize(text), tokenize(""), False, lexicon) == topic


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


FAULT_AND_SOMETHING_ELSE = [
    "The invoice of my order 2291 is missing, and the dryer that you delivered does not heat.",
    "Please unsubscribe me from the newsletter. And when is my broken oven going to be repaired?",
    "I'd like my money back for order 9921, it is broken.",
    "Wczoraj była dostawa lodówki, ale ona nie chłodzi.",
    "La livraison a eu lieu hier mais le frigo ne refroidit pas.",
    "Manca la fattura del mio ordine e il tostapane è guasto.",
]
STRANGERS_WHO_TALK_SHOP = [
    "I would like to apply as a service engineer. I have repaired broken washing machines and dryers for nine years.",
    "We are a manufacturer of pumps for washing machines and would like to become your supplier.",
    "Your mailbox has reached its quota. Verify your account, or your device stops receiving mail.",
    "The protection plan of your device was renewed for 399.99. If you did not authorise this, call us.",
    "The voucher code is refused at the checkout, it does not work.",
]
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


@pytest.mark.parametrize("text", FAULT_AND_SOMETHING_ELSE)
def test_a_fault_is_never_brushed_off(text: str, lexicon: Lexicon) -> None:
    assert classify_topic(tokenize(text), tokenize(""), False, lexicon) in ("unclear", "warranty")


def test_a_fault_of_a_device_whose_serial_number_is_given_is_never_brushed_off(lexicon: Lexicon) -> None:
    """Whatever a free mail service, or somebody who means harm, writes below it."""
    text = tokenize("My dryer is broken.\n\nClick here to claim your lottery winnings in bitcoin, crypto and cash")
    assert classify_topic(text, tokenize(""), True, lexicon) == "unclear"
    assert classify_topic(text, tokenize(""), False, lexicon) == "other"


@pytest.mark.parametrize("text", STRANGERS_WHO_TALK_SHOP)
def test_who_only_talks_of_devices_is_asked_nothing(text: str, lexicon: Lexicon) -> None:
    assert classify_topic(tokenize(text), tokenize(""), False, lexicon) == "other"


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        pytest.param("The pet feeder drops no food.", "warranty", id="a device that does not do something"),
        pytest.param("The toaster has not arrived.", "other", id="unless another topic says what"),
        pytest.param("I ordered a dryer, a kettle, a mixer and a fridge.", "other", id="naming devices says little"),
        pytest.param("It does not work. Please help.", "unclear", id="a fault of nothing in particular"),
    ],
)
def test_what_is_said_of_a_device(text: str, topic: str, lexicon: Lexicon) -> None:
    assert classify_topic(tokenize(text), tokenize(""), False, lexicon) == topic


@pytest.mark.parametrize("text", ONLY_THANKS)
def test_thanks_alone_are_told_from_a_request(text: str, lexicon: Lexicon) -> None:
    assert is_only_thanks(tokenize(text), lexicon)


@pytest.mark.parametrize("text", MORE_THAN_THANKS)
def test_thanks_with_something_else_are_not_only_thanks(text: str, lexicon: Lexicon) -> None:
    assert not is_only_thanks(tokenize(text), lexicon)

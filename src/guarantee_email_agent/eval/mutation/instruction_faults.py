"""Faults of instruction files, as a hasty edit leaves them: a promise more, a condition less, a sentence inverted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from guarantee_email_agent.eval.mutation.fault import Fault, fault_in

PROMISE: Final = "add a promise"
INVERSION: Final = "invert a sentence"
PHRASE: Final = "drop a phrase"
REWORDING: Final = "say it in other words"
"""No fault: the same thing in other words."""
DANGEROUS: Final = (PROMISE, INVERSION, "remove a condition", "drop a trigger", "change a trigger")

_REPLY = re.compile(r"<reply\b[^>]*>.*?</reply>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[\n>.!?])\s*(?P<text>[^<>{}\n][^<>]*?[.!?])(?=\s|<)", re.DOTALL)
_TRIGGER_VALUE = re.compile(
    r"(?<=intent: )\w+|(?<=topic: )[\w-]+|(?<=serial_numbers: )\w+|(?<=warranty_status: \[)\w+"
    r"|(?<=automatic: )\w+|(?<=hand_over: )\w+"
)
_OTHER_VALUE = {
    "warranty": "unclear",
    "other": "warranty",
    "unclear": "other",
    "none": "several",
    "one": "none",
    "several": "none",
    "valid": "expired",
    "expired": "other",
    "withheld": "other",
    "true": "false",
}
_SOFTER = (
    (r"\bis valid\b", "should be valid"),
    (r"\bis not\b", "may not be"),
    (r"\bcannot\b", "can hardly"),
    (r"\bneed just one thing\b", "would like something"),
    (r"\bserial number\b", "number"),
    (r"\bfully covered\b", "covered"),
    (r"\bhas expired\b", "may have expired"),
    (r"\bconfirms neither\b", "may not confirm"),
    (r"\bgeneral support\b", "support"),
    (r"\bclarify\b", "repeat"),
    (r"\bist gültig\b", "sollte gültig sein"),
    (r"\bvollständig abgedeckt\b", "abgedeckt"),
    (r"\babgelaufen ist\b", "abgelaufen sein dürfte"),
    (r"\bsteht nicht in\b", "fehlt wohl in"),
    (r"\bSeriennummer\b", "Nummer"),
    (r"\bes\s+válida\b", "debería ser válida"),
    (r"\btotalmente cubierto\b", "cubierto"),
    (r"\bha vencido\b", "puede haber vencido"),
    (r"\bno figura\b", "quizá no figure"),
    (r"\bnúmero de\s+serie\b", "número"),
    (r"\best valable\b", "devrait être valable"),
    (r"\bentièrement couvert\b", "couvert"),
    (r"\ba\s+expiré\b", "a peut-être expiré"),
    (r"\bne figure pas\b", "ne figure peut-être pas"),
    (r"\bnuméro de\s+série\b", "numéro"),
    (r"\bjest\s+ważna\b", "powinna być ważna"),
    (r"\bw pełni objęte\b", "objęte"),
    (r"\bwygasła\b", "mogła wygasnąć"),
    (r"\bnie figuruje\b", "może nie figurować"),
    (r"\b([Nn])umer(u?) seryjn(y|ego)\b", r"\1umer\2"),
)


_PROMISES = {
    "en": ("The repair is free of charge.", "You will get a new device.", "We will pay you back the price."),
    "de": ("Die Reparatur ist kostenlos.", "Sie bekommen ein neues Gerät.", "Wir erstatten Ihnen den Kaufpreis."),
    "es": ("La reparación es gratuita.", "Recibirá un aparato nuevo.", "Le devolveremos el precio."),
    "fr": ("La réparation est gratuite.", "Vous recevrez un appareil neuf.", "Nous vous rembourserons le prix."),
    "pl": ("Naprawa jest bezpłatna.", "Otrzymają Państwo nowe urządzenie.", "Zwrócimy Państwu cenę zakupu."),
}
_INVERTED = {
    "en": (
        (r"\b(can)not\b", r"\1"),
        (r"\b(not|never) ", ""),
        (r"\b(is|are|has|have|can|will|would|should)\b", r"\1 not"),
    ),
    "de": ((r"\bnicht ", ""), (r"\bkein", "ein"), (r"\b(ist|sind|hat|haben|können|wird|werden)\b", r"\1 nicht")),
    "es": ((r"\b[Nn]o (?=\w)", ""), (r"\b(es|está|ha|han|puede|podemos|tiene)\b", r"no \1")),
    "fr": (
        (r"\bn(?:e |['’])(\w+) (?:pas|plus)\b", r"\1"),
        (r"(?<!['’])\b(est|a|avons)\b", r"n'\1 pas"),
        (r"\b(sont|peut|pouvons|sera)\b", r"ne \1 pas"),
    ),
    "pl": ((r"\b[Nn]ie ", ""), (r"\b(jest|są|może|możemy|można|wygasła)\b", r"nie \1")),
}
_REWORDED = {
    "en": (("Thank you for", "Many thanks for"), ("Kind regards", "Best regards"), ("gladly", "happily")),
    "de": (("vielen Dank", "herzlichen Dank"), ("Mit freundlichen", "Mit besten"), ("gern", "mit Freude")),
    "es": (("Gracias por", "Muchas gracias por"), ("Un cordial saludo", "Saludos cordiales")),
    "fr": (("Nous vous remercions de", "Merci de"), ("Cordialement", "Bien cordialement")),
    "pl": (("dziękujemy za", "bardzo dziękujemy za"), ("Z poważaniem", "Z wyrazami szacunku")),
}
_HINTS = re.compile(r'(?<=\bhints=")[^"]+')
_LIST = r"<({})\b[^>]*>\n(?P<phrases>[^<]+)\n</\1>"
_HAND_OVER = "hand-over|exception"
_ANY = r"[\w-]+"


def instruction_faults(name: str, text: str, language: str = "en", *, is_lexicon: bool = False) -> Iterator[Fault]:
    """Only what code reads: the prose for a language model is for its own checks.

    name: of the file. language: of the replies, where the name has none. is_lexicon: nothing but lists of phrases.
    """
    for found in re.finditer(_LIST.format(_ANY if is_lexicon else _HAND_OVER), text):
        yield from _dropped_phrases(name, text, *found.span("phrases"))
    if is_lexicon:
        return
    for found in _HINTS.finditer(text):
        yield from _dropped_phrases(name, text, *found.span())
    named = PurePath(name).stem.rpartition(".")
    language = named[2] if named[0] else language
    front = text.index("\n---", 3) if text.startswith("---") else 0
    for found in re.finditer(r"^ +- .*\n(?: {4,}.*\n)*", text[:front], re.MULTILINE):
        yield fault_in(name, text, "drop a trigger", found.start(), found.end(), "")
    for found in re.finditer(_TRIGGER_VALUE, text[:front]):
        other = _OTHER_VALUE.get(found[0], "other")
        yield fault_in(name, text, "change a trigger", found.start(), found.end(), other)
    for found in re.finditer(r"^  (?P<field>\w+): (?P<value>\w+)$", text[:front], re.MULTILINE):
        yield fault_in(name, text, "change a ticket field", found.start("value"), found.end("value"), "other_value")
        yield fault_in(name, text, "drop a ticket field", found.start(), found.end() + 1, "")
    for found in re.finditer(r"^asks_for: .*\n", text[:front], re.MULTILINE):
        yield fault_in(name, text, "drop a key", found.start(), found.end(), "")
    for reply in _REPLY.finditer(text):
        yield from _reply_faults(name, text, reply.start(), reply.end())
        yield from _other_words(name, text, reply, language)
    for found in re.finditer(r'(?<=<reply) \w+="\w+"', text):
        yield fault_in(name, text, "remove a condition", found.start(), found.end(), "")


def _reply_faults(name: str, text: str, begin: int, end: int) -> Iterator[Fault]:
    for found in _SENTENCE.finditer(text, begin, end):
        if '="' not in found["text"] and len(found["text"]) > 8:
            yield fault_in(name, text, "drop a sentence", found.start("text"), found.end("text"), "")
    for found in re.finditer(r"<if [^>]*>(.*?)</if>", text[begin:end], re.DOTALL):
        yield fault_in(name, text, "remove a condition", begin + found.start(), begin + found.end(), found[1])
        yield fault_in(name, text, "drop a sentence", begin + found.start(), begin + found.end(), "")
    for found in re.finditer(r"<optional [^>]*>.*?</optional>\n?", text[begin:end], re.DOTALL):
        yield fault_in(name, text, "drop a sentence", begin + found.start(), begin + found.end(), "")
    for found in re.finditer(r'<sentence id="(?!thanks")[^>]*>.*?</sentence>\n?', text[begin:end], re.DOTALL):
        yield fault_in(name, text, "drop a sentence", begin + found.start(), begin + found.end(), "")
    placeholders = list(re.finditer(r"\{\w+\}", text[begin:end]))
    for one, other in itertools.pairwise(placeholders):
        swapped = other[0] + text[begin + one.end() : begin + other.start()] + one[0]
        yield fault_in(name, text, "swap placeholders", begin + one.start(), begin + other.end(), swapped)
    for firm, soft in _SOFTER:
        if (match := re.search(firm, text[begin:end])) and not _inside_tag(text, begin + match.start()):
            yield fault_in(
                name, text, "soften a phrase", begin + match.start(), begin + match.end(), match.expand(soft)
            )


def _dropped_phrases(name: str, text: str, begin: int, end: int) -> Iterator[Fault]:
    """Each of a list but its last one: a list may not be empty."""
    for found in re.finditer(r"(?P<phrase>[^,\n]+)(?:,\s*|\n\s*)", text[begin:end]):
        yield fault_in(name, text, PHRASE, begin + found.start(), begin + found.end(), "")


def _other_words(name: str, text: str, reply: re.Match[str], language: str) -> Iterator[Fault]:
    """What a reply may not say, and what it may say as well."""
    closing = text.rfind("\n\n", reply.start(), reply.end())
    at = closing if closing >= 0 else reply.end() - len("\n</reply>")
    for promise in _PROMISES.get(language, _PROMISES["en"]):
        yield fault_in(name, text, PROMISE, at, at, f"\n\n{promise}")
    for sentence in _SENTENCE.finditer(text, reply.start(), reply.end()):
        for pattern, other in _INVERTED.get(language, ()):
            if '="' not in sentence["text"] and (found := re.search(pattern, sentence["text"])):
                start = sentence.start("text") + found.start()
                yield fault_in(name, text, INVERSION, start, start + len(found[0]), found.expand(other))
                break
    for old, new in _REWORDED.get(language, ()):
        if (start := text.find(old, reply.start(), reply.end())) >= 0:
            yield fault_in(name, text, REWORDING, start, start + len(old), new)


def _inside_tag(text: str, position: int) -> bool:
    return text.rfind("<", 0, position) > text.rfind(">", 0, position)

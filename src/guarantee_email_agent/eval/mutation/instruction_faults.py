"""Faults of instruction files, as a hasty edit leaves them: a promise more, a condition less, a sentence inverted."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

PROMISE: Final = "add a promise"
INVERSION: Final = "invert a sentence"
PHRASE: Final = "drop a phrase"
REWORDING: Final = "say it in other words"
"""No fault: the same thing in other words."""
DANGEROUS: Final = (PROMISE, INVERSION, "remove a condition", "drop a trigger", "change a trigger")

REPLY: Final = re.compile(r"<reply\b[^>]*>.*?</reply>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[\n>.!?])\s*(?P<text>[^<>{}\n][^<>]*?[.!?])(?=\s|<)", re.DOTALL)
_IN_HEADER = (
    ("drop a trigger", r"(?m)^ +- .*\n(?: {4,}.*\n)*", ""),
    ("change a ticket field", r"(?m)^(  \w+: )\w+$", r"\1other_value"),
    ("drop a ticket field", r"(?m)^  \w+: \w+\n", ""),
    ("drop a key", r"(?m)^asks_for: .*\n", ""),
)
_IN_TEXT = (
    ("remove a condition", r"(?s)<if [^>]*>(.*?)</if>", r"\1"),
    ("remove a condition", r'(?<=<reply) \w+="\w+"', ""),
    ("drop a sentence", r"(?s)<if [^>]*>.*?</if>|<optional [^>]*>.*?</optional>\n?", ""),
    ("drop a sentence", r'(?s)<sentence id="(?!thanks")[^>]*>.*?</sentence>\n?', ""),
)
_TRIGGER_VALUE = re.compile(r"(?:(?:intent|topic|serial_numbers|automatic|hand_over): |warranty_status: \[)([\w-]+)")
_OTHER_VALUES = "warranty unclear, other warranty, none several, one none, several none, valid expired, true false"
_OTHER_VALUE = dict(pair.split() for pair in _OTHER_VALUES.split(", "))
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
_HINTS = r'(?<=\bhints=")(?P<phrases>[^"]+)'
_LIST = r"<({})\b[^>]*>\n(?P<phrases>[^<]+)\n</\1>"


@dataclass(frozen=True, slots=True)
class Fault:
    """One place of a file with other text in it. `start` and `end` are offsets in characters."""

    file: str
    operator: str
    start: int
    end: int
    replacement: str
    line: int
    before: str
    after: str
    occurrence: int = 0

    @property
    def key(self) -> str:
        """The same as long as the line is, wherever it moves."""
        parts = (self.file, self.operator, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def planted_in(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


def fault_in(name: str, text: str, operator: str, start: int, end: int, replacement: str) -> Fault:
    """The fault that puts `replacement` in place of `text[start:end]`; name: the file's."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    last = len(text) if last < 0 else last
    before, after = text[first:last], text[first:start] + replacement + text[end:last]
    line = text.count("\n", 0, start) + 1
    return Fault(name, operator, start, end, replacement, line, before.strip(), after.strip())


def distinct(faults: Iterable[Fault]) -> list[Fault]:
    """Each once, equal lines of a file told apart by their `occurrence`."""
    seen: Counter[str] = Counter()
    numbered = []
    for fault in dict.fromkeys(faults):
        numbered.append(replace(fault, occurrence=seen[fault.key]))
        seen[fault.key] += 1
    return numbered


def instruction_faults(name: str, text: str, language: str = "en", *, is_lexicon: bool = False) -> Iterator[Fault]:
    """Only what code reads: the prose for a language model is for its own checks.

    name: of the file. language: of the replies, where the name has none. is_lexicon: nothing but lists of phrases.
    """
    for pattern in [_LIST.format(r"[\w-]+")] if is_lexicon else [_LIST.format("hand-over|exception"), _HINTS]:
        for listed in re.finditer(pattern, text):
            begin, end = listed.span("phrases")
            for found in re.compile(r"[^,\n]+(?:,\s*|\n\s*)").finditer(text, begin, end):  # no list may be empty
                yield fault_in(name, text, PHRASE, found.start(), found.end(), "")
    if is_lexicon:
        return
    named = PurePath(name).stem.rpartition(".")
    header = text.index("\n---", 3) + 1 if text.startswith("---") else 0
    for table, end in ((_IN_HEADER, header), (_IN_TEXT, len(text))):
        for operator, pattern, replacement in table:
            for found in re.finditer(pattern, text[:end]):
                yield fault_in(name, text, operator, found.start(), found.end(), found.expand(replacement))
    for found in _TRIGGER_VALUE.finditer(text, 0, header):
        other = _OTHER_VALUE.get(found[1], "other")
        yield fault_in(name, text, "change a trigger", found.start(1), found.end(1), other)
    for reply in REPLY.finditer(text):
        yield from _reply_faults(name, text, reply, named[2] if named[0] else language)


def _reply_faults(name: str, text: str, reply: re.Match[str], language: str) -> Iterator[Fault]:
    begin, end = reply.span()
    for sentence in _SENTENCE.finditer(text, begin, end):
        words, start = sentence["text"], sentence.start("text")
        if '="' in words:
            continue
        if len(words) > 8:
            yield fault_in(name, text, "drop a sentence", start, sentence.end("text"), "")
        for pattern, other in _INVERTED.get(language, ()):
            if found := re.search(pattern, words):
                yield fault_in(name, text, INVERSION, start + found.start(), start + found.end(), found.expand(other))
                break
    for one, two in itertools.pairwise(re.compile(r"\{\w+\}").finditer(text, begin, end)):
        swapped = two[0] + text[one.end() : two.start()] + one[0]
        yield fault_in(name, text, "swap placeholders", one.start(), two.end(), swapped)
    closing = text.rfind("\n\n", begin, end)
    at = closing if closing >= 0 else end - len("\n</reply>")
    for promise in _PROMISES.get(language, _PROMISES["en"]):
        yield fault_in(name, text, PROMISE, at, at, f"\n\n{promise}")
    for old, new in _REWORDED.get(language, ()):
        if (start := text.find(old, begin, end)) >= 0:
            yield fault_in(name, text, REWORDING, start, start + len(old), new)

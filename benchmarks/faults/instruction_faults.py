"""Faults of instruction files: those of a hasty edit. A sentence, condition or trigger gone, a phrase softened."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from faults.fault import Fault, fault_in

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


def instruction_faults(name: str, text: str) -> Iterator[Fault]:
    """Only what code reads: the prose for a language model, and the word lists, have checks of their own."""
    front = text.index("\n---", 3) if text.startswith("---") else 0
    for found in re.finditer(r"^ +- \{.*\}\n", text[:front], re.MULTILINE):
        yield fault_in(name, text, "drop a trigger", found.start(), found.end(), "")
    for found in re.finditer(_TRIGGER_VALUE, text[:front]):
        if found[0] in _OTHER_VALUE:
            yield fault_in(name, text, "change a trigger", found.start(), found.end(), _OTHER_VALUE[found[0]])
    for found in re.finditer(r"^  (?P<field>\w+): (?P<value>\w+)$", text[:front], re.MULTILINE):
        yield fault_in(name, text, "change a ticket field", found.start("value"), found.end("value"), "other_value")
        yield fault_in(name, text, "drop a ticket field", found.start(), found.end() + 1, "")
    for found in re.finditer(r"^asks_for: .*\n", text[:front], re.MULTILINE):
        yield fault_in(name, text, "drop a key", found.start(), found.end(), "")
    for reply in _REPLY.finditer(text):
        yield from _reply_faults(name, text, reply.start(), reply.end())
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


def _inside_tag(text: str, position: int) -> bool:
    return text.rfind("<", 0, position) > text.rfind(">", 0, position)

"""Grounding: every claim in a reply must be supported by this mail's facts.

It looks at free drafts of a model, which wait for a person, and marks what it objects to. It finds much and cannot find
all: what leaves unattended consists of approved sentences instead. The literal words of the instruction's own replies
count as supported, since a person wrote and approved them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from guarantee_email_agent.email.claim_words import DATE, NUMBER, STATUS_WORDS, TICKET, pattern
from guarantee_email_agent.email.harmless_words import HARMLESS_WORDS
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.template import TICKET_PLACEHOLDER

MAX_REPLY_LENGTH = 5_000
MAX_QUOTED = 80

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATES = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}",
    r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}",
    rf"{_DAY}\.? {_MONTH}\b(?:,? \d{{4}})?",
    rf"{_MONTH}\.? (?:\d{{4}}|{_DAY})\b(?:,? \d{{4}})?",
)
_LINKS = (
    r"\b(?:https?://|www\.)\S+|\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,190}\b"
    r"|\b[a-z0-9-]{2,63}(?:\.[a-z0-9-]{2,63}){0,4}\.[a-z]{2,24}\b(?:/\S*)?"  # a bare domain
    r"|\b[\w-]{1,63}\.[a-z]{2,24}/\S+|[([]\s?(?:\.|dot)\s?[])]"
    r"|\bdot (?:com|net|org|info|io|eu|de|pl|fr|es|it|nl|pt|cz)\b"
)
_CLAIMS = (
    ("date", re.compile(rf"\b(?:{'|'.join(_DATES)})", re.IGNORECASE)),
    ("amount", re.compile(r"[€$£] ?\d[\d.,]*|\b\d[\d.,]* ?(?:€|\$|£|%|EUR\b|USD\b|GBP\b|PLN\b|zł)", re.IGNORECASE)),
    ("link", re.compile(_LINKS, re.IGNORECASE)),
    # Any other word with a digit in it could pass for a serial number, a ticket number or a promise in days.
    ("number", re.compile(r"\b(?=[A-Z0-9/._-]{0,60}\d)(?:[A-Z0-9]+(?:[-/._][A-Z0-9]+)*)\b", re.IGNORECASE)),
)
_FULLY_COVERED = re.compile(r"fully\s+covered", re.IGNORECASE)
_ABOUT_WARRANTY = re.compile(r"\b(?:warrant|guarant|garant|gewahrleist|gwaranc|rekojm|zaruk|zaruc)\w*|\bcovered\b")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
_WORD = re.compile(r"[^\W\d_]+")
_SPELLED_OUT = re.compile(r"(?<!\w)\w(?:[ .*_-]\w){3,}(?!\w)")
_INSIDE_WORD = re.compile(r"(?<=[^\W\d_])[-.'*_·](?=[^\W\d_])")
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n[ \t]*\n|\n(?=[ \t]*[-*•] )")
_TYPOGRAPHIC = frozenset("\u00a0\u202f…’‘“”„«»–—•€£·¿¡°§º ª")
_LAST_LETTER = "\u017f"

_CONTRACT_WORDS = {
    "warranty is valid": (
        r"warranty is valid|garantie ist (?:noch |weiterhin )?gultig|gwarancja jest (?:nadal )?wazna"
        r"|garantie est (?:encore |toujours )?valable|garantia es valida|garanzia e (?:ancora )?valida"
        r"|garantie is (?:nog )?geldig|garantia e (?:ainda )?valida|zaruka je (?:stale )?platna"
    ),
    "expired": "expire|abgelaufen|wygasl|caducad|vencid|scadut|verlopen|expirad|expirou|vyprsel",
    "not in our records": (
        "not in our records|nicht in unser|nie ma w nasz|nie figuruje|ne figure pas|no figura|no consta|non risulta"
        "|niet in onze|nao consta|neni v nasi"
    ),
    "serial number": (
        r"serial number|seriennummer|numer\w* seryjn|numero de serie|numero di serie|serienummer|seriov\w+ cisl"
    ),
    "general support": (
        r"general support|kundendienst|kundenservice|obslug\w+ klienta|service client|atencion al cliente"
        "|assistenza clienti|klantenservice|apoio ao cliente|zakaznick"
    ),
}
"""What the contract has a reply say, in nine languages; folded."""

_WORDS_OF_STATUS = {"valid": "warranty is valid", "expired": "expired", "not_found": "not in our records"}


@dataclass(frozen=True, slots=True)
class GroundingFacts:
    """What a reply may say. `facts` as in the draft request; `approved_text` is the literal text of the templates."""

    facts: Mapping[str, str | None]
    approved_text: str
    has_ticket: bool
    allows_warranty_mentions: bool


def find_unsupported_claims(reply: str, grounding: GroundingFacts) -> tuple[str, ...]:
    """What in `reply` is not supported, as sentences for the model; empty for a grounded reply."""
    if not reply.strip():
        return ("The reply is empty.",)
    if len(reply) > MAX_REPLY_LENGTH:
        return (f"The reply is longer than {MAX_REPLY_LENGTH} characters.",)
    if not grounding.has_ticket and TICKET_PLACEHOLDER in reply:
        return (f"There is no ticket: do not write {TICKET_PLACEHOLDER}.",)
    # What is left without the facts must not hold any claim of its own.
    text = reply.replace(TICKET_PLACEHOLDER, f" {TICKET} ")
    for name, word in (("serial_number", NUMBER), ("expiration_date", DATE)):
        if value := grounding.facts.get(name):
            text = _replace_value(text, value, f" {word} ")
    status, is_full = grounding.facts.get("warranty_status"), grounding.facts.get("coverage") == "full"
    return _find_claims(text, status, is_full, grounding.allows_warranty_mentions, grounding.approved_text)


@lru_cache(maxsize=256)
def _find_claims(
    text: str, status: str | None, is_full: bool, allows_warranty_mentions: bool, approved_text: str
) -> tuple[str, ...]:
    """Claims in a reply whose facts were replaced. Pure, and most replies differ in their facts alone, hence cached."""
    found = list(_find_signs(text))
    text = unicodedata.normalize("NFKC", text)
    found.extend(f"'{mark}' looks like an unfilled placeholder." for mark in ("{", "}", "[[", "]]") if mark in text)
    if not is_full and _FULLY_COVERED.search(text):
        found.append("The facts do not say 'fully covered'.")
    if not allows_warranty_mentions and (match := _ABOUT_WARRANTY.search(fold(text))):
        found.append(f"This reply says nothing about a warranty: leave out '{match[0]}'.")
    lowered = approved_text.lower()
    for kind, claim in _CLAIMS:
        found.extend(
            f"The {kind} '{match[0]}' stands in no fact."
            for match in claim.finditer(text)
            if match[0].lower() not in lowered
        )
        text, approved_text = claim.sub(" ", text), claim.sub(" ", approved_text)
    found.extend(_find_sentences(fold(text), status, fold(approved_text)))
    return tuple(dict.fromkeys(found))


def _find_signs(text: str) -> Iterator[str]:
    """Signs that hide a word from us, or show a reader another one than we read."""
    if _CONTROL_CHARACTERS.search(text):
        yield "The reply holds control characters."
    if not text.isascii() and (sign := next(filter(_is_deceptive, unicodedata.normalize("NFC", text)), None)):
        name = unicodedata.name(sign, "no name")
        yield f"The sign U+{ord(sign):04X} ({name.lower()}) could hide or imitate another: write plain letters."
    if match := _SPELLED_OUT.search(text):
        yield f"'{match[0][:MAX_QUOTED]}' is spelled out letter by letter."


def _is_deceptive(sign: str) -> bool:
    """Whether it is invisible, of another script, beyond Latin Extended-A, or a digit or letter in another form."""
    if sign < "\x80" or sign in _TYPOGRAPHIC:
        return False
    if sign.isalpha():
        return sign in "\u0131\u0138\u017f" or not ("\u00c0" <= sign < _LAST_LETTER or sign in "ȘșȚț")
    return sign.isnumeric() or unicodedata.category(sign)[0] in "CM" or unicodedata.normalize("NFKC", sign).isalnum()


def _find_sentences(folded: str, status: str | None, approved: str) -> Iterator[str]:
    """Sentences that say another status than the facts, and those that neither claim nothing nor were approved."""
    approved_sentences = {tuple(_WORD.findall(part)) for part in _SENTENCE_END.split(approved)}
    known = HARMLESS_WORDS | STATUS_WORDS
    for part in _SENTENCE_END.split(folded):
        sentence = " ".join(part.split())
        named = pattern("name").sub(" ", sentence)
        if _is_false(named, status):
            yield f"The facts do not say '{sentence[:MAX_QUOTED]}'."
            continue
        if _words(sentence) in approved_sentences:
            continue
        without = pattern("own_cost").sub(" ", named)
        if without != named:
            without = pattern("repair").sub(" ", without)
        if status in ("valid", "expired"):
            without = pattern("ends_on_date").sub(" ", without)
        if unknown := next((word for word in _words(without) if word not in known), None):
            yield f"No fact and no approved sentence supports '{unknown}' in '{sentence[:MAX_QUOTED]}'."


def _words(sentence: str) -> tuple[str, ...]:
    """The words of a sentence, without those that stand for facts."""
    return tuple(word for word in _WORD.findall(sentence) if word not in (NUMBER, DATE, TICKET))


def _is_false(sentence: str, status: str | None) -> bool:
    def says(kind: str) -> bool:
        return pattern(kind).search(sentence) is not None

    if status == "valid":
        sentence = pattern("ends_on_date").sub(" ", sentence)
        if says("ended") or says("unknown"):
            return True
        if not says("warranty"):
            return False
        untrue = says("over") or says("not") or says("if") or says("scope")
        return untrue or (says("until") and not says("until_date"))
    if status in ("expired", "not_found") and "valid" in _INSIDE_WORD.sub("", sentence):
        return True
    if status == "expired":
        if says("unknown"):
            return True
        sentence = pattern("holds_no_longer").sub("expired", sentence)
        if not (says("warranty") or says("ended")):
            return False
        if says("holds") or says("goes_on") or says("not") or says("if") or says("scope"):
            return True
        return not (says("ended") or says("over") or says("looks_up"))
    if status == "not_found":
        if says("known") and not says("not"):
            return True
    elif says("unknown"):
        return True
    if says("holds") or says("ended"):
        return True
    return says("warranty") and (says("goes_on") or says("over") or not says("looks_up"))


def find_missing_facts(reply: str, grounding: GroundingFacts) -> tuple[str, ...]:
    """Facts and words of the contract that a model's draft leaves out. A template may do so: its author decided it."""
    found = []
    if grounding.has_ticket and TICKET_PLACEHOLDER not in reply:
        found.append(f"Write {TICKET_PLACEHOLDER} where the ticket number goes.")
    status = grounding.facts.get("warranty_status")
    if status in ("valid", "expired", "not_found"):
        found.extend(
            f"The reply must hold the {name.replace('_', ' ')} {value} exactly so."
            for name in ("serial_number", "expiration_date")
            if (value := grounding.facts.get(name)) and _replace_value(reply, value, " ") == reply
        )
        required = [_WORDS_OF_STATUS[status]]
    else:
        required = [words for words in ("serial number", "general support") if words in grounding.approved_text]
    folded = " ".join(fold(reply).split())
    found.extend(
        f"The reply must say '{words}', or the same in its language."
        for words in required
        if not re.search(_CONTRACT_WORDS[words], folded)
    )
    return tuple(found)


def _replace_value(text: str, value: str, word: str) -> str:
    """The text with `word` for `value`, except where it is part of something longer: SN12345-B is not SN12345."""
    first, *others = text.split(value)
    for other in others:
        is_part = first[-1:].isalnum() or other[:1].isalnum() or (other[:1] in ("-", "/", "_") and other[1:2].isalnum())
        first = f"{first}{value if is_part else word}{other}"
    return first

"""Words that claim something of a warranty, or the status of another look-up, and where they are false.

This is a check for the author of a reply, who means well: of a warranty it knows the usual words in English, German,
Polish, French and Spanish, a few in Italian and Dutch, and no paraphrase; of another look-up the words of its own
statuses, in English. It is no protection against text that a model or a customer wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from guarantee_email_agent.instructions.look_up import NOT_FOUND, WARRANTY, LookUp, look_up_of
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.router import OTHER_TOPIC, Situation

# As the text is folded: lower case, without accents. A `*` stands for any letters. Replies in every language
# are checked for the words of all, since a sentence may have been left untranslated.
_NOT_VALID = (
    *("invalid", "no longer valid", "not valid"),
    *("ungultig*", "nicht gultig", "nicht mehr gultig", "gilt nicht"),
    *("niewazn*", "nie jest wazna", "nie jest juz wazna", "utracila waznosc", "stracila waznosc"),
    *("pas valable", "plus valable", "pas valide", "plus valide", "pas en cours"),
    *("no es valid*", "no esta vigente", "ya no es valida"),
    *("non e valida", "non e piu valida", "niet geldig", "ongeldig*"),
)
_ENDED = tuple(map(" ".join, product(("has", "have"), ("ended", "lapsed", "run out"))))
_EXPIRED = (
    *("expired", *_ENDED, "ran out", "is over"),
    *("abgelaufen*", "ausgelaufen*", "erloschen*", "garantie endete", "lief ab", "ist vorbei"),
    *("wygasl*", "uplynal", "uplynela", "skonczyl* sie", "dobiegl* konca", "po gwarancji"),
    *("expiree*", "expire", "est echue", "est arrivee a echeance", "est terminee", "a pris fin", "hors garantie"),
    *("caducad*", "caduco", "vencid*", "vencio", "ha expirado", "expirada", "ha terminado", "fuera de garantia"),
    *("scadut*", "verlopen", "afgelopen"),
)
_NOT_KNOWN = (
    *("not in our records", "not in our system", "not in our database", "not found"),
    *("nicht in unser*", "nicht verzeichnet", "nicht gefunden", "nicht bekannt"),
    *("nie ma w nasz*", "nie figuruje", "nie znalezlismy", "nie znaleziono", "nie widnieje"),
    *("ne figure pas", "n'avons pas trouve", "est introuvable", "est inconnu*"),
    *("no figura", "no consta", "no hemos encontrado", "no aparece"),
    *("non risulta", "niet in onze"),
)
_COVERED = (
    *("is covered", "are covered", "still covered", "fully covered"),
    *("abgedeckt*", "gedeckt", "vollen garantieschutz", "garantieschutz besteht"),
    *("objet* gwarancj*", "objet* jest", "objet* ochron*", "w pelni objet*", "pelna ochrona"),
    *("est couvert*", "entierement couvert*", "couvert* par", "pris en charge"),
    *("esta cubiert*", "totalmente cubiert*", "cubiert* por"),
    *("e coperto", "e coperta", "gedekt"),
)
_IN_FORCE = (
    *map(
        " ".join,
        product(
            ("is", "are", "still"),
            ("active", "in force", "under warranty", "under guarantee", "in warranty", "in guarantee"),
        ),
    ),
    *("noch garantie", "garantie lauft", "garantie gilt", "garantie besteht", "besteht garantie", "in der garantie"),
    *("na gwarancji", "gwarancja trwa", "gwarancja obowiazuje", "gwarancja jest aktywna"),
    *("sous garantie", "garantie est en cours", "garantie court", "encore garanti"),
    *("en garantia", "bajo garantia", "garantia esta activa", "garantia sigue"),
    *("in garanzia", "onder garantie", "binnen de garantie"),
)
_VALID = (
    *_IN_FORCE,
    *("gultig*", "jest wazna", "jest nadal wazna", "jest wciaz wazna", "vigente*", "vigor", "geldig*"),
    *("valable*", "valida", "valido", "valide", "valides", "validite", "validez"),
)
_UNKNOWN = ("is valid", "is still valid", *_NOT_VALID, *_EXPIRED, *_VALID, *_COVERED, *_NOT_KNOWN)
_FALSE_WORDS: Mapping[str | None, Sequence[str]] = {
    "valid": (*_NOT_VALID, *_EXPIRED, *_NOT_KNOWN),
    # The letters "valid" may not stand there in any word: who reads in a hurry reads no "in" before it.
    "expired": ("*valid*", *_VALID, *_COVERED, *_NOT_KNOWN),
    "not_found": ("*valid*", *_NOT_VALID, *_VALID, *_COVERED, *_EXPIRED),
}
_FULLY_COVERED = (
    *(
        "fully covered",
        "vollstandig abgedeckt",
        "voll abgedeckt",
        "in vollem umfang",
        "w pelni objet*",
        "w pelnym zakresie",
    ),
    *("entierement couvert*", "integralement couvert*", "totalmente cubiert*", "cobertura completa", "cobertura total"),
)
_ABOUT_WARRANTY = ("*warrant*", "*guarantee*", "*garanti*", "*gwaranc*", "*gewahrleist*", "*rekojmi*")
_OPEN_SENTENCE = re.compile(
    r"\b(?:as soon as|once|when|whenever|until|unless|before|after|if|whether|that|which|who|no|not|never|cannot)\b"
)
_SENTENCE_END = re.compile(r"[.!?;:]\s|\n\s*\n")

_ABOUT_OTHER = (*_ABOUT_WARRANTY, *_UNKNOWN)
_ALL_WORDS = tuple(dict.fromkeys((*_ABOUT_OTHER, *_FULLY_COVERED, "*valid*")))
_WORD = re.compile(r"\w+")
_NEEDED = [
    (
        claim,
        frozenset(_WORD.findall(re.sub(r"\S*\*\S*", "", claim))),
        [part.strip("*") for part in claim.split() if "*" in part],
    )
    for claim in _ALL_WORDS
]
"""Each claim with its whole words, and the beginnings or letters of its other ones."""


def claim_words_in(text: str) -> frozenset[str]:
    """The claims of which every word stands somewhere in a folded text; no part of it can hold another claim."""
    words = frozenset(_WORD.findall(text))
    return frozenset(
        [claim for claim, whole, parts in _NEEDED if whole <= words and all(map(text.__contains__, parts))]
    )


def false_claims_in(
    text: str, situation: Situation, coverage: str | None, look_ups: Sequence[LookUp] = (WARRANTY,)
) -> Sequence[str]:
    """Those of `claim_words_in` that are false in this situation; arguments as for `find_false_claim`."""
    possible = claim_words_in(text)
    return [claim for claim in _false_claims(situation, coverage, look_ups) if claim in possible] if possible else ()


def find_false_claim(
    text: str,
    situation: Situation,
    coverage: str | None,
    suspects: Sequence[str] | None = None,
    look_ups: Sequence[LookUp] = (WARRANTY,),
) -> re.Match[str] | None:
    """The first of the words that are false in this situation, where a reply holds any.

    text: folded (`phrases.fold`). coverage: as in the facts. suspects: `false_claims_in` a text that holds all of it.
    look_ups: of the declared topics; without the warranty's, a reply on any topic may speak of warranties.
    """
    look_up = look_up_of(situation.topic, look_ups)
    own_status = _find_own_status(text, look_up, situation.status) if look_up is not None else None
    if own_status:
        return own_status
    if suspects is None:
        suspects = false_claims_in(text, situation, coverage, look_ups)
    # Nearly no reply holds one of them even inside a word, and a pattern takes longer to compile than all of this.
    on_one_line = " ".join(text.split())
    found = [claim for claim in suspects if claim.strip("*") in on_one_line]
    return re.search("|".join(map(_pattern, found)), text) if found else None


def _false_claims(situation: Situation, coverage: str | None, look_ups: Sequence[LookUp]) -> Sequence[str]:
    if situation.topic == OTHER_TOPIC and any(each.is_of_warranties for each in look_ups):
        return _ABOUT_OTHER
    look_up = look_up_of(situation.topic, look_ups)
    if look_up is not None and not look_up.is_of_warranties:
        return _false_words_beside(look_up, situation.status)
    words = _FALSE_WORDS.get(situation.warranty_status, _UNKNOWN)
    return words if coverage == "full" else (*_FULLY_COVERED, *words)


def _pattern(word: str) -> str:
    pattern = word.replace("*", r"\w*").replace(" ", r"\s+")
    return rf"\b{pattern}\b"


def _false_words_beside(look_up: LookUp, status: str | None) -> list[str]:
    """What nobody may be told of a warranty, who is told of something else: its own words are another matter."""
    own = [fold(each).replace("_", " ") for each in look_up.statuses]
    words = [word for word in (*_UNKNOWN, *_FULLY_COVERED) if status != NOT_FOUND or word not in _NOT_KNOWN]
    return [word for word in words if not any(each in word for each in own)]


def _find_own_status(text: str, look_up: LookUp, status: str | None) -> re.Match[str] | None:
    """A status that was reached, as in "was cancelled", where the look-up gave none.

    Of a known one the reply may tell what came before it, such as that a delivered order was shipped.
    """
    if look_up.is_of_warranties or status in look_up.statuses:
        return None
    names = "|".join(re.escape(fold(each)).replace("_", r"\s+").replace(r"\ ", r"\s+") for each in look_up.statuses)
    for match in re.finditer(rf"\b(?:was|were|(?:has|have)(?:\s+already)?(?:\s+been)?)\s+(?:{names})\b", text):
        start = max((end.end() for end in _SENTENCE_END.finditer(text, 0, match.start())), default=0)
        if not _OPEN_SENTENCE.search(text, start, match.start()):
            return match
    return None

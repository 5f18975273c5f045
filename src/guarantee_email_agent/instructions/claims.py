"""Words that claim something of a warranty, and where they are false.

This is a check for the author of a reply, who means well: it knows the usual words in English, German, Polish, French
and Spanish, a few in Italian and Dutch, and no paraphrase. It is no protection against text that a model or a customer
wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from guarantee_email_agent.instructions.router import Situation

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


_ALL_WORDS = tuple(dict.fromkeys((*_ABOUT_WARRANTY, *_UNKNOWN, *_FULLY_COVERED, "*valid*")))
_LETTERS = [(word, *(part.strip("*") for part in word.split())) for word in _ALL_WORDS]


def claim_words_in(text: str) -> frozenset[str]:
    """The claims of which every word stands somewhere in a folded text; no part of it can hold another claim."""
    # The first word alone rules out nearly all of them.
    return frozenset(
        [word for word, first, *others in _LETTERS if first in text and all(map(text.__contains__, others))]
    )


def find_false_claim(
    text: str, situation: Situation, coverage: str | None, possible: frozenset[str] | None = None
) -> re.Match[str] | None:
    """The first of the words that are false in this situation, where a reply holds any.

    text: folded (`phrases.fold`). coverage: as in the facts. possible: `claim_words_in` of a text that holds all of it.
    """
    if situation.topic == "other":
        words: Sequence[str] = (*_ABOUT_WARRANTY, *_UNKNOWN)
    else:
        words = _FALSE_WORDS.get(situation.warranty_status, _UNKNOWN)
        if coverage != "full":
            words = (*_FULLY_COVERED, *words)
    possible = claim_words_in(text) if possible is None else possible
    if not (found := [word for word in words if word in possible]):
        return None
    # Nearly no reply holds one of them even inside a word, and a pattern takes longer to compile than all of this.
    on_one_line = " ".join(text.split())
    found = [word for word in found if word.strip("*") in on_one_line]
    return re.search("|".join(map(_pattern, found)), text) if found else None


def _pattern(word: str) -> str:
    pattern = word.replace("*", r"\w*").replace(" ", r"\s+")
    return rf"\b{pattern}\b"

"""Words that claim something of a warranty, and where they are false.

This is a check for the author of a reply, who means well: it knows the usual words, most of them English, and no
paraphrase. It is no protection against text that a model or a customer wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from guarantee_email_agent.instructions.router import Situation

# As the text is folded: lower case, without accents. A `*` stands for any letters.
_NOT_VALID = ("invalid", "no longer valid", "not valid", "ungultig*")
_ENDED = tuple(map(" ".join, product(("has", "have"), ("ended", "lapsed", "run out"))))
_EXPIRED = ("expired", *_ENDED, "ran out", "is over", "abgelaufen", "wygasl*", "caducad*", "vencid*", "expiree*")
_NOT_KNOWN = ("not in our records", "not in our system", "not in our database", "not found")
_COVERED = ("is covered", "are covered", "still covered", "fully covered")
_IN_FORCE = tuple(
    map(
        " ".join,
        product(
            ("is", "are", "still"),
            ("active", "in force", "under warranty", "under guarantee", "in warranty", "in guarantee"),
        ),
    )
)
_VALID = (*_IN_FORCE, "gultig*", "jest wazna", "vigente*", "valable", "valida", "valido", "valide")
_UNKNOWN = ("is valid", "is still valid", *_NOT_VALID, *_EXPIRED, *_VALID, *_COVERED, *_NOT_KNOWN)
_FALSE_WORDS: Mapping[str | None, Sequence[str]] = {
    "valid": (*_NOT_VALID, *_EXPIRED, *_NOT_KNOWN),
    # The letters "valid" may not stand there in any word: who reads in a hurry reads no "in" before it.
    "expired": ("*valid*", *_VALID, *_COVERED, *_NOT_KNOWN),
    "not_found": ("*valid*", *_NOT_VALID, *_VALID, *_COVERED, *_EXPIRED),
}
_FULLY_COVERED = ("fully covered",)
_ABOUT_WARRANTY = ("*warrant*", "*guarantee*", "*garanti*", "*gwaranc*", "*gewahrleist*", "*rekojmi*")


def find_false_claim(text: str, situation: Situation, coverage: str | None) -> re.Match[str] | None:
    """The first of the words that are false in this situation, where a reply holds any.

    text: folded (`phrases.fold`). coverage: as in the facts.
    """
    if situation.topic == "other":
        words: Sequence[str] = (*_ABOUT_WARRANTY, *_UNKNOWN)
    else:
        words = _FALSE_WORDS.get(situation.warranty_status, _UNKNOWN)
        if coverage != "full":
            words = (*_FULLY_COVERED, *words)
    on_one_line = " ".join(text.split())
    # Nearly no reply holds one of them even inside a word, and a pattern takes longer to compile than all of this.
    found = [word for word in words if word.strip("*") in on_one_line]
    return re.search("|".join(map(_pattern, found)), text) if found else None


def _pattern(word: str) -> str:
    pattern = word.replace("*", r"\w*").replace(" ", r"\s+")
    return rf"\b{pattern}\b"

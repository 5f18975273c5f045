"""Words that claim something of a warranty, and where they are false.

This is a check for the author of a reply, who means well: it knows the usual words, most of them English, and no
paraphrase. It is no protection against text that a model or a customer wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guarantee_email_agent.instructions.router import Situation, WarrantyStatus

# As sources and not compiled: `re` keeps what it compiled, and most runs never need them.
_NOT_VALID = r"invalid|no longer valid|not valid|ungultig"
_EXPIRED = r"expired|(?:has|have) (?:ended|lapsed|run out)|ran out|is over|abgelaufen|wygasl|caducad|vencid|expiree"
_NOT_KNOWN = r"not in our (?:records|system|database)|not found"
_COVERED = r"(?:is|are|still|fully) (?:fully )?covered|(?:is|are|still) (?:still )?(?:under|in) (?:warranty|guarantee)"
_VALID = r"(?:is|are|still) (?:still )?(?:active|in force)|gultig|wazn[aey]|vigente|valable|valide"
_UNKNOWN = rf"is (?:still |no longer |not )?valid|{_NOT_VALID}|{_EXPIRED}|{_VALID}|{_COVERED}|{_NOT_KNOWN}"
_FALSE_WORDS: Mapping[WarrantyStatus | None, str] = {
    "valid": f"{_NOT_VALID}|{_EXPIRED}|{_NOT_KNOWN}",
    # The letters "valid" may not stand there in any word: who reads in a hurry reads no "in" before it.
    "expired": rf"\w*valid\w*|{_VALID}|{_COVERED}|{_NOT_KNOWN}",
    "not_found": rf"\w*valid\w*|{_VALID}|{_COVERED}|{_EXPIRED}",
}
_FULLY_COVERED = "fully covered"
_ABOUT_WARRANTY = r"\w*(?:warrant|guarantee|garanti|gwaranc|gewahrleist|rekojmi)\w*"


def false_claim(text: str, situation: Situation, coverage: str | None) -> tuple[int, str] | None:
    """The first words in a reply that are false in this situation, as (position, words); None where there are none.

    text: folded (`phrases.fold`). coverage: as in the facts.
    """
    if situation.intent == "other":
        words = f"{_ABOUT_WARRANTY}|{_UNKNOWN}"
    else:
        words = _FALSE_WORDS.get(situation.warranty_status, _UNKNOWN)
        if coverage != "full":
            words = f"{_FULLY_COVERED}|{words}"
    match = re.search(rf"\b(?:{words})".replace(" ", r"\s+"), text)
    return (match.start(), " ".join(match[0].split())) if match else None

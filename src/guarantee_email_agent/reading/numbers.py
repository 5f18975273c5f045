"""Which numbers of a mail may be looked up. The one place that decides it, for the interpreter and for a live model.

A number is evidence with a reason, or it is not looked up. It counts where a label says what it is ("S/N: 4711-A", also
on the line above, or behind it: "4711-A is my serial number"), where it begins with its own label (`SN4711`), where it
fits a format that the company gave, or where it is essentially all that an answer to our question says. A number of
which a part could not be read, one that carries another label ("order no. 4711"), one of somebody else's device and one
below the signature never count.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.reading.number_reader import NumberReader, NumberReading, number_key

MAX_DROPPED: Final = 1000

SERIAL_NUMBER: Final = NumberFormat("serial_number")

_DIGIT: Final = re.compile(r"[0-9]")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Z0-9]+")


class Tiers(NamedTuple):
    """What was newly written (with a subject of its own), what was quoted, and the signature.

    quotes_others: whether a third person wrote what is quoted; of its numbers the customer is only asked.
    """

    new: str
    quoted: str
    signature: str
    quotes_others: bool = False


def tiers_of(
    subject: str, new: str, quoted: str, signature: str, *, is_answer: bool, quotes_others: bool = False
) -> Tiers:
    """The texts as `parse_email` normalizes them.

    is_answer: the subject repeats that of an earlier mail, so that it counts with what was quoted.
    """
    first, second = (new, f"{subject}\n\n{quoted}") if is_answer else (f"{subject}\n\n{new}", quoted)
    return Tiers(first.strip(), second.strip(), signature, quotes_others)


def stands_in(number: str, text: str) -> bool:
    """Whether a number stands in a text, however it is spelled."""
    key, written = number_key(number), text.upper()
    return key in written or key in _NOT_ALPHANUMERIC.sub("", written)


@lru_cache(maxsize=8)  # the interpreter and the check of what a model picked read the same mail
def read_numbers(tiers: Tiers, number_format: NumberFormat, lexicon: Lexicon, *, asked: bool = False) -> NumberReading:
    """The numbers of one kind that a mail gives; time is linear in its length.

    number_format: which kind. asked: the mail answers a reply of ours that asked for such a number.
    """
    new = NumberReader(tiers.new, number_format, lexicon)
    reading = new.read(asked=asked)
    if reading.numbers or reading.unreadable:
        return _with_dropped(reading, tiers, "stands behind the new text, which gives a number already")
    if tiers.quoted:
        quoted = NumberReader(tiers.quoted, number_format, lexicon)
        if not asked and quoted.asks_for_number and (answer := new.read(asked=True)).numbers:
            return answer
        found = quoted.read(asked=False)
        if tiers.quotes_others:
            unconfirmed = tuple(dict.fromkeys((*reading.unconfirmed, *found.numbers)))
            reading = reading._replace(unconfirmed=unconfirmed)
            return _with_dropped(reading, tiers, "stands in what somebody else wrote")
        if found.numbers or found.unreadable:
            return NumberReading(
                found.numbers,
                found.unreadable,
                reading.unconfirmed,
                found.labelled,
                dropped=(*reading.dropped, *found.dropped),
            )
    return _with_dropped(reading, tiers._replace(quoted=""), "stands in the signature")


def _with_dropped(reading: NumberReading, tiers: Tiers, reason: str) -> NumberReading:
    """reading: of the new text. reason: why no number further down counts."""
    if not (_DIGIT.search(tiers.quoted) or _DIGIT.search(tiers.signature)):
        return reading
    behind = (
        word.strip(".,;:()") for text in (tiers.quoted, tiers.signature) for word in text.split() if _DIGIT.search(word)
    )
    dropped = (*reading.dropped, *((word, reason) for word in islice(behind, MAX_DROPPED)))
    return reading._replace(dropped=dropped)

"""Calendar dates in the usual written forms."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date
from typing import Final

_MONTHS: Final = (
    "january jan januar stycznia janvier enero ene",
    "february feb februar lutego fevrier février febrero",
    "march mar märz maerz mär marca mars marzo",
    "april apr kwietnia avril abril abr",
    "may mai maja mayo",
    "june jun juni czerwca juin junio",
    "july jul juli lipca juillet julio",
    "august aug sierpnia août aout agosto ago",
    "september sep sept września wrzesnia septembre septiembre",
    "october oct oktober okt października pazdziernika octobre octubre",
    "november nov listopada novembre noviembre",
    "december dec dezember dez grudnia décembre decembre diciembre dic",
)
"""English, German, Polish, French, Spanish; a closed set, so that no look-alike letter passes for one of theirs."""

_MONTH_NUMBERS: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_DAYS_OF_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MAX_LENGTH: Final = 40
_WORD: Final = r"([A-Za-zÄÉÛŚŹäéûśź]{3,12})\.?"
_DAY: Final = "([0-9]{1,2})"
_YEAR: Final = "((?:19|2[0-9]|9[0-9])[0-9]{2})"
_TIME: Final = (
    "[T ](?:[01][0-9]|2[0-4]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?(?: ?Z| ?[+-][0-9]{2}(?::?[0-9]{2})?)?"
)

# As sources and not compiled: `re` keeps what it compiled, and most services write the first form.
_YEAR_FIRST: Final = rf"{_YEAR}([-/.]){_DAY}\2{_DAY}(?:{_TIME})?"
_YEAR_LAST: Final = rf"{_DAY}([-/.]){_DAY}\2{_YEAR}"
_DAY_AND_MONTH: Final = rf"{_DAY}(?:\.|st|nd|rd|th|er)? ?(?:de )?{_WORD},? ?(?:de )?{_YEAR}"
_MONTH_AND_DAY: Final = rf"{_WORD} {_DAY}(?:st|nd|rd|th)?,? {_YEAR}"


def is_date(text: str) -> bool:
    """Whether a text is a date and nothing besides: `2027-03-31` (also with a time), `31.03.2027`, `03/31/2027`,
    `31 March 2027`, `March 31, 2027`.
    """
    return any(possible_dates(text))


def possible_dates(text: str) -> Iterator[date]:
    """The dates that a text may mean: two where day and month are figures that could stand in either order.

    29 February counts in any year, as the last day of the month.
    """
    if len(text) > _MAX_LENGTH:
        return
    if match := re.fullmatch(_YEAR_FIRST, text):
        yield from _date(match[1], match[3], match[4])
    elif match := re.fullmatch(_YEAR_LAST, text):
        yield from _date(match[4], match[1], match[3])
        if match[1] != match[3]:
            yield from _date(match[4], match[3], match[1])
    elif match := re.fullmatch(_DAY_AND_MONTH, text):
        yield from _date(match[3], _MONTH_NUMBERS.get(match[2].lower(), 0), match[1])
    elif match := re.fullmatch(_MONTH_AND_DAY, text):
        yield from _date(match[3], _MONTH_NUMBERS.get(match[1].lower(), 0), match[2])


def _date(year: str, month: str | int, day: str) -> Iterator[date]:
    month = int(month)
    if 1 <= month <= 12 and 1 <= int(day) <= _DAYS_OF_MONTHS[month - 1]:
        is_leap = calendar.isleap(int(year))
        yield date(int(year), month, min(int(day), 28) if month == 2 and not is_leap else int(day))

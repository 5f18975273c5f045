"""What a service said of one number, checked by the form of each fact: nothing else of it can reach a customer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from guarantee_email_agent.instructions.look_up import (
    FOUND,
    OTHER_STATUS,
    WITHHELD_STATUS,
    Fact,
    LookUp,
)
from guarantee_email_agent.services.call_errors import MalformedAnswerError
from guarantee_email_agent.utils.errors import IntegrationError
from guarantee_email_agent.utils.text import word_key

# As sources and not compiled: `re` keeps what it compiled, and most answers need few of them.
_PLAIN_WORDS: Final = r"[A-Za-z0-9 .,:/+()_-]{1,40}"
_STATUS_WORD: Final = r"(?i:valid|expire)"
_NAME: Final = r"[^\W_][\w .,'’&+()/-]{0,59}"
_NO_NAME: Final = r"(?i:null|none|nan|nil|n/?a|undefined|unknown)"
_LINK: Final = r"(?i:www\.|//|\w\.[^\W\d_]{2})"
_CURRENCY: Final = r"(?:[A-Z]{3}|[€$£¥]|zł|Kč)"
_AMOUNT: Final = (
    rf"(?:{_CURRENCY} ?)?[0-9]{{1,3}}(?:[0-9]{{0,6}}|(?:[.,' ][0-9]{{3}}){{1,3}})(?:[.,][0-9]{{1,2}})?"
    rf"(?: ?{_CURRENCY})?"
)
_ADDRESS: Final = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"


@dataclass(frozen=True, slots=True)
class LookUpAnswer:
    """status: one of the look-up's situations. facts: what is known, by name, in the service's own writing.

    owner_email: the bare address that alone may be told; empty where the service names one that cannot be read, None
    where it names none.
    """

    status: str
    facts: Mapping[str, str] = field(default_factory=dict)
    owner_email: str | None = None


WITHHELD: Final = LookUpAnswer(WITHHELD_STATUS)
"""In place of an answer that the sender may not be told."""


def parse_look_up_answer(raw: object, look_up: LookUp) -> LookUpAnswer:
    """Raises IntegrationError `{name}_malformed` for an answer without a status, and for a fact that has another form.

    A word or a name that could not be repeated to a customer is left out, and so is what means nothing with the status.
    """
    if not isinstance(raw, Mapping):
        raise _malformed(look_up, "is no mapping")
    status = _status(raw, look_up)
    facts = {fact.name: _value(raw.get(fact.name), fact, look_up) for fact in look_up.facts}
    meant = {fact.name for fact in look_up.facts_with(status)}
    known = {name: value for name, value in facts.items() if value is not None and name in meant}
    return LookUpAnswer(status, known, _owner_email(raw.get(look_up.owner_key)))


def is_quotable(value: str) -> bool:
    """Whether a coverage of the warranty system may stand in a reply: short, plain, and stating no status."""
    return re.fullmatch(_PLAIN_WORDS, value) is not None and re.search(_STATUS_WORD, value) is None


def _status(raw: Mapping[str, object], look_up: LookUp) -> str:
    status = raw.get(look_up.status_key)
    if isinstance(status, str) and status.strip():
        key = word_key(status)
        return next((each for each in look_up.told_statuses if word_key(each) == key), OTHER_STATUS)
    if status is None and look_up.statuses == (FOUND,) and any(raw.get(fact.name) for fact in look_up.facts):
        return FOUND
    raise _malformed(look_up, f"has no {look_up.status_key}")


def _value(value: object, fact: Fact, look_up: LookUp) -> str | None:
    if value is None or value == "":
        return None
    if fact.form == "amount" and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        value = str(value) if isinstance(value, int) else f"{value:.2f}"
    if not isinstance(value, str):
        raise _malformed(look_up, f"has an unusable {fact.name}")
    if (fact.form == "date" and not is_date(value)) or (fact.form == "amount" and not re.fullmatch(_AMOUNT, value)):
        raise _malformed(look_up, f"has an unusable {fact.name}")
    if fact.form == "name":
        is_odd = re.search(f"{_LINK}|{_STATUS_WORD}|^{_NO_NAME}$", value)
        return value if re.fullmatch(_NAME, value) and not is_odd else None
    if fact.form != "word":
        return value
    if not fact.words:
        return value.casefold() if is_quotable(value) else None
    key = word_key(value)
    return next((word for word in fact.words if word_key(word) == key), None)


def _owner_email(value: object) -> str | None:
    if value is None or value == "":
        return None
    # Whoever the owner is, it is nobody who can be compared with: an answer to anyone would be a guess.
    return value if isinstance(value, str) and len(value) <= 254 and re.fullmatch(_ADDRESS, value) else ""


def _malformed(look_up: LookUp, problem: str) -> IntegrationError:
    return MalformedAnswerError(look_up.name, "", problem, f"the answer {problem}. Check the service")


_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_NUMBERS: Final = {
    name: number for number, month in enumerate(_MONTHS, 1) for name in (month, month[:3], month[:4])
}
"""In English; a closed set, so that no look-alike letter passes for one of them."""

_MAX_LENGTH: Final = 40
_WORD: Final = r"([A-Za-z]{3,9})\.?"
_DAY: Final = "([0-9]{1,2})"
_YEAR: Final = "((?:19|2[0-9]|9[0-9])[0-9]{2})"
_TIME: Final = (
    "[T ](?:[01][0-9]|2[0-4]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?(?: ?Z| ?[+-][0-9]{2}(?::?[0-9]{2})?)?"
)

# As sources and not compiled: `re` keeps what it compiled, and most services write the first form.
_YEAR_FIRST: Final = rf"{_YEAR}([-/.]){_DAY}\2{_DAY}(?:{_TIME})?"
_YEAR_LAST: Final = rf"{_DAY}([-/.]){_DAY}\2{_YEAR}"
_DAY_AND_MONTH: Final = rf"{_DAY}(?:\.|st|nd|rd|th)? ?{_WORD},? ?{_YEAR}"
_MONTH_AND_DAY: Final = rf"{_WORD} {_DAY}(?:st|nd|rd|th)?,? {_YEAR}"


def is_date(text: str) -> bool:
    """Whether a text is a date and nothing besides: `2027-03-31` (also with a time), `31.03.2027`, `03/31/2027`,
    `31 March 2027`, `March 31, 2027`.
    """
    return bool(possible_dates(text))


def possible_dates(text: str) -> list[date]:
    """The dates that a text may mean: two where day and month are figures that could stand in either order.

    29 February counts in any year, as the last day of the month.
    """
    if len(text) > _MAX_LENGTH:
        return []
    if match := re.fullmatch(_YEAR_FIRST, text):
        return _date(match[1], match[3], match[4])
    if match := re.fullmatch(_YEAR_LAST, text):
        month_second = [] if match[1] == match[3] else _date(match[4], match[3], match[1])
        return _date(match[4], match[1], match[3]) + month_second
    if match := re.fullmatch(_DAY_AND_MONTH, text):
        return _date(match[3], _MONTH_NUMBERS.get(match[2].lower(), 0), match[1])
    if match := re.fullmatch(_MONTH_AND_DAY, text):
        return _date(match[3], _MONTH_NUMBERS.get(match[1].lower(), 0), match[2])
    return []


def _date(year: str, month: str | int, day: str) -> list[date]:
    try:
        return [date(int(year), int(month), int(day))]
    except ValueError:
        return [date(int(year), 2, 28)] if (int(month), int(day)) == (2, 29) else []

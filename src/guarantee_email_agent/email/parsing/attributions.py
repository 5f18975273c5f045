"""Find attributions: the line, or up to five, that a mail program writes above a quotation ("On …, Jane wrote:").

One counts only where a program's sentence can be told from a customer's: it opens like one (by a phrase, a weekday or
a date) or by nothing but a name, ends in the verb, and holds a mail address, a date with its time, or has ">" lines
below it. Whatever is less stays what the customer wrote.
"""

from __future__ import annotations

import re

from guarantee_email_agent.email.phrases import phrases_of

_OPENINGS = phrases_of("openings")
_WEEKDAYS = phrases_of("weekdays")
_VERBS = phrases_of("verbs")
_INNER_VERBS = phrases_of("inner verbs")
_FIRST_PERSONS = frozenset(phrases_of("first persons"))

# As text and not compiled, here and below: few mails need them, and `re` keeps what it compiled.
_ADDRESS = r"[^\s@<>]@[^\s@<>]"
_ENDS_IN_ADDRESS = r"@[^\s@<>]+ ?[>)\]]{1,3} ?:?$"
_ENDS_IN_ADDRESS_OR_DATE = rf"{_ENDS_IN_ADDRESS}|[\d)] ?:$"
_DATE = r"(?<!\d)(?:19|20)\d\d|(?<!\d)\d{1,2}[./-]\d{1,2}[./-]\d\d(?!\d)"
_TIME = r"(?<!\d)\d{1,2} ?[:.h] ?\d\d(?!\d)"
_DAY = r"(?<!\w)\d{1,2}(?:st|nd|rd|th)?(?!\w)"
_DATE_AT_START = (  # "at" is Eudora's, and elsewhere stands further inside
    r"(?:at )?\d{1,2}[./-] ?\d{1,2}[./-] ?(?:19|20)?\d\d(?!\d)|(?:19|20)\d\d[./-] ?\d{1,2}[./-] ?\d{1,2}(?!\d)"
    r"|\d{1,2}\.? [^\W\d_]{3,12}\.?,? (?:de )?(?:19|20)\d\d|(?:19|20)\d\d ?[年년.]"
    r"|\d{1,2}[:.]\d\d(?: [ap]m)?, "
)
# An opening within a line, before a date: "… reply On Wed, Apr 4, 2012 at 3:59 PM, bob@example.com wrote:".
_INNER_OPENING = (
    rf"(?<=[\s.,;!?)-])(?:{'|'.join([re.escape(phrase[0].upper() + phrase[1:]) for phrase in _OPENINGS])})"
    r"(?:[^\W\d_]{1,14}[.,]{0,2} ){0,3}\d"
)
_SENTENCE_ENDS = (".", "!", "?")
_MAX_NAME_WORDS = 5
_MAX_ABBREVIATION_CHARS = 4  # "Dr." may stand in a name, "broken." ends a sentence
_MAX_CHARS = 600
_MAX_LINES = 5
_MAX_INNER_OPENINGS = 3


def find_attribution(lines: list[str], number: int, *, is_marked: bool) -> tuple[int, int] | None:
    """Where the attribution starts that ends in the line `number`: its line, and the column there.

    Before the column stands what the customer wrote. is_marked: whether ">" lines follow the attribution.
    """
    joined, fallback = "", None
    for first in range(number, max(number - _MAX_LINES, -1), -1):
        line = lines[first].strip()
        if first < number:
            if not line and joined.startswith("< "):
                continue  # Polymail puts the address on lines of its own
            if not line or line[0] == ">" or line[-1] == ":":
                break
        text = f"{line} {joined}".rstrip()
        joined = text[-_MAX_CHARS:]
        cut = len(text) - len(joined)
        if _is_attribution(joined, is_marked=is_marked):
            # A line further up is the customer's unless it gives the time, or the name before the address.
            is_part = first == number or has_time(joined) or _ends_in_name(joined.partition("<")[0])
            opens = is_part and not cut and opens_attribution(joined.lower())
            start = _find_inner_opening(joined, len(line) - cut, is_marked=is_marked)
            # "On 3 February it broke. On Wed, Feb 4, 2026 at 3:59 PM, Jane wrote:" has a sentence of the customer's.
            if opens and not (start and joined[:start].rstrip()[-1:] in _SENTENCE_ENDS):
                return first, 0
            if start:
                indent = len(lines[first]) - len(lines[first].lstrip())
                return first, indent + cut + start
            is_apart = is_marked or first == 0 or not lines[first - 1].strip()
            if fallback is None and not cut and is_apart and _opens_with_name(joined, is_marked=is_marked):
                fallback = first, 0
        if cut:
            break
    return fallback


def is_attribution_without_colon(stripped: str, *, is_marked: bool) -> bool:
    """Whether the line is one that ends in the verb, or, above ">" lines, in the address after date and name."""
    folded = stripped.lower()
    if len(stripped) > _MAX_CHARS or not has_address(folded) or not opens_attribution(folded):
        return False
    if _before_closing_verb(stripped):
        return has_date(folded) and has_time(folded)
    return is_marked and bool(re.match(_DATE_AT_START, folded) and re.search(_ENDS_IN_ADDRESS, folded))


def is_attribution_with_text(stripped: str) -> bool:
    """Whether an attribution starts the line and the earlier mail's text follows on it, as Yahoo writes it."""
    if "@" not in stripped or not opens_attribution(start := stripped[:_MAX_CHARS].lower()):
        return False
    ends = [end for verb in _VERBS if (end := start.find(f" {verb}:")) > 0]
    before = start[: min(ends, default=0)]
    return has_address(before) and has_date(before) and has_time(before)


def is_attribution_between_dashes(words: str) -> bool:
    """Whether what stands between dashes is one: "---- On Wed, 24 Feb 2021 14:02:50 +0530 Jane wrote ----"."""
    if len(words) > _MAX_CHARS or not _before_closing_verb(words):
        return False
    return _opens_with_name(words) or (has_date(words) and has_time(words) and opens_attribution(words.lower()))


def opens_attribution(folded: str) -> bool:
    """Whether a lower-case line starts as an attribution does: with a phrase, a weekday or a date."""
    word, _, rest = folded.partition(" ")
    is_dated = any(map(str.isdigit, rest[:12] if word.endswith(",") else rest[:1]))
    is_weekday = is_dated and len(word) <= 14 and word.startswith(_WEEKDAYS)
    return is_weekday or folded.startswith(_OPENINGS) or re.match(_DATE_AT_START, folded) is not None


def has_address(text: str) -> bool:
    return "@" in text and re.search(_ADDRESS, text) is not None


def has_date(text: str) -> bool:
    return re.search(_DATE, text) is not None


def has_time(text: str) -> bool:
    return re.search(_TIME, text) is not None


def _is_attribution(text: str, *, is_marked: bool) -> bool:
    if before := _before_closing_verb(text):
        if is_marked:
            return has_address(text) or re.search(_DAY, text) is not None or _opens_with_name(text)
        if has_address(text):
            return has_date(text) or has_time(text) or (_opens_with_name(text) and not opens_attribution(text.lower()))
        return has_date(text) and has_time(text) and _ends_in_name(before)
    if _find_inner_verb(text) >= 0:
        return is_marked or (
            has_address(text) and has_date(text) and re.search(_ENDS_IN_ADDRESS_OR_DATE, text) is not None
        )
    # A language that we do not know. In those that we know, what opens with a phrase has a verb.
    is_known = text.lower().startswith(_OPENINGS)
    return not is_known and has_date(text) and has_address(text) and re.search(_ENDS_IN_ADDRESS, text) is not None


def _ends_in_name(text: str) -> bool:
    """Whether a comma and a name end it, as programs write them: "On 5.1.2026 at 10:00 my son wrote:" is prose."""
    _, comma, name = text.rpartition(",")
    words = name.split()
    if not comma or not 0 < len(words) <= _MAX_NAME_WORDS:
        return False
    return all(_is_name_word(word, may_be_lower=len(words) == 1) for word in words)


def _before_closing_verb(text: str) -> str:
    """What stands before the verb that the text ends in; empty without one, or where somebody says "I wrote"."""
    stripped = text.rstrip(" :")
    folded = stripped.lower()
    if not folded.endswith(_VERBS):
        return ""
    length = max([len(verb) for verb in _VERBS if folded.endswith(verb)])
    before = stripped[: len(stripped) - length].rstrip()
    return "" if before.rpartition(" ")[2].lower() in _FIRST_PERSONS else before


def _find_inner_verb(text: str) -> int:
    """Where the first one stands; -1 without any, or where somebody says "I wrote" of himself."""
    folded = text.lower()
    start, verb = min([(start, verb) for verb in _INNER_VERBS if (start := folded.find(verb)) >= 0], default=(-1, ""))
    neighbours = {folded[:start].rpartition(" ")[2], folded[start + len(verb) :].partition(" ")[0]}
    return -1 if start >= 0 and neighbours & _FIRST_PERSONS else start


def _opens_with_name(text: str, *, is_marked: bool = False) -> bool:
    """Whether nothing but a name stands before the mail address or the verb."""
    before = text.partition("<")[0]
    may_be_lower = is_marked and before != text
    if before == text and (verb := _find_inner_verb(text)) >= 0:
        before = text[:verb]
    elif before == text:
        before = _before_closing_verb(text)
    words = before.split()
    return len(words) <= _MAX_NAME_WORDS and all(_is_name_word(word, may_be_lower=may_be_lower) for word in words)


def _is_name_word(word: str, *, may_be_lower: bool) -> bool:
    if "@" in word:
        return True
    is_sentence_end = word[-1] in "!?;:" or (word[-1] == "." and len(word) > _MAX_ABBREVIATION_CHARS)
    is_lower = word[0].islower() and not may_be_lower
    return not (is_lower or is_sentence_end or any(map(str.isdigit, word)))


def _find_inner_opening(joined: str, limit: int, *, is_marked: bool) -> int:
    """Where an attribution starts behind other text, before `limit`; 0 if none does. The last one counts."""
    starts = [match.start() for match in re.finditer(_INNER_OPENING, joined) if match.start() < limit]
    for start in reversed(starts[-_MAX_INNER_OPENINGS:]):
        rest = joined[start:]
        if has_date(rest) and (has_address(rest) or has_time(rest)) and _is_attribution(rest, is_marked=is_marked):
            return len(joined[:start].rstrip(" -")) if joined[:start].rstrip().endswith("--") else start
    return 0

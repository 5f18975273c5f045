"""Label each line of a body: freshly written, quoted from an earlier mail, or signature. Nothing is ever deleted.

A reader of lines, in linear time: each line is looked at once, and what spans lines looks at most eight ahead or
three back.

- Lines that start with ">" are quoted (RFC 3676 §4.5); what follows them is new again, for replies in between.
- An attribution ("On …, Jane wrote:", on up to four lines) is quoted. Where ">" lines follow, they end the quotation;
  where none do, the program marks nothing and everything to the end is quoted.
- After a divider ("-----Original Message-----", "Begin forwarded message:") or a block of header lines (From, Sent, To,
  Subject, as Outlook writes them, in any language of `quoting_words`) everything to the end is quoted.
- A signature starts at "-- " (RFC 3676 §4.3), also without the space, or at a program's own line ("Sent from my
  iPhone"), and ends at the next quotation. It needs something new above it: people also write below their phone's line.
"""

from __future__ import annotations

import re

from guarantee_email_agent.email.parsing.email import Span, SpanKind
from guarantee_email_agent.email.parsing.quoting_words import (
    ATTRIBUTION_OPENINGS,
    ATTRIBUTION_VERBS,
    DIVIDERS,
    FORWARD_LINES,
    HEADER_LABELS,
    PROGRAM_SIGNATURE_WORDS,
    PROGRAM_SIGNATURES,
    VERBS_BEFORE_NAME,
    WEEKDAYS,
)

# As text and not compiled, here and below: few mails need them, and `re` keeps what it compiled.
_ADDRESS = r"[^\s@<>]@[^\s@<>]"
_ENDS_IN_ADDRESS = r"@[^\s@<>]+[>)\]]{1,3} ?:$"
_YEAR = r"(?<!\d)(?:19|20)\d\d"
_TIME = r"(?<!\d)\d{1,2} ?[:.h] ?\d\d(?!\d)"
_NUMBER = r"\d{4}"
_MAX_ATTRIBUTION_CHARS = 600
_ATTRIBUTION_LINES = 4
_HEADER_BLOCK_LINES = 8
_MAX_PROGRAM_SIGNATURE_CHARS = 100
_MAX_SIGNATURE_LINES = 12  # below a "--" without its space, which people also draw as a rule


def label_spans(text: str) -> tuple[Span, ...]:
    """The body as labelled spans of whole lines, in order; their texts joined are the body. Empty for an empty body."""
    if not text:
        return ()
    lines = text.split("\n")
    kinds = _kinds(lines)
    if kinds is None:
        return (Span("new", text),)
    spans: list[Span] = []
    start = 0
    for end in range(1, len(lines) + 1):
        if end == len(lines) or kinds[end] != kinds[start]:
            joined = "\n".join(lines[start:end])
            spans.append(Span(kinds[start], joined if end == len(lines) else joined + "\n"))
            start = end
    # A last line that is empty is only the end of the line before it.
    return tuple([span for span in spans if span.text])


def _kinds(lines: list[str]) -> list[SpanKind] | None:
    """The kind of each line; None if all of them are new, as in almost every first mail."""
    kinds: list[SpanKind] | None = None
    current: SpanKind = "new"
    first_new: int | None = None
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped:
            if kinds is not None:
                kinds.append(current)
            continue
        quotation = _quotation(lines, number, stripped)
        if quotation is None:
            if first_new is not None and _starts_signature(lines, number, stripped):
                current = "signature"
            elif current == "quoted":
                current = "new"
            if first_new is None and current == "new":
                first_new = number
            if kinds is not None:
                kinds.append(current)
            elif current != "new":
                kinds = ["new"] * number
                kinds.append(current)
            continue
        first, to_the_end = quotation
        current = "quoted"
        if kinds is None:
            kinds = ["new"] * number
        kinds[first:] = [current] * (number + 1 - first)
        if first_new is not None and first_new >= first:
            first_new = None
        if to_the_end:
            return kinds + [current] * (len(lines) - len(kinds))
    return kinds


def _quotation(lines: list[str], number: int, stripped: str) -> tuple[int, bool] | None:
    """Where the quotation starts that this line shows (up to three lines back), and whether it goes to the end."""
    first, last = stripped[0], stripped[-1]
    if first == ">":
        return number, False
    if first in "-_*" and last in "-_*":
        if _is_divider(stripped):
            return number, True
        if first == "_" and not stripped.strip("_"):
            following = _next_line(lines, number + 1)
            return (number, True) if following is not None and _is_header_block(lines, following) else None
    if last == ":":
        if stripped.rstrip(" :").lower() in FORWARD_LINES:
            return number, True
        return _attribution(lines, number, stripped)
    if ":" in stripped:
        if _is_header_block(lines, number):
            return number, True
        if "@" in stripped and _is_attribution_with_text(stripped):
            return number, True
    return None


def _is_divider(stripped: str) -> bool:
    words = stripped.strip("-_* ")
    return len(words) < 50 and words.lower() in DIVIDERS and stripped[1] in "-_*" and stripped[-2] in "-_*"


def _attribution(lines: list[str], number: int, stripped: str) -> tuple[int, bool] | None:
    """An attribution that ends in this line: from which line, and whether nothing marks the quotation after it."""
    following = _next_line(lines, number + 1)
    is_marked = following is not None and lines[following].lstrip().startswith(">")
    joined, fallback = stripped.lower(), None
    for first in range(number, max(number - _ATTRIBUTION_LINES, -1), -1):
        if first < number:
            previous = lines[first].strip()
            if not previous or previous[0] == ">" or previous[-1] == ":":
                break
            joined = f"{previous.lower()} {joined}"
        if len(joined) > _MAX_ATTRIBUTION_CHARS:
            break
        has_address = "@" in joined and re.search(_ADDRESS, joined) is not None
        if joined.rstrip(" :").endswith(ATTRIBUTION_VERBS):
            is_sure = has_address or is_marked or bool(re.search(_YEAR, joined) and re.search(_TIME, joined))
        elif any(verb in joined for verb in VERBS_BEFORE_NAME):
            is_sure = has_address or is_marked
        else:  # a language we do not know: date, name, <address>:
            is_sure = has_address and bool(re.search(_ENDS_IN_ADDRESS, joined) and re.search(_YEAR, joined))
        if not is_sure:
            continue
        if _opens_attribution(joined):
            return first, not is_marked
        if fallback is None and (has_address or (is_marked and re.search(_TIME, joined))):
            fallback = first
    return None if fallback is None else (fallback, not is_marked)


def _opens_attribution(folded: str) -> bool:
    if folded.startswith(ATTRIBUTION_OPENINGS):
        return True
    word = folded.partition(" ")[0]
    return word.endswith(",") and len(word) <= 14 and word.startswith(WEEKDAYS)


def _is_attribution_with_text(stripped: str) -> bool:
    """Yahoo puts the earlier mail's text on the attribution's own line."""
    start = stripped[:_MAX_ATTRIBUTION_CHARS].lower()
    if not _opens_attribution(start):
        return False
    ends = [end for verb in ATTRIBUTION_VERBS if (end := start.find(f" {verb}:")) > 0]
    return bool(ends) and re.search(_ADDRESS, start[: min(ends)]) is not None


def _is_header_block(lines: list[str], number: int) -> bool:
    """Whether header lines start here: who it is from, then the date and at least one of recipient and subject."""
    if _meaning(lines[number]) != "from":
        return False
    meanings = {_meaning(line) for line in lines[number + 1 : number + _HEADER_BLOCK_LINES]}
    return "date" in meanings and ("to" in meanings or "subject" in meanings)


def _meaning(line: str) -> str | None:
    label, colon, _ = line[:40].partition(":")
    return HEADER_LABELS.get(label.strip(" \t*").lower()) if colon else None


def _starts_signature(lines: list[str], number: int, stripped: str) -> bool:
    if stripped in ("--", "\u2014"):
        return lines[number] == "-- " or _is_short_to_the_end(lines, number + 1)
    if len(stripped) > _MAX_PROGRAM_SIGNATURE_CHARS:
        return False
    folded = stripped.lower()
    if folded.partition(" ")[0] not in PROGRAM_SIGNATURE_WORDS or not folded.startswith(PROGRAM_SIGNATURES):
        return False
    if folded.startswith("von mein"):
        return folded.rstrip(".").endswith("gesendet")
    return re.search(_NUMBER, folded) is None  # what could hold a serial number is no boilerplate


def _is_short_to_the_end(lines: list[str], number: int) -> bool:
    """Whether at most a signature's worth of lines follows, up to the end or to quoted lines."""
    count = 0
    for line in lines[number : number + 4 * _MAX_SIGNATURE_LINES]:
        stripped = line.strip()
        if stripped.startswith(">"):
            return True
        count += bool(stripped)
        if count > _MAX_SIGNATURE_LINES:
            return False
    return True


def _next_line(lines: list[str], number: int) -> int | None:
    """The next line that is not empty, at most two empty ones further."""
    for following in range(number, min(number + 3, len(lines))):
        if lines[following].strip():
            return following
    return None

"""Label each line of a body: freshly written, quoted from an earlier mail, or signature. Nothing is ever deleted.

Line by line, in linear time: what spans lines reaches at most eight ahead or four back. In doubt a line is new.

- Lines that start with ">" are quoted (RFC 3676 §4.5); what follows them is new again, for replies in between.
- An attribution (`attributions`) is quoted, from the column where it starts. Where ">" lines follow, they end the
  quotation. Where none do, the program marks nothing and everything to the end is quoted, provided that something new
  stands above: else what follows may be the reply.
- After a divider ("-----Original Message-----", "Begin forwarded message:") or a block of header lines (From, Sent, To,
  Subject, as Outlook writes them) everything to the end is quoted. The labels of a web form are no such block.
- A signature starts at "-- " (RFC 3676 §4.3), also without the space, and ends at the next quotation; or it is a
  program's own paragraph ("Sent from my iPhone"). It needs something new above it.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple

from guarantee_email_agent.email.parsing.attributions import (
    find_attribution,
    has_address,
    has_date,
    has_time,
    is_attribution_between_dashes,
    is_attribution_with_text,
    is_attribution_without_colon,
)
from guarantee_email_agent.email.parsing.email import Span, SpanKind
from guarantee_email_agent.email.phrases import QuotationKey, phrases_of

_DIVIDERS = frozenset(phrases_of("dividers"))
_FORWARD_LINES = frozenset(phrases_of("forward lines"))
_LABEL_KEYS: tuple[QuotationKey, ...] = ("from", "date", "to", "subject", "other header", "form")
_HEADER_LABELS = {label: key for key in _LABEL_KEYS for label in phrases_of(key)}
_PROGRAM_SIGNATURES = phrases_of("signatures")
_FRAMED_SIGNATURES = [tuple(phrase.split(" … ")) for phrase in phrases_of("framed signatures")]
# Their first words, so that one look-up decides most lines.
_PROGRAM_SIGNATURE_WORDS = frozenset([signature.partition(" ")[0] for signature in _PROGRAM_SIGNATURES])

_SEPARATORS = ("--", "\u2014")
_RULE = "-_*="
# As text and not compiled: few mails need them, and `re` keeps what it compiled.
_SENTENCE_OR_NUMBER = r"[,:;!?]|\. |\d{4}"
_LABEL = r"\s*[^\W\d_][^:\n]{0,30}:(?!//)"
_ZONE = r"(?<!\d)[+-]\d{4}(?!\d)"
_LINK = r"<https?://[^\s<>]*>"
_HEADER_BLOCK_LINES = 8
_MAX_PROGRAM_SIGNATURE_CHARS = 100
_MAX_SIGNATURE_LINES = 12  # below a "--" without its space, which people also draw as a rule
_MAX_CLOSING_CHARS = 40  # of a line that only closes the bracket of an address, "> wrote:"


class _Quotation(NamedTuple):
    line: int
    extent: Literal["marked lines", "rest", "rest below new text"]
    column: int = 0


def label_spans(text: str) -> tuple[Span, ...]:
    """The body as labelled spans, in order; their texts joined are the body. Empty for an empty body."""
    if not text:
        return ()
    lines = text.split("\n")
    kinds, columns = _label_lines(lines)
    if kinds.count("new") == len(kinds):  # almost every first mail
        return (Span("new", text),)
    pieces: list[tuple[SpanKind, str]] = []
    for number, (kind, line) in enumerate(zip(kinds, lines, strict=True)):
        if column := columns.get(number):
            pieces.append(("new", line[:column]))
        pieces.append((kind, line[column:] if number == len(lines) - 1 else f"{line[column:]}\n"))
    runs = groupby(pieces, key=itemgetter(0))
    spans = [Span(kind, "".join([piece for _, piece in run])) for kind, run in runs]
    # A last line that is empty is only the end of the line before it.
    return tuple([span for span in spans if span.text])


def _label_lines(lines: list[str]) -> tuple[list[SpanKind], dict[int, int]]:
    """The kind of each line, and of the lines that are new up to a column and quoted from there, that column."""
    kinds: list[SpanKind] = []
    columns: dict[int, int] = {}
    current: SpanKind = "new"
    first_new: int | None = None
    separated = False  # the signature has been started by its separator, and not by a program's line
    for number, line in enumerate(lines):
        if stripped := line.strip():
            if quotation := _find_quotation(lines, number, stripped, current, first_new is not None):
                first = quotation.line
                current = "quoted"
                kinds[first:] = [current] * (number - first)
                if quotation.column:
                    columns[first] = quotation.column
                    first_new = first if first_new is None else first_new
                elif first_new is not None and first_new >= first:
                    first_new = None
                if quotation.extent == "rest" or (quotation.extent != "marked lines" and first_new is not None):
                    return kinds + [current] * (len(lines) - number), columns
            elif first_new is not None and _starts_signature(lines, number, stripped):
                current, separated = "signature", stripped in _SEPARATORS
            elif current == "quoted":
                current = "new"
            elif current == "signature" and not separated and not lines[number - 1].strip():
                current = "new"  # people write on below their phone's line
            if first_new is None and current == "new":
                first_new = number
        kinds.append(current)
    return kinds, columns


def _find_quotation(
    lines: list[str], number: int, stripped: str, current: SpanKind, has_new: bool
) -> _Quotation | None:
    """The quotation that this line marks. current: the kind of what stands above; has_new: whether any of it is new."""
    first, last = stripped[0], stripped[-1]
    if first == ">":
        return _find_marked(lines, number, stripped, current)
    if first in _RULE and last in _RULE:
        words = stripped.strip(f"{_RULE} ")
        if not words:
            following = _next_nonempty_line(lines, number + 1)
            is_block = following is not None and _is_header_block(lines, following, is_below_rule=True)
            return _Quotation(number, "rest") if is_block else None
        if words.lower() in _DIVIDERS:
            return _Quotation(number, "rest")
        if is_attribution_between_dashes(words):
            return _Quotation(number, "marked lines" if _is_marked(lines, number) else "rest below new text")
    if ":" in stripped and _is_header_block(lines, number) and (has_new or _is_apart(lines, number)):
        return _Quotation(number, "rest")
    if last in ":\u00ae" and stripped.rstrip(" :").lower() in _FORWARD_LINES:
        return _Quotation(number, "rest")
    if last == ":":
        return _find_quotation_by_attribution(lines, number)
    if "@" in stripped:
        is_marked = _is_marked(lines, number)
        if is_attribution_without_colon(stripped, is_marked=is_marked or _is_marked(lines, number, "|")):
            return _Quotation(number, "marked lines" if is_marked else "rest below new text")
        if has_new and ":" in stripped and is_attribution_with_text(stripped):
            return _Quotation(number, "rest")
    return None


def _find_marked(lines: list[str], number: int, stripped: str, current: SpanKind) -> _Quotation | None:
    if current != "quoted":
        if stripped.endswith("<<"):  # ">>> Order now <<<"
            return None
        if number and _ends_in_open_link(lines[number - 1]):  # "See <https://example.com\n> for more"
            return None
        # The line may only close the bracket of an attribution's address.
        may_close = stripped[-1] == ":" and len(stripped) <= _MAX_CLOSING_CHARS
        if may_close and (found := _find_quotation_by_attribution(lines, number)) and found.line < number:
            return found
    return _Quotation(number, "marked lines")


def _find_quotation_by_attribution(lines: list[str], number: int) -> _Quotation | None:
    is_marked = _is_marked(lines, number)
    attribution = find_attribution(lines, number, is_marked=is_marked)
    if attribution is None:
        return None
    line, column = attribution
    return _Quotation(line, "marked lines" if is_marked else "rest below new text", column)


def _is_marked(lines: list[str], number: int, mark: str = ">") -> bool:
    following = _next_nonempty_line(lines, number + 1)
    return following is not None and lines[following].lstrip().startswith(mark)


def _ends_in_open_link(line: str) -> bool:
    start = max(line.rfind("<"), line.rfind("("))
    rest = line[start:].rstrip()
    return start >= 0 and "://" in rest and not any(character in rest for character in ">) ")


def _is_header_block(lines: list[str], number: int, *, is_below_rule: bool = False) -> bool:
    """Whether header lines start here: sender, date, and recipient or subject; sender or date is the first.

    Unless a rule stands above, one holds a mail address or the time. Where another label follows, it is a form, or a
    list of the customer's. Two lines are enough where nothing else stands with them and the time has its zone.
    """
    first = _header_kind(lines[number])
    if first not in ("from", "date"):
        return False
    end = _block_end(lines, number)
    reach = number + _HEADER_BLOCK_LINES if first == "from" else end
    kinds = [_header_kind(line) for line in lines[number:reach]]
    if "form" in kinds or "date" not in kinds or _goes_on_as_form(lines[number:end], kinds):
        return False
    date = lines[number + kinds.index("date")]
    is_addressed = any(map(has_address, lines[number:reach]))
    if "from" in kinds and ("to" in kinds or "subject" in kinds):
        is_timed = has_time(date)
        return is_below_rule or (is_addressed or is_timed if first == "from" else is_addressed and is_timed)
    is_pair = end - number == 2 and ("from" in kinds or "to" in kinds)
    return is_pair and is_addressed and has_date(date) and has_time(date) and re.search(_ZONE, date) is not None


def _goes_on_as_form(block: list[str], kinds: list[QuotationKey | None]) -> bool:
    last = max(index for index, kind in enumerate(kinds[: len(block)]) if kind)
    return last + 1 < len(block) and re.match(_LABEL, block[last + 1]) is not None


def _is_apart(lines: list[str], number: int) -> bool:
    """Whether an empty line parts the header lines from what follows: without one it is a form with its answers."""
    end = _block_end(lines, number)
    return end < len(lines) and _header_kind(lines[end - 1]) is not None


def _block_end(lines: list[str], number: int) -> int:
    """The next empty line, or where a block of header lines must have ended."""
    stop = min(number + _HEADER_BLOCK_LINES, len(lines))
    return next((index for index in range(number, stop) if not lines[index].strip()), stop)


def _header_kind(line: str) -> QuotationKey | None:
    label, colon, _ = line[:40].partition(":")
    return _HEADER_LABELS.get(label.strip(" \t*").lower()) if colon else None


def _starts_signature(lines: list[str], number: int, stripped: str) -> bool:
    if stripped in _SEPARATORS:
        return lines[number] == "-- " or _is_short_to_the_end(lines, number + 1)
    if len(stripped) > _MAX_PROGRAM_SIGNATURE_CHARS:
        return False
    folded = stripped.lower()
    if folded.partition(" ")[0] not in _PROGRAM_SIGNATURE_WORDS or not folded.startswith(_PROGRAM_SIGNATURES):
        return False
    for start, end in _FRAMED_SIGNATURES:
        if folded.startswith(start):
            return folded.rstrip(".").endswith(end)
    # What goes on in a sentence is none ("Sent from my desk, is much easier"), nor what could hold a serial number.
    return re.search(_SENTENCE_OR_NUMBER, re.sub(_LINK, "", folded)) is None


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


def _next_nonempty_line(lines: list[str], number: int) -> int | None:
    """The next line that is not empty, at most two empty ones further."""
    return next((index for index in range(number, min(number + 3, len(lines))) if lines[index].strip()), None)

"""Text from mails, scenario files and services: made safe and short enough to show, and compared as words are.

How text is normalized, so that a serial number reads the same however it was typed or pasted:

- line ends (CR LF, CR, vertical tab, form feed, NEL, U+2028, U+2029) become LF; other control characters and lone
  surrogates become a space and U+FFFD;
- invisible characters (zero-width, soft hyphen, byte order mark, bidi controls, variation selectors, tag characters,
  Hangul fillers) are removed: they split words, and hide text from people but not from a language model;
- every Unicode space becomes a space; tabs stay;
- hyphens, the figure and en dash and the minus sign become "-"; the em dash stays, being punctuation;
- curly and low quotation marks become the straight ones;
- full-width forms, mathematical letters and Latin ligatures become the letters they stand for (NFKC);
- a letter followed by up to four combining accents is composed (NFC), so that "u" + U+0308 equals "ü".

NFKC is not applied to all text: it would turn "SN123²" into "SN1232". NFC is not either: Python's is quadratic in a run
of combining marks (1.2 s for 40,000 of them).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice
from math import floor, log10

# Python calls these unprintable, but languages and emoji need them: no-break and thin spaces, joiners, soft hyphen.
_HARMLESS = frozenset("\u00a0\u00ad\u2009\u200c\u200d\u202f\u3000")


def printable(text: str) -> str:
    """`text` on one line, with control characters (terminal escapes, line breaks, bidi overrides) written out."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in _HARMLESS
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def visible(text: str) -> str:
    """`text` with its line breaks, and with whatever else controls a terminal or a page written out."""
    return "\n".join(map(printable, text.replace("\r\n", "\n").replace("\t", "    ").split("\n")))


def truncate(text: str, max_chars: int) -> str:
    """`text`, or its first `max_chars` characters and an ellipsis."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"


def and_more(names: Sequence[str], most: int, count: int | None = None) -> str:
    """`a, b and 3 more`: at most so many. count: how many there are, where not all are given."""
    more = (len(names) if count is None else count) - most
    return f"{', '.join(names[:most])}{f' and {more} more' if more > 0 else ''}"


def head_and_tail(text: str, max_chars: int, missing: int = 0) -> str:
    """`text`, or both its ends and how much was left out between them. missing: what its middle lacks already."""
    if len(text) <= max_chars and not missing:
        return text
    half = min(max_chars, len(text)) // 2
    left_out = len(text) - 2 * half + missing
    return f"{text[:half]}\n[… {left_out} characters left out …]\n{text[-half:]}"


def end_sentence(text: str) -> str:
    """`text` with a full stop, where it does not end in a sign of its own; a suggestion is a question."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def duration(seconds: float) -> str:
    """Rounded to one unit: `45 s`, `4 min`, `3 h`, `2 days`."""
    seconds = max(seconds, 0.0)
    for limit, unit, size in ((100.0, "s", 1.0), (6000.0, "min", 60.0), (48 * 3600.0, "h", 3600.0)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400.0:.0f} days"


def time_taken(milliseconds: float) -> str:
    """As exact as it is short: `0.02 ms`, `4.1 ms`, `15 ms`, `1.2 s`, `12 min`."""
    if milliseconds < 1_000:
        return f"{milliseconds:.{2 if milliseconds < 1 else 1 if milliseconds < 10 else 0}f} ms"
    return f"{milliseconds / 1000:,.1f} s" if milliseconds < 600_000 else f"{milliseconds / 60_000:,.0f} min"


def amount(usd: float) -> str:
    """US dollars to the hundredth of a cent, and to two digits where it is less, which is not nothing: `0.000025`."""
    return f"{usd:.{1 - floor(log10(usd)) if 0 < usd < 1e-4 else 4}f}"


def cost_text(usd: float | None) -> str:
    """For people: `$0.0042`, or that it is not known."""
    return "cost not known" if usd is None else f"${amount(usd)}"


def word_key(word: str) -> str:
    """Two spellings of one word have one key: `In transit`, `in-transit` and `IN_TRANSIT`."""
    return word.strip().casefold().replace(" ", "_").replace("-", "_")


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HYPHENS = "\u2010-\u2013\u2212\ufe58\ufe63\uff0d"
_SINGLE_QUOTES = "\u2018-\u201b\u02bc\u00b4"
_DOUBLE_QUOTES = "\u201c-\u201f\u00ab\u00bb"
_COMPATIBILITY = "\ufb00-\ufb06\uff01-\uff0c\uff0e-\uff5e\U0001d400-\U0001d7ff"
_SURROGATES = "\ud800-\udfff"

# As text and not compiled: most mails are plain ASCII, and `re` keeps what it compiled.
_QUOTES = _SINGLE_QUOTES + _DOUBLE_QUOTES
_UNUSUAL = f"[\x80-\x9f\u2028\u2029{_SPACES}{_INVISIBLE}{_HYPHENS}{_QUOTES}{_COMPATIBILITY}{_SURROGATES}]"
_ANY_INVISIBLE = f"[{_INVISIBLE}]"
_ANY_CONTROL = f"[\x00-\x1f\x7f-\x9f\u2028\u2029{_SURROGATES}]"
_ACCENT = "[\u0300-\u036f]"
_ACCENTED = "[^\\W\\d_][\u0300-\u036f]{1,4}"
_MAY_COMPOSE = "[\u0300-\u1fff\u2126-\U0010ffff]"
_MANY_MARKS = r"[^\w\s\x00-\x7f]{31,}"
_UNSEEN_CONTROL = "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
_RUN_OF_MARKS = r"(?:[*_`]|~~)++"
_EMPHASIS = (
    rf"(?<![^\W_])(?<![*_`~]){_RUN_OF_MARKS}(?=[^\s*_`~])|(?<=[^\s*_`~]){_RUN_OF_MARKS}(?![^\W_])"
    r"|(?<=[^\W\d_])\*+(?=[^\W\d_])"
)
_PLAIN = (
    (_SPACES, " "),
    (_HYPHENS, "-"),
    (_SINGLE_QUOTES, "'"),
    (_DOUBLE_QUOTES, '"'),
    (_LINE_ENDS, "\n"),
    (_INVISIBLE, ""),
    (_SURROGATES, "\ufffd"),
)


def normalize_text(text: str) -> str:
    """The text by the rule above. Linear in its length; ASCII without control characters comes back as it is."""
    if _CONTROL.search(text):
        text = _CONTROL.sub(lambda match: _replacement(match[0]), text.replace("\r\n", "\n").replace("\r", "\n"))
    if text.isascii():
        return text
    text = re.sub(_UNUSUAL, lambda match: _replacement(match[0]), text)
    return re.sub(_ACCENTED, _compose, text) if re.search(_ACCENT, text) else text


@lru_cache(maxsize=256)  # scenarios share most phrases, and each check asks for the same reply
def normalize_phrase(text: str, *, keep_emphasis: bool = False) -> str:
    """Text as phrases are compared: by the rule above and as people see it.

    Case is folded, every run of white space is one space, each dash a hyphen; control characters are left out, and
    so are Markdown's marks of emphasis beside a word, unless `keep_emphasis`. All is composed (NFC).
    """
    if not text.isprintable():
        text = re.sub(_UNSEEN_CONTROL, "", text)
    text = normalize_text(text)
    if not text.isascii():
        text = _compose_all(text.replace("\u2014", "-").replace("\u2015", "-"))
    if not keep_emphasis and _has_marks(text):
        text = re.sub(_EMPHASIS, "", text)
    words = " ".join(text.split())
    if words:
        before = " " if text[0].isspace() else ""
        after = " " if text[-1].isspace() else ""
        words = f"{before}{words}{after}"
    return words.casefold()


def has_phrase(phrase: str, text: str) -> bool:
    """Whether a phrase stands in a text, as phrases are compared."""
    wanted = normalize_phrase(phrase)
    if wanted in normalize_phrase(text):
        return True
    if not _has_marks(wanted):
        return False
    # Who asks for the marks themselves, as in `**`, finds them.
    return normalize_phrase(phrase, keep_emphasis=True) in normalize_phrase(text, keep_emphasis=True)


def _has_marks(text: str) -> bool:
    return "*" in text or "_" in text or "`" in text or "~" in text


def has_letters(text: str, least: int) -> bool:
    """Whether a text has so many letters; no more of it is read than that takes."""
    return next(islice(filter(str.isalpha, text), least - 1, None), None) is not None


def strip_invisible(text: str) -> str:
    """The text without the invisible characters of the rule above, otherwise as it is."""
    return text if text.isascii() else re.sub(_ANY_INVISIBLE, "", text)


def replace_controls(text: str) -> str:
    """The text on one line: each control character, line ends among them, is a space; stripped; otherwise as it is."""
    return text.strip() if text.isascii() and text.isprintable() else re.sub(_ANY_CONTROL, " ", text).strip()


def normalize_line(text: str, limit: int) -> str:
    """The text by the rule above, every run of white space one space, at most `limit` characters."""
    # Twice the limit leaves room for what the clean-up removes, and bounds its work.
    return " ".join(normalize_text(text[: 2 * limit]).split())[:limit].rstrip()


def normalize_file_name(path: str, limit: int) -> str:
    """The last part of a path, with slashes of either kind, as one line."""
    return normalize_line(path.replace("\\", "/").rpartition("/")[2], limit)


@cache
def _replacement(character: str) -> str:
    for characters, plain in _PLAIN:
        if re.match(f"[{characters}]", character):
            return plain
    if character < "\xa0":
        return " "
    import unicodedata  # a megabyte of tables that plain mails never need

    return unicodedata.normalize("NFKC", character)


def _compose(match: re.Match[str]) -> str:
    import unicodedata  # as above

    return unicodedata.normalize("NFC", match[0])


def _compose_all(text: str) -> str:
    if not re.search(_MAY_COMPOSE, text):
        return text
    from unicodedata import combining, normalize  # as above

    # No writing has so many marks on one letter, and NFC is quadratic in them.
    return normalize("NFC", re.sub(_MANY_MARKS, lambda run: "".join(c for c in run[0] if not combining(c)), text))

"""Text from mails, scenario files and services: made safe and short enough to show, and compared as words are."""

from __future__ import annotations

from collections.abc import Sequence

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


def word_key(word: str) -> str:
    """Two spellings of one word have one key: `In transit`, `in-transit` and `IN_TRANSIT`."""
    return word.strip().casefold().replace(" ", "_").replace("-", "_")

"""Text from mails and scenario files, made safe for a terminal and a log line."""

from __future__ import annotations

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

"""Results for people on a text stream: coloured lines, and plain ASCII where the encoding lacks the signs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from guarantee_email_agent.utils.text import printable

_SIGNS: Final = "✓✗⚠️🎉≥"
_IN_ASCII: Final = str.maketrans({"✓": "[PASS]", "✗": "[FAIL]", "🎉": "[PASS]", "≥": ">=", "…": "...", "–": "-"})
_GREEN, _RED, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[0m"
_COLOR: Final = re.compile(r"(\x1b\[(?:32|31|0)m)")


class TextStream(Protocol):
    """What is needed of a text stream."""

    @property
    def encoding(self) -> str | None: ...
    def isatty(self) -> bool: ...
    def write(self, text: str, /) -> object: ...
    def flush(self) -> None: ...


class Terminal:
    """Writes lines to a stream as it can show them. `ascii`: whether signs are written as words, `[PASS]` for ✓."""

    def __init__(self, stream: TextStream, *, color: bool | None = None, ascii_only: bool | None = None) -> None:
        """color, ascii_only: found out from the stream if None."""
        self._stream = stream
        self._color = _wants_color(stream) if color is None else color
        encoding = getattr(stream, "encoding", None) or "utf-8"
        self.ascii = not _can_encode(_SIGNS, encoding) if ascii_only is None else ascii_only
        self._encoding = "ascii" if ascii_only else encoding if self.ascii else None

    def line(self, text: str) -> None:
        """Writes `text` as one line, in which nothing but our colours controls a terminal."""
        if not text.isprintable():
            parts = _COLOR.split(text) if self._color else [text]
            parts[::2] = map(printable, parts[::2])
            text = "".join(parts)
        if self.ascii:
            text = text.translate(_IN_ASCII)
        if self._encoding is not None:
            text = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        self._stream.write(f"{text}\n")

    def flush(self) -> None:
        self._stream.flush()

    def outcome(self, text: str, paint: bool = True) -> None:
        """Writes lines of text whose first sign tells good from bad, in green or red; only the first is painted."""
        first, *rest = text.split("\n")
        if paint:
            first = self.red(first) if text[0] == "✗" else self.green(first)
        for line in (first, *rest):
            self.line(line)

    def green(self, text: str) -> str:
        return f"{_GREEN}{text}{_RESET}" if self._color else text

    def red(self, text: str) -> str:
        return f"{_RED}{text}{_RESET}" if self._color else text


def format_outcome(name: str, description: str, failures: Iterable[str], harm: Sequence[str], passed: bool) -> str:
    """`✓ name: description`, or `✗ name: description - FAILED` and the failures and harm, indented by four."""
    title = f"{printable(name)}: {printable(' '.join(description.split()))}"
    if passed:
        return f"✓ {title}"
    texts = [*failures, *([f"harmful: {'; '.join(harm)}"] if harm else [])]
    lines = [f"    {printable(line)}" for text in texts for line in text.split("\n")]
    return "\n".join([f"✗ {title} - FAILED", *lines])


def warn_on_stderr(message: str) -> None:
    """One line, for what is no result and must not be missed, whatever the log shows."""
    sys.stderr.write(f"WARNING {printable(message)}\n")
    sys.stderr.flush()


def pluralize(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _wants_color(stream: TextStream) -> bool:
    """https://no-color.org: any value but the empty one turns colours off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True

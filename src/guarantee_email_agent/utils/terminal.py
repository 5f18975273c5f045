"""Results for people on a text stream: coloured lines, and plain ASCII where the encoding lacks the signs."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from guarantee_email_agent.utils.text import duration, printable

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


_CLEAR_LINE: Final = "\r\x1b[K"
_REDRAW_S: Final = 0.1
_PLAIN_LINE_S: Final = 5.0
_RATE_AFTER_S: Final = 1.0
_DEFAULT_COLUMNS: Final = 80


class Progress:
    """Counts up, with the rate and what is left by it. Where the stream fails it is silent, and the run goes on.

    Only counts, ids and names of checks are shown: what a mail says stands in no progress line.
    """

    def __init__(
        self,
        stream: TextStream,
        total: int,
        what: str,
        *,
        detail: Callable[[], str] = str,
        quiet_s: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """what: what is counted, such as "judged". detail: what stands at the end of the line, empty for nothing.

        quiet_s: seconds in which nothing is shown, for runs that are mostly over by then.
        """
        self._stream: TextStream | None = stream
        self._redraws = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._terminal = Terminal(stream)
        self._total, self._what, self._detail = total, what, detail
        self._monotonic = monotonic
        self._began = monotonic()
        self._shown_at = self._began + quiet_s - (_REDRAW_S if self._redraws else 0.0)
        self._visible = False
        self._first = self._done = self._failed = 0

    def skip(self, done: int) -> None:
        """Counts what was done before the run went on, and says nothing of its speed."""
        self._first = self._done = done

    def show(self, done: int, failed: int = 0) -> None:
        """Writes the counts where it is time to. They never go back: results may be told later than they are known."""
        self._done, self._failed = max(self._done, done), max(self._failed, failed)
        self.refresh()

    def count(self, *, passed: bool) -> None:
        """One more is done."""
        self.show(self._done + 1, self._failed + (not passed))

    def refresh(self) -> None:
        """Writes the line where it is time to: ten times a second on a terminal, else every five seconds."""
        now = self._monotonic()
        if self._stream is None or now - self._shown_at < (_REDRAW_S if self._redraws else _PLAIN_LINE_S):
            return
        self._shown_at = now
        text = printable(self._text(now - self._began))
        if self._redraws:
            self._visible = True
            self._write(f"{_CLEAR_LINE}{text[: self._columns() - 1]}")
        else:
            self._write(f"{text}\n")

    def announce(self, text: str) -> None:
        """Writes a line that stays, above the one that counts; a ✗ at its beginning makes it red."""
        self.clear()
        try:
            if self._stream is not None:
                self._terminal.outcome(text, paint=text.startswith("✗"))
                self._terminal.flush()
        except (OSError, ValueError):
            self._stream = None

    def clear(self) -> None:
        """Takes the line away, to be called before anything else is written."""
        if self._visible:
            self._visible = False
            self._write(_CLEAR_LINE)

    def _text(self, elapsed_s: float) -> str:
        parts = [f"{self._done}/{self._total} {self._what}"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if (new := self._done - self._first) > 0 and elapsed_s >= _RATE_AFTER_S:
            rate = new / elapsed_s
            parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
            parts.append(f"about {duration((self._total - self._done) / rate)} left")
        if detail := self._detail():
            parts.append(detail)
        return ", ".join(parts)

    def _columns(self) -> int:
        """Of the terminal now, which may have been resized."""
        stream: Any = self._stream
        try:
            return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_COLUMNS
        except (AttributeError, OSError, ValueError):
            return _DEFAULT_COLUMNS

    def _write(self, text: str) -> None:
        try:
            if self._stream is not None:
                self._stream.write(text)
                self._stream.flush()
        except (OSError, ValueError):  # its reader has gone, or it was closed
            self._stream = None

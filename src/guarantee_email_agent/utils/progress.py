"""How far a run has come, on stderr: one line that is drawn anew on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from guarantee_email_agent.utils.terminal import Terminal, TextStream
from guarantee_email_agent.utils.text import duration, printable

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
            parts += [_rate(rate), f"about {duration((self._total - self._done) / rate)} left"]
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


def _rate(per_second: float) -> str:
    return f"{per_second:.1f}/s" if per_second >= 1 else f"{per_second * 60:.1f}/min"

"""What a command printed, as much of it as is worth keeping."""

from __future__ import annotations

from typing import Final

KEPT_BYTES: Final = 1 << 20
"""Of what a command prints, this much of the beginning and as much of the end is kept."""
SHOWN_CHARACTERS: Final = 30_000
"""How much of it a reply shows, unless all of it is asked for."""


class CapturedOutput:
    """The beginning and the end of a stream that may be endless."""

    __slots__ = ("_end", "_start", "total")

    def __init__(self) -> None:
        self._start = bytearray()
        self._end = bytearray()
        self.total = 0

    def clear(self) -> None:
        self._start.clear()
        self._end.clear()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = KEPT_BYTES - len(self._start)
        if room > 0:
            self._start += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._end += chunk
            if len(self._end) > 2 * KEPT_BYTES:
                del self._end[:-KEPT_BYTES]

    def whole(self) -> bytes | None:
        """All of it; None where something was left out."""
        data = bytes(self._start + self._end)
        return data if len(data) == self.total else None

    def text_from(self, offset: int) -> str:
        """What came after so many bytes, as far as it was kept."""
        kept = bytes(self._end[-KEPT_BYTES:])
        lost = self.total - len(self._start) - len(kept)
        place = max(offset - len(self._start) - lost, 0)
        return _decoded(bytes(self._start[max(offset, 0) :]) + kept[place:])

    def text(self, *, shortened: bool = True) -> str:
        """Without line ends at the end, as a terminal's content has none."""
        end = self._end[-KEPT_BYTES:]
        lost = self.total - len(self._start) - len(end)
        if lost:
            text = f"{_decoded(self._start)}\n[… {lost} bytes left out …]\n{_decoded(end)}"
        else:
            text = _decoded(self._start + end)
        text = text.rstrip("\n")
        return shorten(text) if shortened else text


def shorten(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """The beginning and the end of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")

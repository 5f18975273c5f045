"""A company's own formats of numbers, and how customers spell them: `kt 77120 9` and `KT771209` for `KT-77120-9`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# An escape, a class of characters, or any sign; and whether it is repeated.
_PIECE: Final = re.compile(r"(?P<piece>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)(?P<repeat>\{?)", re.DOTALL)
_JOINTS: Final = {joint: joint for joint in "-/_"} | {rf"\{joint}": joint for joint in "-/._"}
_ANY_JOINT: Final = "[-/._]?"
_VARIABLE: Final = re.compile(r"[?*+]|\{[0-9]*,|\\[1-9]")
"""What makes the length of numbers vary: without their joints, such a pattern could be searched for long."""
_LETTER: Final = re.compile(r"[A-Z]", re.IGNORECASE)


class NumberPattern:
    """One format. source: checked when the configuration was read."""

    def __init__(self, source: str) -> None:
        self.strict = re.compile(f"(?:{source})", re.IGNORECASE)
        self._joints: list[str] = []
        self._loose: re.Pattern[str] | None = None
        if not _VARIABLE.search(source.replace("(?:", "(")):
            self._loose = re.compile(_PIECE.sub(self._loosen, source), re.IGNORECASE)

    def canonical(self, written: str, *, any_joints: bool) -> str | None:
        """A number as the format has it; None for one that has not the format.

        any_joints: whether it may have others than the format, or none. Digits alone may not: they could be a phone's.
        """
        if self.strict.fullmatch(written):
            return written
        loose = self._loose if any_joints and _LETTER.search(written) else None
        match = loose.fullmatch(written) if loose else None
        if match is None:
            return None
        number, position = "", 0
        for index, joint in enumerate(self._joints):
            start, end = match.span(f"joint{index}")
            if start >= 0:  # of the alternative that fits
                number += written[position:start] + joint
                position = end
        number += written[position:]
        return number if self.strict.fullmatch(number) else None

    def _loosen(self, match: re.Match[str]) -> str:
        joint = _JOINTS.get(match["piece"])
        if joint is None or match["repeat"]:
            return match[0]
        self._joints.append(joint)
        return f"(?P<joint{len(self._joints) - 1}>{_ANY_JOINT})"


@lru_cache(maxsize=64)
def number_patterns(sources: tuple[str, ...]) -> tuple[NumberPattern, ...]:
    return tuple(map(NumberPattern, sources))

"""A fault that can be planted: one place of a file with other text in it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Fault:
    """One place of a file with other text in it. `start` and `end` are offsets in characters."""

    file: str
    operator: str
    start: int
    end: int
    replacement: str
    line: int
    before: str
    after: str
    occurrence: int = 0

    @property
    def key(self) -> str:
        """The same as long as the line is, wherever it moves."""
        parts = (self.file, self.operator, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def planted_in(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


def fault_in(name: str, text: str, operator: str, start: int, end: int, replacement: str) -> Fault:
    """The fault that puts `replacement` in place of `text[start:end]`; name: the file's."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    last = len(text) if last < 0 else last
    before, after = text[first:last], text[first:start] + replacement + text[end:last]
    line = text.count("\n", 0, start) + 1
    return Fault(name, operator, start, end, replacement, line, before.strip(), after.strip())


def distinct(faults: Iterable[Fault]) -> list[Fault]:
    """Each once, equal lines of a file told apart by their `occurrence`."""
    seen: Counter[str] = Counter()
    numbered = []
    for fault in dict.fromkeys(faults):
        numbered.append(replace(fault, occurrence=seen[fault.key]))
        seen[fault.key] += 1
    return numbered

"""The paths of a suite's files, packed, so that a million of them take 40 MB and not 200."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Self, overload

_SORTED_AT_ONCE: Final = 1 << 16
_SEPARATOR: Final = b"\0"  # which is in no path


class ScenarioFiles(Sequence[str]):
    """Files of a folder and those below it in the byte order of their paths; each is an object only once asked for."""

    __slots__ = ("_by_stem", "_ends", "_folder", "_names")

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        """names: paths within the folder, in any order, each once."""
        self._folder = folder
        self._by_stem: dict[bytes, int] | None = None
        encoded = map(os.fsencode, names)
        runs: list[bytes] = []
        while batch := sorted(islice(encoded, _SORTED_AT_ONCE)):
            runs.append(_SEPARATOR.join(batch))
        self._names: bytes | bytearray = runs[0] if len(runs) == 1 else _merged(runs)
        self._ends = array("Q")
        end = self._names.find(_SEPARATOR)
        while end != -1:
            self._ends.append(end)
            end = self._names.find(_SEPARATOR, end + 1)
        if self._names:
            self._ends.append(len(self._names))

    @classmethod
    def of(cls, files: Iterable[str]) -> Self:
        """Of whole paths."""
        return cls("", files)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        return map(self._path, map(self._name, range(len(self))))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._path(self._name(index % len(self)))

    def position(self, file: str) -> int:
        """Of one of these files, from 1; 0 for any other."""
        name = os.fsencode(file[len(os.path.join(self._folder, "")) :] if self._folder else file)
        index = bisect_left(range(len(self)), name, key=self._name)
        return index + 1 if index < len(self) and self[index] == file else 0

    def position_of_name(self, name: str) -> int:
        """Of the file of that name without its ending, from 1; 0 for none."""
        if b"/" in self._names:
            return self._positions_by_stem().get(os.fsencode(name), 0)
        beginning = os.fsencode(name) + b"."
        index = bisect_left(range(len(self)), beginning, key=self._name)
        while index < len(self) and (found := self._name(index)).startswith(beginning):
            if b"." not in found[len(beginning) :]:
                return index + 1
            index += 1
        return 0

    def twice(self) -> frozenset[str]:
        """The names without ending that several files have, in different folders."""
        if b"/" not in self._names or len(self._positions_by_stem()) == len(self):
            return frozenset()
        counts = Counter(map(_stem, map(self._name, range(len(self)))))
        return frozenset(os.fsdecode(stem) for stem, count in counts.items() if count > 1)

    def _positions_by_stem(self) -> dict[bytes, int]:
        if self._by_stem is None:
            self._by_stem = {}
            for index in range(len(self)):
                self._by_stem.setdefault(_stem(self._name(index)), index + 1)
        return self._by_stem

    def _name(self, index: int) -> bytes:
        return bytes(self._names[self._ends[index - 1] + 1 if index else 0 : self._ends[index]])

    def _path(self, name: bytes) -> str:
        return os.path.join(self._folder, os.fsdecode(name))


def _stem(name: bytes) -> bytes:
    return name.rpartition(b"/")[2].rpartition(b".")[0]


def _merged(runs: Iterable[bytes]) -> bytearray:
    """Sorted runs as one, without an object for each name at a time."""
    from heapq import merge  # few suites have so many files

    names = bytearray()
    for name in merge(*map(_split, runs)):
        names += name
        names += _SEPARATOR
    del names[-1:]
    return names


def _split(run: bytes) -> Iterator[bytes]:
    start = 0
    while (end := run.find(_SEPARATOR, start)) != -1:
        yield run[start:end]
        start = end + 1
    yield run[start:]

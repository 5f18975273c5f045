"""The paths of a suite's files, packed, so that a million of them take 40 MB and not 200."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, Self, overload

_SORTED_AT_ONCE: Final = 1 << 16
_SEPARATOR: Final = b"/"  # which is in no name


class ScenarioFiles(Sequence[str]):
    """Files of one folder in the byte order of their names; a path is an object only once somebody asks for it."""

    __slots__ = ("_ends", "_folder", "_names")

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        """names: in any order, each once."""
        self._folder = folder
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
        """Of paths, all of which are in one folder."""
        paths = iter(files)
        first = list(islice(paths, 1))
        return cls(os.path.dirname(first[0]) if first else "", map(os.path.basename, chain(first, paths)))

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
        name = os.fsencode(os.path.basename(file))
        index = bisect_left(range(len(self)), name, key=self._name)
        return index + 1 if index < len(self) and self[index] == file else 0

    def position_of_name(self, name: str) -> int:
        """Of the file of that name without its ending, from 1; 0 for none."""
        beginning = os.fsencode(name) + b"."
        index = bisect_left(range(len(self)), beginning, key=self._name)
        while index < len(self) and (found := self._name(index)).startswith(beginning):
            if b"." not in found[len(beginning) :]:
                return index + 1
            index += 1
        return 0

    def _name(self, index: int) -> bytes:
        return bytes(self._names[self._ends[index - 1] + 1 if index else 0 : self._ends[index]])

    def _path(self, name: bytes) -> str:
        return os.path.join(self._folder, os.fsdecode(name))


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

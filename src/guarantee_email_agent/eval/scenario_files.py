"""The paths of a suite's files in the order of its runs: the byte order of the paths."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

path_order = os.fsencode


def position_in(files: Sequence[str], file: str | None) -> int:
    """Of one of the files, from 1; 0 for any other."""
    index = bisect_left(files, path_order(file or ""), key=path_order)
    return index + 1 if index < len(files) and files[index] == file else 0


def names_twice(files: Sequence[str]) -> frozenset[str]:
    """The names without ending that several files have, in different folders."""
    return frozenset(name for name, count in Counter(map(stem, files)).items() if count > 1)


def stem(file: str) -> str:
    """A scenario's id, by its file."""
    return os.path.basename(file).rpartition(".")[0]

"""The results of a run until its reports are written: in memory, and those of a large run in a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Final, Generic, Protocol, TypeVar

from guarantee_email_agent.utils.errors import ConfigurationError

IN_MEMORY: Final = 2_000
"""Results of which a run has more go to a file: by then they would take some 20 MB, and no end of it is known."""

_BLOCK: Final = 250
_LEVEL: Final = 1  # half of the bytes for a tenth of the time that a result takes

_Result = TypeVar("_Result")
_Read = TypeVar("_Read", covariant=True)
_Made = TypeVar("_Made")


class Results(Protocol[_Read]):
    """As many results as a run had, in its order, to be gone through any number of times."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[_Read]: ...


class KeptResults(Generic[_Result]):
    """Takes results as they come. Its file has no name, so that nothing of it outlasts the process."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        """in_memory: how many results are held as they are."""
        self._in_memory = in_memory
        self._latest: list[_Result] = []
        self._count = 0
        self._file: IO[bytes] | None = None
        self._blocks: list[int] = []
        self._problem: str | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, result: _Result) -> None:
        """Keep one more. A disk that takes no more ends no run: only who reads the results is told."""
        self._count += 1
        if self._problem is not None:
            return
        self._latest.append(result)
        if len(self._latest) >= (self._in_memory if self._file is None else _BLOCK):
            try:
                self._write()
            except OSError as error:
                self._problem = error.strerror or str(error)
                self.close()

    def __iter__(self) -> Iterator[_Result]:
        """Raises ConfigurationError where they could not be kept."""
        if self._problem is not None:
            problem = f"The results of this run cannot be kept for its reports ({self._problem})"
            remedy = "Make room in the temporary folder, or name another in TMPDIR. The run store has them all"
            raise ConfigurationError(f"{problem}. {remedy}", "report_no_room")
        if self._file is not None:
            import pickle
            import zlib

            at = 0
            for size in self._blocks:
                self._file.seek(at)
                at += size
                # Nobody else can have written to a file without a name.
                yield from pickle.loads(zlib.decompress(self._file.read(size)))  # noqa: S301
        yield from self._latest

    def close(self) -> None:
        """Nothing more is read."""
        self._latest.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self) -> None:
        import pickle  # only a large run needs them
        import tempfile
        import zlib

        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it is read as long as we are
        for start in range(0, len(self._latest), _BLOCK):
            block = zlib.compress(pickle.dumps(self._latest[start : start + _BLOCK], protocol=5), _LEVEL)
            self._file.write(block)
            self._blocks.append(len(block))
        self._latest.clear()


class Mapped(Generic[_Result, _Made]):
    """What is made of each result, made anew each time that it is gone through."""

    def __init__(self, results: Results[_Result], make: Callable[[_Result], _Made]) -> None:
        self._results, self._make = results, make

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[_Made]:
        return map(self._make, self._results)


def mapped(results: Results[_Result], make: Callable[[_Result], _Made]) -> Results[_Made]:
    """What is made of each result: at once where there are few, else as it is asked for."""
    return [make(result) for result in results] if len(results) <= IN_MEMORY else Mapped(results, make)

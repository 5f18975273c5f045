"""Records for judges on other machines: tasks and records go there, verdicts come back."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from guarantee_email_agent.executors.executor import Executor, chunk_size
from guarantee_email_agent.executors.file_bundle import FileBundle, Unpacked, unpacked
from guarantee_email_agent.judging.pending import Pending, Terms, ToJudge
from guarantee_email_agent.judging.record import RECORD_DIR, Record
from guarantee_email_agent.judging.record_files import RecordPlace
from guarantee_email_agent.judging.task import OUTPUTS_ENDING, load_task
from guarantee_email_agent.judging.verdict import Graded, Verdict

MAX_CHUNK: Final = 8
"""Records handed over at a time: a judge may take a minute."""


class _Place(NamedTuple):
    """Of a task's directory, and a record; None where the judge itself is looked at."""

    directory: str
    record: Record | None


class _Chunk(NamedTuple):
    """graded: with verdicts, those that are still to come without one."""

    pending: tuple[tuple[Graded, _Place | None], ...]
    bundle: FileBundle


@dataclass(frozen=True, slots=True)
class ShippedJudges:
    """The work on a chunk."""

    terms: Terms

    def __call__(self, chunk: _Chunk) -> list[Graded]:
        with unpacked(chunk.bundle) as copies:
            return [
                graded if place is None else replace(graded, verdict=self._verdict(place, copies))
                for graded, place in chunk.pending
            ]

    def _verdict(self, place: _Place, copies: Unpacked) -> Verdict:
        record = place.record
        if record is not None and isinstance(folder := record.get(RECORD_DIR), str) and os.path.isabs(folder):
            record = {**record, RECORD_DIR: str(copies.path(folder))}
        task = load_task(copies.path(place.directory))
        return with_original_paths(ToJudge(task, record).verdict(self.terms), copies)


def with_original_paths(verdict: Verdict, copies: Unpacked) -> Verdict:
    """A verdict that names files as they are called where they came from."""
    said: dict[str, Any] = {"feedback": verdict.feedback, "details": dict(verdict.details)}
    said |= {"error": verdict.error, "output": verdict.output}
    return replace(verdict, **copies.with_original_paths(said))


def map_shipped(
    terms: Terms, executor: Executor, pending: Iterator[Pending], count: int
) -> Generator[Graded, None, None]:
    """The verdicts, in order. count: how many there will be. Raises ConfigurationError for what cannot be sent."""
    size = chunk_size(count, executor.slots, MAX_CHUNK)
    places: deque[RecordPlace | None] = deque()  # where a record lies is of no use elsewhere
    for chunk in executor.map_in_order(ShippedJudges(terms), _chunks(pending, size, places)):
        for graded in chunk:
            yield replace(graded, place=places.popleft())


def _chunks(pending: Iterator[Pending], size: int, places: deque[RecordPlace | None]) -> Iterator[_Chunk]:
    """places: gets that of each."""
    while some := list(islice(pending, size)):
        places.extend(each.place for each in some)
        found: list[tuple[Graded, _Place | None]] = []
        needed: dict[str, None] = {}
        for each in some:
            what = each.find()
            if isinstance(what, Verdict):
                found.append((replace(each.graded(what), place=None), None))
                continue
            directory = os.path.abspath(what.task.directory)
            needed[directory] = None
            if what.record is not None and isinstance(folder := what.record.get(RECORD_DIR), str):
                needed[os.path.join(folder, f"{each.task_name}{OUTPUTS_ENDING}")] = None
            found.append((replace(each.graded(Verdict("error")), place=None), _Place(directory, what.record)))
        yield _Chunk(tuple(found), FileBundle.of(needed))

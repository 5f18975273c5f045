"""The record behind a kept verdict: the run store says where it lies and what was in it, and it is read when shown."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent import judging
from guarantee_email_agent.judging.record import RECORD_DIR
from guarantee_email_agent.judging.record_files import (
    Convert,
    Extent,
    RecordPlace,
    record_file,
)
from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.utils.errors import AgentError, TaskError
from guarantee_email_agent.utils.text import printable

_SAID_LATER: Final = frozenset({"eval", "digests", "timings", RECORD_DIR})
"""What a later judge adds, or whoever reads the file; the rest is what the agent did."""


class RecordReference(NamedTuple):
    """Where a record lies. number, start, length: as `Extent` has them. form: as `--from` has it, empty for a record.

    sha256: of what the agent did, in hexadecimal.
    """

    file: str
    number: int
    start: int
    length: int
    form: str
    sha256: str


def refer_to(place: RecordPlace, form: str) -> RecordReference | None:
    """The reference that a run store keeps; None for a record that cannot be read."""
    try:
        digest = _digest(place)
    except (TaskError, OSError, ValueError, RecursionError):  # the verdict says so
        return None
    return RecordReference(os.path.abspath(place.file.path), *place.extent, form, digest)


def with_record(result: CaseResult) -> CaseResult:
    """A result with what its record says where it has one: the task, the answer, messages and steps.

    They stand in `request`, `response` and the `conversation` and `execution_trace` of `trace`. `trace["problem"]` says
    in one line why a record is not shown: it has gone, or is not what was judged.
    """
    kept = result.trace.get("record") if isinstance(result.trace, Mapping) else None
    if (reference := _reference(kept)) is None:
        return result
    try:
        place = _place(reference)
        if _digest(place) != reference.sha256:
            raise TaskError(
                f"{printable(reference.file)} was changed since, so that it is not shown", "task_record_changed"
            )
        record = place.read()
    except (AgentError, OSError, ValueError, LookupError, RecursionError) as error:
        problem = error.message if isinstance(error, AgentError) else f"{printable(reference.file)}: {error}"
        if not os.path.lexists(reference.file):
            problem = f"{printable(reference.file)} is not there any more"
        return result._replace(trace={**result.trace, "problem": problem})
    steps = {name: record[name] for name in ("conversation", "execution_trace") if isinstance(record.get(name), list)}
    asked, answered = record.get("instruction") or None, record.get("task_result") or None
    return result._replace(request=asked, response=answered, trace={**result.trace, **steps})


def _digest(place: RecordPlace) -> str:
    """Of what the agent did."""
    done = {name: value for name, value in place.read().items() if name not in _SAID_LATER}
    text = json.dumps(done, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _reference(kept: object) -> RecordReference | None:
    if not isinstance(kept, Mapping) or not kept.keys() >= set(RecordReference._fields):
        return None
    kinds = (str, int, int, int, str, str)
    values = [kept[name] for name in RecordReference._fields]
    return RecordReference(*values) if all(map(isinstance, values, kinds)) else None


def _place(reference: RecordReference) -> RecordPlace:
    path, extent = Path(reference.file), Extent(reference.number, reference.start, reference.length)
    return RecordPlace(record_file(path, path.stem, converter(reference.form), has_lines=bool(extent.number)), extent)


def converter(form: str | None) -> Convert | None:
    """What makes a record of a transcript; None where it is one. form: as `--from` has it."""
    if not form:
        return None
    convert: Convert = getattr(judging, f"record_from_{form.replace('-', '_')}")
    return convert

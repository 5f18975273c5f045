"""Results that earlier runs have already: `--resume` goes on with one run, `--changed` takes over what still holds."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.eval.case_result import as_model_usage, stored_source
from guarantee_email_agent.eval.loader import EvalLoader, names_twice, stem
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import COUNTED, Case, InputSet, Run, SuiteKey
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.suite_manifest import file_content, has_source
from guarantee_email_agent.utils.errors import ConfigurationError

LAST_INTERRUPTED = ""
"""What `--resume` asks for without a run."""

_PAGE: Final = 500


class SuiteNow(NamedTuple):
    """What earlier results are held against. inputs: what verdicts depend on now. repeat: runs of each scenario."""

    store: Path
    key: SuiteKey
    files: Sequence[str]
    inputs: InputSet
    loader: EvalLoader
    repeat: int


class EarlierResults(NamedTuple):
    """What earlier runs have. whole: the cases of scenarios that need not run again, in the order of the files.

    run: the interrupted one that goes on; None where a new one begins. is_whole: of every file of the suite, whether it
    has one. begun: repetitions of those that still need some, by file. kept_ids: in the store, of every result that
    stays, and kept_positions: its place in the run. changed: how many results of `run` are out of date.
    """

    run: Run | None
    whole: EarlierCases
    is_whole: bytearray
    begun: Mapping[str, Sequence[EvalResult]]
    kept_ids: array[int]
    kept_positions: array[int]
    changed: int

    def usages(self) -> Iterator[ModelUsage]:
        """What every repetition took that need not run again."""
        whole = (as_model_usage(run.usage) for case in self.whole for run in case.runs)
        begun = (result.usage for results in self.begun.values() for result in results)
        yield from (usage for usage in chain(whole, begun) if usage is not None)

    @property
    def sentence(self) -> str:
        """For people: what is taken over, and what is not."""
        assert self.run is not None
        again = f", {self.changed} that changed since run again" if self.changed else ""
        return f"Resuming {self.run.id}: {len(self.kept_ids)} results are taken over{again}"


def find_earlier_results(now: SuiteNow, wanted: str) -> EarlierResults | None:
    """Of the run `wanted`, or of the last interrupted one of the suite; None where there is none.

    Raises StoreError for a store or run that cannot be found, and ConfigurationError for a run that cannot go on.
    """
    try:
        store = RunStore(now.store)
    except StoreError as error:
        if wanted == LAST_INTERRUPTED and error.code == "store_not_found":
            return None
        raise
    with store:
        if wanted == LAST_INTERRUPTED:
            run = store.last_interrupted(now.key)
        else:
            run = store.find_run(wanted, now.key)
            _refuse_what_cannot_go_on(run, now.key)
        if run is None:
            return None
        return _results_that_hold(store, now, [run], run.id, goes_on=run)


def _refuse_what_cannot_go_on(run: Run, key: SuiteKey) -> None:
    problem = None
    if run.key != key:
        problem = "is of another suite, selection, agent or model. Resume it with the options that it was begun with"
    elif run.outcome is None:
        problem = "still goes on"
    elif run.outcome != "interrupted":
        problem = f"is complete ({run.outcome}). Leave --resume away to run anew"
    if problem is not None:
        raise ConfigurationError(f"The run {run.id} {problem}", "eval_cannot_resume")


def find_unchanged(now: SuiteNow, run_id: str) -> EarlierResults:
    """The last verdicts of the suite that hold for the files of now, from whichever runs.

    run_id: of the new run, whose they are to be. Raises StoreError for a store that cannot be read.
    """
    try:
        store = RunStore(now.store)
    except StoreError as error:
        if error.code != "store_not_found":
            raise
        nothing = bytearray(len(now.files))
        return EarlierResults(None, EarlierCases(now.store, run_id, nothing), nothing, {}, array("q"), array("q"), 0)
    with store:
        return _results_that_hold(store, now, store.runs_up_to_a_whole_one(now.key), run_id)


def _results_that_hold(
    store: RunStore, now: SuiteNow, runs: Iterable[Run], run_id: str, goes_on: Run | None = None
) -> EarlierResults:
    """Of each file the last results in `runs`. goes_on: a run in which a part of a scenario's runs counts, too."""
    files, repeat, twice = now.files, now.repeat, names_twice(now.files)
    is_whole, ids, positions = bytearray(len(files)), array("q"), array("q")
    begun: dict[str, list[EvalResult]] = {}
    numbers, places = _last_places(store, runs, files)
    same_set: dict[int | None, bool] = {None: False}
    held = 0
    paths = iter(files)
    for first in range(0, len(files), _PAGE):
        page = range(first, min(first + _PAGE, len(files)))
        by_place = _depended_on(store, numbers, places, page)
        for index, path in zip(page, paths, strict=False):
            results = by_place.get((numbers[index], places[index]), [])
            if not results or (len(results) < repeat and goes_on is None):
                continue
            if twice and stem(path) in twice:  # which made it an invalid file
                continue
            for _, input_set, _ in results:
                if input_set is not None and input_set not in same_set:
                    same_set[input_set] = store.input_set_digest(input_set) == now.inputs.digest
            if not all(same_set[input_set] for _, input_set, _ in results):
                continue
            content = file_content(path)
            if not all(is_source(path, content, digest, now.loader) for _, _, digest in results):
                continue
            if len(results) >= repeat:
                is_whole[index] = True
            elif goes_on is not None and goes_on.llm == "record":
                continue  # the exchanges of a scenario are kept together, once all of its runs are over
            else:
                case = now.loader.load_eval_test_case(path)  # all is as it was when it ran
                begun[path] = [_restored(store, number, case) for number, _, _ in results]
            held += len(results)
            ids.extend(number for number, _, _ in results[:repeat])
            positions.extend(index + 1 for _ in results[:repeat])
    changed = 0 if goes_on is None else sum(count for _, _, count, _ in store.places(goes_on)) - held
    return EarlierResults(goes_on, EarlierCases(now.store, run_id, is_whole), is_whole, begun, ids, positions, changed)


def _last_places(store: RunStore, runs: Iterable[Run], files: Sequence[str]) -> tuple[array[int], array[int]]:
    """Of each file the number of the last run that has its result, and the position there; 0 for none."""
    numbers, places = (array("q", bytes(8 * len(files))) for _ in range(2))
    indices = {stem(path): index for index, path in enumerate(files)}
    for run in runs:
        for name, position, _, _ in store.places(run):
            index = indices.get(name)
            if index is not None and not numbers[index]:
                numbers[index], places[index] = run.number, position
    return numbers, places


def _depended_on(
    store: RunStore, numbers: array[int], places: array[int], page: Iterable[int]
) -> dict[tuple[int, int], list[tuple[int, int | None, bytes | None]]]:
    """By run and position: id, set of inputs and digest of the source of each repetition."""
    wanted: dict[int, list[int]] = {}
    for index in page:
        if places[index]:
            wanted.setdefault(numbers[index], []).append(places[index])
    found: dict[tuple[int, int], list[tuple[int, int | None, bytes | None]]] = {}
    for run, positions in wanted.items():
        for position, number, input_set, digest in store.depended_on(run, positions):
            found.setdefault((run, position), []).append((number, input_set, digest))
    return found


class EarlierCases:
    """The cases of a run that need not run again, in its order. The run must have them by the time they are read."""

    def __init__(self, file: Path, run_id: str, is_whole: bytearray) -> None:
        """is_whole: of each position, whether its case is one."""
        self._file, self._run_id, self._is_whole = file, run_id, is_whole

    def __len__(self) -> int:
        return len(self._is_whole) - self._is_whole.count(0)

    def __iter__(self) -> Iterator[Case]:
        with RunStore(self._file) as store:
            for case in store.cases(store.find_run(self._run_id), COUNTED):
                if self._is_whole[case.shown.position - 1]:
                    yield case


def is_source(file: str, content: bytes, digest: bytes | None, loader: EvalLoader) -> bool:
    """As `has_source`, whatever way its text names its mail."""
    if has_source(file, content, digest) or b"raw_file" not in content:
        return has_source(file, content, digest)
    case = next(iter(loader.iter_entries([file])))
    return isinstance(case, EvalTestCase) and hashlib.sha256(stored_source(case) or b"").digest() == digest


def _restored(store: RunStore, number: int, case: EvalTestCase) -> EvalResult:
    kept = store.result(number)
    elapsed_ms = round(kept.duration_ms)
    return EvalResult(
        case,
        kept.passed,
        list(map(str, kept.failed_checks)),
        {**kept.response, "processing_time_ms": elapsed_ms},
        elapsed_ms,
        usage=as_model_usage(kept.usage),
        reading=kept.reading,
        trace=kept.trace,
        judgement=kept.judgement,
        checks=kept.checks,
    )

"""`--resume`: what an interrupted run has already, so that nothing is paid for twice."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.scenario_files import ScenarioFiles
from guarantee_email_agent.eval.verdict_inputs import kept_source
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.reporting.kept_results import KeptResults
from guarantee_email_agent.store.database import StoreError
from guarantee_email_agent.store.records import Check, InputSet
from guarantee_email_agent.store.run_reader import RunStore
from guarantee_email_agent.store.stored_records import StoredResult, StoredRun, SuiteKey
from guarantee_email_agent.utils.errors import ConfigurationError

LAST_INTERRUPTED = ""
"""What `--resume` asks for without a run."""


class EarlierResults(NamedTuple):
    """What an interrupted run has. whole: the results of scenarios that need not run again, in the order of the files.

    is_whole: of every file of the suite, whether it has one. begun: repetitions of those that still need some, by file.
    kept_ids: in the store, of every result that stays, and kept_positions: its place in the run. changed: how many
    results are out of date.
    """

    run: StoredRun
    whole: KeptResults[EvalResult]
    is_whole: bytearray
    begun: Mapping[str, Sequence[EvalResult]]
    kept_ids: array[int]
    kept_positions: array[int]
    changed: int

    @property
    def sentence(self) -> str:
        """For people: what is taken over, and what is not."""
        again = f", {self.changed} that changed since run again" if self.changed else ""
        return f"Resuming {self.run.id}: {len(self.kept_ids)} results are taken over{again}"

    def all(self) -> Iterator[EvalResult]:
        """Every repetition that is taken over."""
        for result in self.whole:
            yield from result.repetitions or (result,)
        for results in self.begun.values():
            yield from results


def find_earlier_results(
    file: Path,
    wanted: str,
    key: SuiteKey,
    files: ScenarioFiles,
    inputs: InputSet,
    loader: EvalLoader,
    repeat: int,
) -> EarlierResults | None:
    """Of the run `wanted`, or of the last interrupted one of the suite; None where there is none.

    inputs: what verdicts depend on now. Raises StoreError for a store or run that cannot be found, and
    ConfigurationError for a run that cannot go on.
    """
    try:
        store = RunStore(file)
    except StoreError as error:
        if wanted == LAST_INTERRUPTED and error.code == "store_not_found":
            return None
        raise
    with store:
        if wanted == LAST_INTERRUPTED:
            run = store.last_interrupted(key)
        else:
            run = store.find_run(wanted, key)
            _refuse_what_cannot_go_on(run, key)
        return None if run is None else _results_of(store, run, files, inputs, loader, repeat)


def _refuse_what_cannot_go_on(run: StoredRun, key: SuiteKey) -> None:
    problem = None
    if run.key != key:
        problem = "is of another suite, selection, agent or model. Resume it with the options that it was begun with"
    elif run.outcome is None:
        problem = "still goes on"
    elif run.outcome != "interrupted":
        problem = f"is complete ({run.outcome}). Leave --resume away to run anew"
    if problem is not None:
        raise ConfigurationError(f"The run {run.id} {problem}", "eval_cannot_resume")


def _results_of(
    store: RunStore, run: StoredRun, files: ScenarioFiles, inputs: InputSet, loader: EvalLoader, repeat: int
) -> EarlierResults:
    whole: KeptResults[EvalResult] = KeptResults()
    is_whole = bytearray(len(files))
    begun: dict[str, list[EvalResult]] = {}
    kept_ids, kept_positions = array("q"), array("q")
    last = changed = 0
    for name, stored in _by_case(store, run):
        position = files.position_of_name(name)
        # A file that got another ending may have changed places: results come in the order of the files.
        case = next(iter(loader.iter_entries([files[position - 1]]))) if position > last else None
        if not isinstance(case, EvalTestCase) or not all(_is_valid(store, each, case, inputs) for each in stored):
            changed += len(stored)
            continue
        results = [_restored(store, each, case) for each in stored[:repeat]]
        if len(results) == repeat:
            whole.add(EvalResult.of_repetitions(results, repeat))
            is_whole[position - 1] = True
        elif run.llm == "record":  # the exchanges of a scenario are kept together, once all of its runs are over
            changed += len(stored)
            continue
        else:
            begun[files[position - 1]] = results
        last = position
        kept_ids.extend(each.id for each in stored[:repeat])
        kept_positions.extend(position for _ in stored[:repeat])
    return EarlierResults(run, whole, is_whole, begun, kept_ids, kept_positions, changed)


def _by_case(store: RunStore, run: StoredRun) -> Iterator[tuple[str, list[StoredResult]]]:
    stored: list[StoredResult] = []
    for each in store.results(run):
        if stored and stored[0].position != each.position:
            yield stored[0].name, stored
            stored = []
        stored.append(each)
    if stored:
        yield stored[0].name, stored


def _is_valid(store: RunStore, stored: StoredResult, case: EvalTestCase, inputs: InputSet) -> bool:
    """Whether the result would be asked for in the same way today."""
    if stored.input_set is None or store.input_set_digest(stored.input_set) != inputs.digest:
        return False
    return stored.source_hash == hashlib.sha256(kept_source(case) or b"").digest()


def _restored(store: RunStore, stored: StoredResult, case: EvalTestCase) -> EvalResult:
    transcript = store.transcript(stored)
    checks = tuple(Check.of_dict(row) for row in (transcript.judgement or {}).get("checks", ()))
    usage, elapsed_ms = stored.usage, round(stored.duration_ms)
    tokens = TokenUsage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return EvalResult(
        case,
        stored.verdict == "passed",
        [str(check) for check in store.checks(stored)],
        {**transcript.response, "processing_time_ms": elapsed_ms},
        elapsed_ms,
        usage=ModelUsage(usage.calls, tokens, usage.cost_usd, usage.latency_ms) if usage.calls else None,
        reading=(transcript.trace or {}).get("read"),
        trace=transcript.trace,
        judgement=transcript.judgement,
        checks=checks,
    )

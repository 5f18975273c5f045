"""Verdicts of earlier runs: `--resume` goes on with one run, `--changed` takes over what still holds, and `stale` says
what holds no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_model_usage, stored_source
from guarantee_email_agent.eval.loader import EvalLoader, names_twice, stem
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.verdict_inputs import VerdictInputs
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.proof import suite_name
from guarantee_email_agent.runlog.records import COUNTED, Case, CaseResult, InputSet, Run, SuiteKey, changed_inputs
from guarantee_email_agent.runlog.run_reader import LAST, RunStore, refuse_nameless
from guarantee_email_agent.runlog.suite_manifest import file_content, has_source, source_in_suite
from guarantee_email_agent.runlog.views.comparison_report import describe_run
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import and_more, printable

LAST_INTERRUPTED = ""
"""What `--resume` asks for without a run."""
_STOPPED = ("interrupted", "crashed")


class SuiteNow(NamedTuple):
    """What earlier results are held against. inputs: what verdicts depend on now. repeat: runs of each scenario."""

    store: Path
    key: SuiteKey
    files: Sequence[str]
    inputs: InputSet
    loader: EvalLoader
    repeat: int


class EarlierResults(NamedTuple):
    """What earlier runs have. run: the interrupted one that goes on; None where a new one begins.

    store, run_id: where the results stand once that run has begun. positions: of the scenarios that need not run again.
    begun: repetitions of those that still need some, by file. kept: position in the run, and id in the store, of every
    result that stays. changed: how many results of `run` are out of date.
    """

    run: Run | None
    store: Path
    run_id: str
    positions: frozenset[int] = frozenset()
    begun: Mapping[str, Sequence[CaseResult]] = MappingProxyType({})
    kept: Sequence[tuple[int, int]] = ()
    changed: int = 0

    def cases(self) -> Iterator[Case]:
        """Of the scenarios that need not run again, in the order of the files."""
        with RunStore(self.store) as store:
            for case in store.cases(store.find_run(self.run_id), COUNTED):
                if case.shown.position in self.positions:
                    yield case

    def usages(self) -> Iterator[ModelUsage]:
        """What every repetition took that need not run again."""
        whole = (run for case in self.cases() for run in case.runs)
        usages = (as_model_usage(run.usage) for run in chain(whole, *self.begun.values()))
        yield from (usage for usage in usages if usage is not None)

    @property
    def sentence(self) -> str:
        """For people: what is taken over, and what is not."""
        assert self.run is not None
        again = f", {self.changed} that changed since run again" if self.changed else ""
        return f"Resuming {self.run.id}: {len(self.kept)} results are taken over{again}"


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
            run = next((each for each in store.runs(now.key, limit=1) if each.outcome in _STOPPED), None)
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
    elif run.outcome not in _STOPPED:
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
        return EarlierResults(None, now.store, run_id)
    with store:
        return _results_that_hold(store, now, store.runs_up_to_a_whole_one(now.key), run_id)


def _results_that_hold(
    store: RunStore, now: SuiteNow, runs: Iterable[Run], run_id: str, goes_on: Run | None = None
) -> EarlierResults:
    """Of each file the last results in `runs`. goes_on: a run in which a part of a scenario's runs counts, too."""
    last: dict[str, tuple[CaseResult, ...]] = {}
    for run in runs:
        for outcome in store.outcomes(run, undecided=True):
            last.setdefault(outcome.name, outcome.runs)
    repeat, twice = now.repeat, names_twice(now.files)  # which made them invalid files
    is_same: dict[int | None, bool] = {None: False}

    def holds(result: CaseResult, path: str, content: bytes) -> bool:
        inputs = result.place.input_set
        if inputs not in is_same:
            is_same[inputs] = inputs is not None and store.input_set_digest(inputs) == now.inputs.digest
        return is_same[inputs] and is_source(path, content, result.place.source_hash, now.loader)

    whole: set[int] = set()
    begun: dict[str, list[CaseResult]] = {}
    kept: list[tuple[int, int]] = []
    held = 0
    for position, path in enumerate(now.files, 1):
        name = stem(path)
        results = () if name in twice else last.get(name, ())
        if Case(results[:repeat]).passed != Case(results).passed:  # a verdict of all is none of a part of them
            continue
        # The exchanges of a recorded scenario are kept together, once all of its runs are over.
        if len(results) < repeat and (not results or goes_on is None or goes_on.llm == "record"):
            continue
        content = file_content(path)
        if not all(holds(each, path, content) for each in results):
            continue
        if len(results) >= repeat:
            whole.add(position)
        else:
            begun[path] = [store.result(each.place.id) for each in results]
        held += len(results)
        kept += ((position, each.place.id) for each in results[:repeat])
    changed = 0 if goes_on is None else sum(map(len, last.values())) - held
    return EarlierResults(goes_on, now.store, run_id, frozenset(whole), begun, kept, changed)


def is_source(file: str, content: bytes, digest: bytes | None, loader: EvalLoader) -> bool:
    """As `has_source`, whatever way its text names its mail."""
    if has_source(file, content, digest, suite := loader.suite or "") or b"raw_file" not in content:
        return has_source(file, content, digest, suite)
    case = next(iter(loader.iter_entries([file])))
    source = stored_source(case) if isinstance(case, EvalTestCase) else None
    return source is not None and hashlib.sha256(source_in_suite(source, file, suite)).digest() == digest


_MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class StaleVerdicts:
    """changes: what is not as it was (`changed instruction: main.md`), with the scenarios that depend on it.

    An instruction, lexicon or judge file, a setting, the model and the version count for every scenario of the run:
    which of them a reply came from does not tell which could have changed it. A scenario file counts for itself.
    new: scenarios that the run does not have. incomplete: what is not known of what verdicts depended on, with the
    scenarios; of those nobody knows whether they hold, unless they are out of date.
    """

    run: Run
    verdicts: int
    stale: frozenset[str]
    changes: dict[str, list[str]]
    new: tuple[str, ...]
    incomplete: dict[str, list[str]]

    @property
    def unknown(self) -> frozenset[str]:
        """The scenarios of which it is not known whether their verdicts hold."""
        return frozenset(name for names in self.incomplete.values() for name in names) - self.stale

    def as_dict(self) -> dict[str, Any]:
        changes = [{"change": change, "scenarios": names} for change, names in self.changes.items()]
        return {
            "schema_version": 1,
            "run_id": self.run.id,
            "verdicts": self.verdicts,
            "stale": sorted(self.stale),
            "changes": changes,
            "new": list(self.new),
            "incomplete": [{"reason": reason, "scenarios": names} for reason, names in self.incomplete.items()],
            "unknown": sorted(self.unknown),
        }


def find_stale(store: RunStore, name: str, config: Config, directory: Path) -> StaleVerdicts:
    """name: as `RunStore.find_run` has it; `last` for the newest run of this suite.

    Raises StoreError, ConfigurationError for a run of something else, and EvalError for a folder that cannot be read.
    """
    refuse_nameless(run := _find_run(store, name, suite_name(directory, config)))
    loader = EvalLoader(any_agent=True)
    files = {Path(file).stem: file for file in loader.scenario_files(directory)}
    now = VerdictInputs(config, directory, run.llm, run.agent or None, run.options).set
    incomplete: dict[str, list[str]] = {}
    changes: dict[str, list[str]] = {}
    stale: set[str] = set()
    of_set: dict[int | None, tuple[Sequence[str], Sequence[str]]] = {}
    seen: set[str] = set()
    for outcome in store.outcomes(run):
        seen.add(case := outcome.name)
        source_hash, found, reasons = outcome.runs[0].place.source_hash, list[str](), list[str]()
        for input_set in {each.place.input_set for each in outcome.runs}:
            if input_set not in of_set:
                of_set[input_set] = _changed_inputs(store, input_set, now)
            found += of_set[input_set][0]
            reasons += of_set[input_set][1]
        found += _changed_source(case, files.get(case), source_hash, loader)
        if source_hash is None and case in files:
            reasons.append("of a file that could not be used nothing is kept")
        for reason in dict.fromkeys(reasons):
            incomplete.setdefault(reason, []).append(case)
        for change in dict.fromkeys(found):
            changes.setdefault(change, []).append(case)
        if found:
            stale.add(case)
    new = tuple(each for each in files if each not in seen) if not run.selection else ()
    return StaleVerdicts(run, len(seen), frozenset(stale), changes, new, incomplete)


def _find_run(store: RunStore, name: str, suite: str) -> Run:
    if name == LAST:
        runs = (run for run in store.runs(command="eval", limit=1_000) if run.suite == suite)
        run = next(map(store.with_counts, runs), None)
        if run is None:
            raise ConfigurationError(f"No run of {printable(suite)} is kept yet. Run eval first", "eval_no_run")
        return run
    run = store.find_run(name)
    if run.command != "eval" or run.suite != suite:
        what = f"{run.command} of {printable(run.suite)}"
        problem = f"The run {run.id} is one of {what}, not of {printable(suite)}. Name its folder with --eval-dir"
        raise ConfigurationError(problem, "eval_other_suite")
    return run


def _changed_inputs(store: RunStore, input_set: int | None, now: InputSet) -> tuple[Sequence[str], Sequence[str]]:
    """What changed, and what is not known."""
    if input_set is None:
        return (), ("instruction, lexicon or judge files were edited while the run went on",)
    then = InputSet(store.inputs(input_set))
    changed = [f"{change} {kind}: {name}" for change, kind, name in changed_inputs(then.inputs, now.inputs)]
    return changed, then.incomplete


def _changed_source(case: str, file: str | None, source_hash: bytes | None, loader: EvalLoader) -> Iterator[str]:
    if file is None:
        yield f"removed scenario: {case}"
        return
    if source_hash is not None and not is_source(file, file_content(file), source_hash, loader):
        yield f"changed scenario: {case}"


def print_stale(found: StaleVerdicts, terminal: Terminal) -> None:
    """What changed, how many verdicts depend on it, and how many are out of date in all."""
    terminal.line(f"Run: {describe_run(found.run)}")
    own: dict[str, list[str]] = {}
    for change, names in found.changes.items():
        kind, _, name = change.partition(": ")
        if kind.endswith("scenario"):
            own.setdefault(kind, []).append(name)
        else:
            terminal.line(f"{change[:1].upper()}{printable(change[1:])} ({pluralize(len(names), 'verdict')})")
    own["new scenario, without a verdict"] = list(found.new)
    for kind, names in own.items():
        if names:
            terminal.line(f"{kind[:1].upper()}{kind[1:]}: {printable(and_more(names, _MAX_NAMES))}")
    for reason, names in found.incomplete.items():
        terminal.line(f"incomplete: {printable(reason)} ({pluralize(len(names), 'verdict')})")
    unknown = f"{pluralize(len(found.unknown), 'verdict')} of the run: not known whether they hold"
    if found.stale:
        terminal.line(terminal.red(f"✗ {len(found.stale)} of {pluralize(found.verdicts, 'verdict')} are out of date"))
        if found.unknown:
            terminal.line(unknown)
    elif found.unknown:
        terminal.line(unknown)
    else:
        terminal.line(terminal.green(f"✓ {pluralize(found.verdicts, 'verdict')} of the run: none is out of date"))
    terminal.flush()

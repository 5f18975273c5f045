"""Which verdicts of a run the files and settings of today have made out of date."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.resume import is_source
from guarantee_email_agent.eval.verdict_inputs import VerdictInputs
from guarantee_email_agent.runlog.proof import suite_name
from guarantee_email_agent.runlog.records import InputSet, Run, changed_inputs
from guarantee_email_agent.runlog.run_reader import LAST, RunStore
from guarantee_email_agent.runlog.suite_manifest import file_content
from guarantee_email_agent.runlog.views.comparison_report import describe_run
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import and_more, printable

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
    run = _find(store, name, suite_name(directory, config))
    loader = EvalLoader(any_agent=True)
    files = {Path(file).stem: file for file in loader.scenario_files(directory)}
    now = VerdictInputs(config, directory, run.llm, run.agent or None, run.options).set
    incomplete: dict[str, list[str]] = {}
    missing: dict[int | None, list[str]] = {None: []}
    changes: dict[str, list[str]] = {}
    stale: set[str] = set()
    of_set: dict[int | None, list[str]] = {}
    seen: set[str] = set()
    for outcome in store.outcomes(run):
        seen.add(case := outcome.name)
        place = outcome.runs[0].place
        if (input_set := place.input_set) not in of_set:
            of_set[input_set] = list(_changed_inputs(store, input_set, now))
            if input_set is not None:
                missing[input_set] = list(InputSet(store.inputs(input_set)).incomplete)
        for reason in missing[input_set]:
            incomplete.setdefault(reason, []).append(case)
        found = [*of_set[input_set], *_changed_source(case, files.get(case), place.source_hash, loader)]
        for change in found:
            changes.setdefault(change, []).append(case)
        if found:
            stale.add(case)
    new = tuple(each for each in files if each not in seen) if not run.selection else ()
    return StaleVerdicts(run, len(seen), frozenset(stale), changes, new, incomplete)


def _find(store: RunStore, name: str, suite: str) -> Run:
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


def _changed_inputs(store: RunStore, input_set: int | None, now: InputSet) -> Iterator[str]:
    if input_set is None:
        yield "edited while the run went on: instruction, lexicon or judge files"
        return
    if store.input_set_digest(input_set) == now.digest:
        return
    for change, kind, name in changed_inputs(store.inputs(input_set), now.inputs):
        yield f"{change} {kind}: {name}"


def _changed_source(case: str, file: str | None, source_hash: bytes | None, loader: EvalLoader) -> Iterator[str]:
    if file is None:
        yield f"removed scenario: {case}"
        return
    if source_hash is None:  # an invalid file, of which nothing is kept
        yield f"not known whether it is the same: {case}"
    elif not is_source(file, file_content(file), source_hash, loader):
        yield f"changed scenario: {case}"


def print_stale(found: StaleVerdicts, terminal: Terminal) -> None:
    """What changed, how many verdicts depend on it, and how many are out of date in all."""
    terminal.line(f"Run: {describe_run(found.run)}")
    own: dict[str, list[str]] = {}
    for change, names in found.changes.items():
        kind, _, name = change.partition(": ")
        if kind.endswith("scenario") or kind.startswith("not known"):
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

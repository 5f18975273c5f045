"""Whether the suite is green for what the agent answers by, as far as `eval` has kept it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from guarantee_email_agent.config.built_in_files import built_in_path
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.runlog.records import Input, Run, SuiteKey, changed_inputs
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.suite_manifest import file_content, has_source, scenario_names
from guarantee_email_agent.utils.text import and_more

_FILES: Final = ("instruction", "lexicon")
_MAX_RUNS: Final = 100
_MAX_NAMED: Final = 10
_BUSY_S: Final = 1.0


class Proof(NamedTuple):
    """state: of the newest whole run with the same inputs; `out of date` where all had others, `never` without any.

    run: its id. changed: what is not as it was in it, `changed instruction: main.md`.
    """

    state: Literal["passed", "failed", "out of date", "never"]
    run: str = ""
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.state} ({and_more((self.run, *self.changed), _MAX_NAMED + 1)})" if self.run else self.state


class SuiteProofs:
    """Of whole offline runs of the configured suite with our own agent. Every method raises StoreError."""

    def __init__(self, config: Config) -> None:
        self._file = config.run_store_file
        self._key = SuiteKey("eval", suite_name(config.eval.test_suite_path, config), llm="offline")
        self._folder = os.fspath(config.eval.test_suite_path)
        self._threshold = config.eval.pass_threshold

    def of(self, now: Sequence[Input], suite: Sequence[Input]) -> Proof:
        """now: the files, settings and code of the agent. suite: of what judges it, but for the scenarios."""
        newest = None
        files = self._suite_files()
        for store, run, inputs in self._runs():
            changes = [*changed_inputs(inputs, [*now, *suite])]
            if not changes or newest is None:
                changes += _changed_scenarios(store.sources(run), files, self._folder)
            if not changes:
                return Proof("passed" if run.outcome == "passed" else "failed", run.id)
            changed = tuple(f"{change} {kind}: {name}" for change, kind, name in changes)
            newest = newest or Proof("out of date", run.id, changed)
        return newest or Proof("never")

    def _suite_files(self) -> dict[str, tuple[str, bytes]]:
        """Path and content of each scenario's file, by its name; none where the folder cannot be looked at."""
        with suppress(OSError):
            paths = [os.path.join(self._folder, name) for name in sorted(scenario_names(self._folder))]
            return {os.path.splitext(os.path.basename(path))[0]: (path, file_content(path)) for path in paths}
        return {}

    def newest_files(self, now: Sequence[Input]) -> tuple[str, list[Input]] | None:
        """The newest set of instruction files that passed with the settings and the code of now, and in which run."""
        seen: set[tuple[bytes, ...]] = set()
        for _, run, inputs in self._runs():
            current = {(each.kind, each.name) for each in now}  # without judges and what they import
            of_agent = (each for each in inputs if each.kind in _FILES or (each.kind, each.name) in current)
            if any(kind not in _FILES for _, kind, _ in changed_inputs(of_agent, now)):
                continue
            files = [each for each in inputs if each.kind in _FILES]
            digests = tuple(each.digest for each in files)
            if run.outcome == "passed" and digests not in seen and all(each.content is not None for each in files):
                return run.id, files
            seen.add(digests)  # a newer run of the same files decides
        return None

    def _runs(self) -> Iterator[tuple[RunStore, Run, list[Input]]]:
        """The newest first, each with what all of its results depended on; those that decide nothing are left out."""
        if not os.path.lexists(self._file):
            return
        with RunStore(self._file, busy_s=_BUSY_S) as store:
            known: dict[int, list[Input]] = {}
            for run in store.runs(self._key, limit=_MAX_RUNS):
                is_decided = run.outcome == "failed" or (run.outcome == "passed" and run.threshold >= self._threshold)
                if not is_decided or run.total < run.planned or (of := store.input_set_of(run)) is None:
                    continue
                if of not in known:
                    known[of] = store.inputs(of)
                yield store, run, known[of]


def _changed_scenarios(
    ran: Mapping[str, bytes | None], files: Mapping[str, tuple[str, bytes]], suite: str
) -> Iterator[tuple[str, str, str]]:
    """ran: as `RunStore.sources` has it. files: path and content by name, as they are now."""
    for name in sorted(ran.keys() | files.keys()):
        if name not in ran or name not in files:
            yield "removed" if name in ran else "added", "scenario", name
        elif not has_source(*files[name], ran[name], suite):
            yield "changed", "scenario", name


def suite_name(directory: Path, config: Config) -> str:
    """The folder as every machine names it: relative to the project, or as that which comes with the package."""
    folder = Path(os.path.abspath(directory))
    if config.source is not None and folder.is_relative_to(config.source.parent):
        return folder.relative_to(config.source.parent).as_posix()
    return "built-in" if folder == built_in_path("evals/scenarios") else folder.as_posix()
